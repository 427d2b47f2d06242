//! Operators: their descriptions, and how they run.

use std::sync::OnceLock;

use tma_runtime::spec::Scalar;
use tma_runtime::{Device, Error, Stream};

use crate::argument::{Argument, At, Base, Kind};
use crate::expression::Allocation;
use crate::failure::Failure;
use crate::ffi::Boxed;
use crate::value::Value;

/// A declaration by [`operator!`](crate::operator).
pub trait Declared {
    /// Returns the operator.
    fn operator() -> &'static Operator;
}

/// An operator: a function of a library, with the types of its arguments and results.
#[derive(Debug)]
pub struct Operator {
    /// The parts that [`operator!`](crate::operator) fills in.
    pub parts: Parts,
    allocations: OnceLock<Result<Vec<Allocation>, String>>,
}

/// The parts of an operator.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// Name in Python.
    pub name: &'static str,
    /// The documentation of its declaration, line by line.
    pub documentation: &'static [&'static str],
    /// Arguments, in order.
    pub arguments: &'static [Field],
    /// Results, in order.
    pub results: &'static [Field],
    /// Gradients of arguments.
    pub gradients: &'static [Gradients],
    /// Reads the values of arguments and results, and calls the function.
    pub run: fn(&Values<'_>, &Call<'_>) -> Result<(), Failure>,
    /// The function that PyTorch calls.
    pub boxed: Boxed,
}

/// The gradients of one argument, or of several that are computed together.
#[derive(Clone, Copy, Debug)]
pub struct Gradients {
    /// The names of the arguments.
    pub of: &'static [&'static str],
    /// An expression of Python: the gradient, or a tuple of them.
    pub expression: &'static str,
}

/// An argument or a result of an operator.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// Type.
    pub kind: Kind,
    /// The default of an argument, in Python, or the description of a result.
    pub text: Option<&'static str>,
}

/// The values of a call: those of all arguments, followed by the results.
#[derive(Debug)]
pub struct Values<'a> {
    /// The values.
    pub(crate) values: &'a [Value<'a>],
    /// The device that has all tensors.
    pub(crate) device: &'a Device,
}

impl<'a> Values<'a> {
    /// Reads the value at an index.
    ///
    /// # Errors
    ///
    /// `TMA0566` if the value does not fit.
    pub fn read<A: Argument<'a>>(&self, index: usize, name: &'static str) -> Result<A, Failure> {
        let missing = || Failure::argument(name, "is missing");
        let value = *self.values.get(index).ok_or_else(missing)?;
        A::read(value, At { name, device: self.device })
    }
}

/// The call of an operator: where its launches are queued.
#[derive(Debug)]
pub struct Call<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) memory: &'a dyn Allocate,
}

/// An allocator of memory for what a call has queued, which is freed after that has run.
pub(crate) trait Allocate: std::fmt::Debug {
    /// Returns the address of some bytes.
    fn allocate(&self, bytes: usize) -> Result<u64, Failure>;
}

impl Call<'_> {
    /// Returns the stream for launches: the current one of PyTorch, or that of the simulator for
    /// tensors in host memory.
    pub fn stream(&self) -> &Stream {
        self.stream
    }

    /// Returns the device that has all tensors of the call.
    pub fn device(&self) -> &Device {
        self.stream.device()
    }

    /// Returns the address of memory that is not initialised, a multiple of 128. Nothing else uses
    /// it until what the call queues has run, and it is freed then. For tensors of PyTorch, PyTorch
    /// allocates it, also within a graph.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], or `TMA0567` if PyTorch cannot allocate it, or if a call with other
    /// arrays is captured.
    pub fn memory(&self, bytes: usize) -> Result<u64, Failure> {
        self.memory.allocate(bytes)
    }

    /// Returns whether the call is recorded in a CUDA graph, to run later.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`].
    pub fn is_capturing(&self) -> Result<bool, Error> {
        self.stream.is_capturing()
    }
}

/// Names with a meaning of their own: words of Python that are none of Rust, functions of the
/// descriptions, options of calls with arrays, arguments of functions of PyTorch that pass on those
/// of an operator by name, and names in the expressions of gradients.
const RESERVED: [&str; 27] = [
    "and",
    "as",
    "assert",
    "class",
    "ctx",
    "def",
    "del",
    "elif",
    "empty",
    "empty_like",
    "except",
    "finally",
    "from",
    "global",
    "import",
    "is",
    "lambda",
    "len",
    "mode",
    "needed",
    "nonlocal",
    "not",
    "or",
    "out",
    "raise",
    "stream",
    "torch",
];

impl Operator {
    /// Makes an operator of its parts.
    pub const fn new(parts: Parts) -> Self {
        Self { parts, allocations: OnceLock::new() }
    }

    /// Returns shapes and element types of the results for these arguments.
    pub(crate) fn results(&self, arguments: &[Value<'_>]) -> Result<Vec<(Vec<i64>, Scalar)>, Failure> {
        let wrong = |why| Failure::library(format_args!("the results of `{}`: {why}", self.parts.name));
        let allocations = self.allocations().map_err(wrong)?;
        allocations.iter().map(|allocation| allocation.evaluate(arguments).map_err(wrong)).collect()
    }

    fn allocations(&self) -> Result<&[Allocation], String> {
        let parsed = self.allocations.get_or_init(|| {
            let names: Vec<_> = self.parts.arguments.iter().map(|field| field.name).collect();
            let texts = self.parts.results.iter().map(|field| field.text.unwrap_or_default());
            texts.map(|text| Allocation::parse(text, &names)).collect()
        });
        parsed.as_deref().map_err(Clone::clone)
    }

    /// Returns the operator's schema in PyTorch. Arguments with a default are passed by name.
    pub fn schema(&self) -> String {
        let mut text = format!("{}(", self.parts.name);
        let mut is_named = false;
        for (index, field) in self.parts.arguments.iter().enumerate() {
            if index > 0 {
                text += ", ";
            }
            if field.text.is_some() && !is_named {
                text += "*, ";
                is_named = true;
            }
            let optional = if field.kind.is_optional { "?" } else { "" };
            let kind = match field.kind.base {
                Base::Tensor => "Tensor".to_owned(),
                // Each written tensor is an alias set of its own.
                Base::TensorMut => format!("Tensor(a{index}!)"),
                Base::Float => "float".to_owned(),
                Base::Int => "SymInt".to_owned(),
                Base::Bool => "bool".to_owned(),
                Base::Text => "str".to_owned(),
                Base::Element => "ScalarType".to_owned(),
            };
            text += &format!("{kind}{optional} {}", field.name);
            text += &field.text.map(|default| format!("={default}")).unwrap_or_default();
        }
        let results = vec!["Tensor"; self.parts.results.len()].join(", ");
        text + &if self.parts.results.len() == 1 {
            format!(") -> {results}")
        } else {
            format!(") -> ({results})")
        }
    }

    /// Returns the first mistake of the declaration.
    pub(crate) fn mistake(&self) -> Option<String> {
        let Parts { name, arguments, results, gradients, .. } = self.parts;
        let first_named = arguments.iter().position(|field| field.text.is_some());
        let positional =
            first_named.and_then(|first| arguments[first..].iter().find(|field| field.text.is_none()));
        if let Some(field) = positional {
            return Some(format!(
                "`{name}`: `{}` has no default, but follows an argument that has one",
                field.name
            ));
        }
        if !arguments.iter().any(|field| {
            field.kind == Kind { base: Base::Tensor, is_optional: false }
                || field.kind.base == Base::TensorMut
        }) {
            return Some(format!("`{name}` has no tensor among its arguments"));
        }
        if let Some(field) = results.iter().find(|field| field.kind.base != Base::TensorMut) {
            return Some(format!(
                "`{name}`: the result `{}` must be a `TensorMut` or a `TensorViewMut`",
                field.name
            ));
        }
        let is_dtype = |field: &&Field| {
            field.kind.base == Base::Element && field.text.is_some_and(|text| text != "None")
        };
        if let Some(field) = arguments.iter().find(is_dtype) {
            return Some(format!(
                "`{name}`: PyTorch has no default for the dtype `{}`; make it an `Option` with the default `None`",
                field.name
            ));
        }
        let names = arguments.iter().chain(results).map(|field| field.name);
        if let Some(taken) = names.chain([name]).find(|name| RESERVED.contains(name)) {
            return Some(format!(
                "`{name}`: the name `{taken}` has another meaning in Python; choose another"
            ));
        }
        let is_read = |wanted: &str| {
            arguments.iter().any(|field| field.name == wanted && field.kind.base == Base::Tensor)
        };
        let mut differentiated = gradients.iter().flat_map(|gradients| gradients.of);
        if let Some(argument) = differentiated.find(|argument| !is_read(argument)) {
            return Some(format!(
                "`{name}`: `{argument}` cannot have a gradient: it is not a tensor that the operator reads"
            ));
        }
        let written = arguments.iter().find(|field| field.kind.base == Base::TensorMut);
        if let Some(field) = written.filter(|_| !gradients.is_empty()) {
            return Some(format!(
                "`{name}` has gradients and writes its argument `{}`; return a new tensor instead",
                field.name
            ));
        }
        self.allocations().err().map(|why| format!("`{name}`: {why}"))
    }
}

/// Declares an operator: a struct of its arguments and results, whose method `run` computes these.
///
/// ```
/// use tma_python::{Call, Failure, operator};
/// use tma_runtime::{TensorView, TensorViewMut};
///
/// operator! {
///     /// Copies the first rows of a matrix.
///     pub struct Head<'a>("head") {
///         x: TensorView<'a, f32, 2>,
///         rows: usize = "1",
///     } -> {
///         y: TensorViewMut<'a, f32, 2> = "empty([rows, x.shape[1]], x.dtype)",
///     }
/// }
///
/// impl Head<'_> {
///     fn run(self, call: &Call<'_>) -> Result<(), Failure> {
///         // .. launches a kernel on `call.stream()`
///         # let _ = (self.x, self.rows, self.y, call.stream());
///         Ok(())
///     }
/// }
/// # use tma_python::Declared;
/// # let schema = Head::operator().schema();
/// # assert_eq!(schema, "head(Tensor x, *, SymInt rows=1) -> Tensor");
/// ```
///
/// The types of arguments are those of [`Argument`](crate::Argument). An argument with a default,
/// which is written as in Python, is passed by name. The text of a result is its allocation, in a
/// part of Python that the [documentation of the package](crate#results) lists.
///
/// `gradients { x: "scale(grad_y, factor)" }` at the end makes PyTorch differentiate the operator.
/// Each gradient is an expression of Python over the arguments, the results, `grad_` followed by
/// the name of a result, `torch`, the operators of the library, and the modules in the package's
/// folder `python`. The expression of several, `(x, y): ".."`, is a tuple, and is evaluated once;
/// `needed` is the set of the names of those whose gradients PyTorch needs, and the others may be
/// `None`. A result of whose gradient no expression makes use is a constant for PyTorch. PyTorch
/// keeps the tensors that an expression names until it is evaluated.
#[macro_export]
macro_rules! operator {
    (
        $(#[doc = $documentation:literal])*
        $visibility:vis struct $Name:ident<$a:lifetime>($name:literal) {
            $($argument:ident: $Argument:ty $(= $default:literal)?),+ $(,)?
        }
        $(-> { $($result:ident: $Result:ty = $allocation:literal),+ $(,)? })?
        $(gradients { $($of:tt: $gradient:literal),+ $(,)? })?
    ) => {
        $(#[doc = $documentation])*
        #[derive(Debug)]
        $visibility struct $Name<$a> {
            $(
                #[doc = concat!("The argument `", stringify!($argument), "`.")]
                $visibility $argument: $Argument,
            )+
            $($(
                #[doc = concat!("The result `", stringify!($result), "`.")]
                $visibility $result: $Result,
            )+)?
        }

        impl<$a> $crate::Read<$a> for $Name<$a> {
            const ARGUMENTS: &'static [$crate::Field] = &[$($crate::Field {
                name: stringify!($argument),
                kind: <$Argument as $crate::Argument<$a>>::KIND,
                text: $crate::operator!(@text $($default)?),
            }),+];
            const RESULTS: &'static [$crate::Field] = &[$($($crate::Field {
                name: stringify!($result),
                kind: <$Result as $crate::Argument<$a>>::KIND,
                text: Some($allocation),
            }),+)?];

            fn read(values: &$crate::Values<$a>) -> Result<Self, $crate::Failure> {
                let mut index = 0..;
                let mut next = || index.next().unwrap_or_default();
                Ok(Self {
                    $($argument: values.read(next(), stringify!($argument))?,)+
                    $($($result: values.read(next(), stringify!($result))?,)+)?
                })
            }
        }

        impl $crate::Declared for $Name<'_> {
            fn operator() -> &'static $crate::Operator {
                fn run(values: &$crate::Values<'_>, call: &$crate::Call<'_>) -> Result<(), $crate::Failure> {
                    <$Name<'_> as $crate::Read<'_>>::read(values)?.run(call)?;
                    Ok(())
                }
                static OPERATOR: $crate::Operator = $crate::Operator::new($crate::Parts {
                    name: $name,
                    documentation: &[$($documentation),*],
                    arguments: <$Name<'static> as $crate::Read<'static>>::ARGUMENTS,
                    results: <$Name<'static> as $crate::Read<'static>>::RESULTS,
                    gradients: &[$($($crate::Gradients {
                        of: $crate::operator!(@names $of),
                        expression: $gradient,
                    }),+)?],
                    run,
                    boxed: $crate::boxed::<$Name<'static>>,
                });
                &OPERATOR
            }
        }
    };
    (@names ($($of:ident),+ $(,)?)) => { &[$(stringify!($of)),+] };
    (@names $of:ident) => { &[stringify!($of)] };
    (@text) => { None };
    (@text $default:literal) => { Some($default) };
}

/// The reading of an operator's values, which [`operator!`](crate::operator) implements.
pub trait Read<'a>: Sized {
    /// The arguments.
    const ARGUMENTS: &'static [Field];
    /// The results.
    const RESULTS: &'static [Field];

    /// Reads the values of arguments and results.
    ///
    /// # Errors
    ///
    /// `TMA0566` if a value does not fit.
    fn read(values: &Values<'a>) -> Result<Self, Failure>;
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENSOR: Kind = Kind { base: Base::Tensor, is_optional: false };
    const RESULT: Kind = Kind { base: Base::TensorMut, is_optional: false };
    const FLOAT: Kind = Kind { base: Base::Float, is_optional: false };

    fn field(name: &'static str, kind: Kind, text: Option<&'static str>) -> Field {
        Field { name, kind, text }
    }

    unsafe extern "C-unwind" fn never_called(_stack: *mut u64, _arguments: u64, _results: u64) {}

    #[track_caller]
    fn mistake(arguments: Vec<Field>, results: Vec<Field>, gradients: &'static [Gradients], wanted: &str) {
        let operator = Operator::new(Parts {
            name: "f",
            documentation: &[],
            arguments: arguments.leak(),
            results: results.leak(),
            gradients,
            run: |_, _| Ok(()),
            boxed: never_called,
        });
        assert_eq!(operator.mistake().unwrap_or_default(), wanted);
    }

    #[test]
    fn mistakes_of_declarations_are_found() {
        let x = field("x", TENSOR, None);
        let y = field("y", RESULT, Some("empty_like(x)"));
        mistake(vec![x], vec![y], &[Gradients { of: &["x"], expression: "grad_y" }], "");
        mistake(
            vec![field("a", FLOAT, Some("1.0")), x],
            vec![y],
            &[],
            "`f`: `x` has no default, but follows an argument that has one",
        );
        mistake(vec![field("a", FLOAT, None)], vec![], &[], "`f` has no tensor among its arguments");
        mistake(
            vec![x],
            vec![field("y", TENSOR, Some("empty_like(x)"))],
            &[],
            "`f`: the result `y` must be a `TensorMut` or a `TensorViewMut`",
        );
        mistake(
            vec![x, field("out", FLOAT, None)],
            vec![y],
            &[],
            "`f`: the name `out` has another meaning in Python; choose another",
        );
        const DTYPE: Kind = Kind { base: Base::Element, is_optional: false };
        mistake(
            vec![x, field("d", DTYPE, Some("int8"))],
            vec![y],
            &[],
            "`f`: PyTorch has no default for the dtype `d`; make it an `Option` with the default `None`",
        );
        mistake(
            vec![x],
            vec![y],
            &[Gradients { of: &["x", "z"], expression: "grad_y" }],
            "`f`: `z` cannot have a gradient: it is not a tensor that the operator reads",
        );
        mistake(
            vec![x, field("z", RESULT, None)],
            vec![y],
            &[Gradients { of: &["x"], expression: "grad_y" }],
            "`f` has gradients and writes its argument `z`; return a new tensor instead",
        );
        mistake(
            vec![x],
            vec![field("y", RESULT, Some("empty_like(z)"))],
            &[],
            "`f`: `z` is neither an argument nor an element type; arguments are x",
        );
    }
}
