//! The types that arguments of an operator have in Rust.

use tma_runtime::spec::Scalar;
use tma_runtime::{Device, TensorView, TensorViewMut};

use crate::element;
use crate::failure::Failure;
use crate::value::{RawTensor, Value};

/// The kind of an argument: its type in PyTorch's schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The type without its options.
    pub base: Base,
    /// Whether `None` is a value.
    pub is_optional: bool,
}

/// A type of PyTorch's schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// A tensor that is read.
    Tensor,
    /// A tensor that is written.
    TensorMut,
    /// A `float`.
    Float,
    /// An `int`.
    Int,
    /// A `bool`.
    Bool,
    /// A `str`.
    Text,
    /// A `dtype`.
    Element,
}

impl Kind {
    const fn of(base: Base) -> Self {
        Self { base, is_optional: false }
    }
}

/// The argument that a value belongs to.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The argument's name.
    pub name: &'static str,
    /// The device that has all tensors of the call.
    pub device: &'a Device,
}

impl At<'_> {
    fn wrong(&self, value: Value<'_>, wanted: &str) -> Failure {
        let found = match value {
            Value::None => "None",
            Value::Int(_) => "an int",
            Value::Float(_) => "a float",
            Value::Bool(_) => "a bool",
            Value::Text(_) => "a str",
            Value::Element(_) => "a dtype",
            Value::Tensor(_) => "a tensor",
        };
        Failure::argument(self.name, format_args!("is {found}; pass {wanted}"))
    }
}

/// A type that an argument of an operator can have:
///
/// | type | in Python |
/// | --- | --- |
/// | [`TensorView`], [`Tensor`] | a tensor that is read |
/// | [`TensorViewMut`], [`TensorMut`] | a tensor that is written, or a result |
/// | `f64`, `f32` | a `float` |
/// | `i64`, `usize` | an `int` |
/// | `bool` | a `bool` |
/// | `&str` | a `str` |
/// | [`Scalar`] | a `dtype` |
/// | `Option` of these | the same, or `None` |
///
/// A view has its element type and rank in its type, and a tensor of another one is an error that
/// names the argument. A view of `u32` takes tensors of int32 as well, by which PyTorch indexes: a
/// negative number has the bits of a large one. [`Tensor`] has any element type and rank.
pub trait Argument<'a>: Sized {
    /// The type in the operator's schema.
    const KIND: Kind;

    /// Converts a value.
    ///
    /// # Errors
    ///
    /// `TMA0566`, with the name of the argument.
    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure>;
}

/// A tensor that is read, of any element type and rank.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    raw: RawTensor<'a>,
    at: At<'a>,
}

/// A tensor that is written, of any element type and rank.
#[derive(Debug)]
pub struct TensorMut<'a> {
    raw: RawTensor<'a>,
    at: At<'a>,
}

macro_rules! tensor {
    ($Tensor:ident) => {
        impl<'a> $Tensor<'a> {
            /// Returns the type of the elements. `tf32` is stored as `f32`.
            pub fn element(&self) -> Scalar {
                self.raw.element
            }

            /// Returns the number of dimensions.
            pub fn rank(&self) -> usize {
                self.raw.shape.len()
            }

            /// Returns the extents, outermost first.
            pub fn shape(&self) -> &'a [i64] {
                self.raw.shape
            }

            /// Returns the distances between elements, outermost first.
            pub fn strides(&self) -> &'a [i64] {
                self.raw.strides
            }

            /// Returns the failure that the tensor does not fit, for a reason such as `has 3
            /// dimensions; pass one of 2`.
            pub fn refuse(&self, why: impl std::fmt::Display) -> Failure {
                Failure::argument(self.at.name, why)
            }

            /// Returns the numbers of a view, or an error if the tensor has another element type or
            /// rank.
            fn extents<T: tma_runtime::Scalar, const N: usize>(
                &self,
            ) -> Result<([usize; N], [usize; N]), Failure> {
                let RawTensor { element, shape, strides, .. } = self.raw;
                if !element::holds(element, T::ELEMENT) {
                    let [found, wanted] = [element, T::ELEMENT].map(element::name);
                    return Err(self.refuse(format_args!("has elements of {found}; pass {wanted}")));
                }
                let rank =
                    |_| self.refuse(format_args!("has {} dimensions, not {N}; pass one of {N}", shape.len()));
                let shape: [i64; N] = shape.try_into().map_err(rank)?;
                let strides: [i64; N] = strides.try_into().map_err(rank)?;
                if shape.iter().chain(&strides).any(|number| *number < 0) {
                    return Err(self.refuse("has a negative stride; pass a copy of it"));
                }
                Ok((shape.map(|extent| extent as usize), strides.map(|stride| stride as usize)))
            }
        }
    };
}

tensor!(Tensor);
tensor!(TensorMut);

impl<'a> Tensor<'a> {
    /// Returns a view for launches.
    ///
    /// # Errors
    ///
    /// `TMA0566` if the tensor has another element type or rank, or a negative stride.
    pub fn view<T: tma_runtime::Scalar, const N: usize>(&self) -> Result<TensorView<'a, T, N>, Failure> {
        let (shape, strides) = self.extents::<T, N>()?;
        // SAFETY: the caller of the library passed a tensor of these elements, which it keeps for
        // `'a` and until what is queued in its stream has run.
        Ok(unsafe { TensorView::from_raw(self.at.device, self.raw.data, shape, strides) })
    }
}

impl<'a> TensorMut<'a> {
    /// Returns a view for launches.
    ///
    /// # Errors
    ///
    /// `TMA0566` if the tensor has another element type or rank, or elements that overlap.
    pub fn view<T: tma_runtime::Scalar, const N: usize>(self) -> Result<TensorViewMut<'a, T, N>, Failure> {
        let (shape, strides) = self.extents::<T, N>()?;
        if !self.raw.is_disjoint() {
            return Err(self.refuse("has elements that share memory; pass a tensor that is not expanded"));
        }
        // SAFETY: as for `Tensor`; and nothing else uses the tensor before what is queued has run,
        // as the caller of the library promises of what is written.
        Ok(unsafe { TensorViewMut::from_raw(self.at.device, self.raw.data, shape, strides) })
    }
}

impl<'a> Argument<'a> for Tensor<'a> {
    const KIND: Kind = Kind::of(Base::Tensor);

    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure> {
        match value {
            Value::Tensor(raw) => Ok(Self { raw, at }),
            other => Err(at.wrong(other, "a tensor")),
        }
    }
}

impl<'a> Argument<'a> for TensorMut<'a> {
    const KIND: Kind = Kind::of(Base::TensorMut);

    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure> {
        match value {
            Value::Tensor(raw) => Ok(Self { raw, at }),
            other => Err(at.wrong(other, "a tensor")),
        }
    }
}

impl<'a, T: tma_runtime::Scalar, const N: usize> Argument<'a> for TensorView<'a, T, N> {
    const KIND: Kind = Tensor::KIND;

    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure> {
        Tensor::read(value, at)?.view()
    }
}

impl<'a, T: tma_runtime::Scalar, const N: usize> Argument<'a> for TensorViewMut<'a, T, N> {
    const KIND: Kind = TensorMut::KIND;

    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure> {
        TensorMut::read(value, at)?.view()
    }
}

impl<'a> Argument<'a> for f64 {
    const KIND: Kind = Kind::of(Base::Float);

    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure> {
        match value {
            Value::Float(value) => Ok(value),
            Value::Int(value) => Ok(value as Self),
            other => Err(at.wrong(other, "a float")),
        }
    }
}

impl<'a> Argument<'a> for f32 {
    const KIND: Kind = f64::KIND;

    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure> {
        Ok(f64::read(value, at)? as Self)
    }
}

impl<'a> Argument<'a> for i64 {
    const KIND: Kind = Kind::of(Base::Int);

    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure> {
        match value {
            Value::Int(value) => Ok(value),
            other => Err(at.wrong(other, "an int")),
        }
    }
}

impl<'a> Argument<'a> for usize {
    const KIND: Kind = i64::KIND;

    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure> {
        let number = i64::read(value, at)?;
        number.try_into().map_err(|_| {
            Failure::argument(at.name, format_args!("is {number}; pass a number that is not negative"))
        })
    }
}

impl<'a> Argument<'a> for bool {
    const KIND: Kind = Kind::of(Base::Bool);

    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure> {
        match value {
            Value::Bool(value) => Ok(value),
            other => Err(at.wrong(other, "a bool")),
        }
    }
}

impl<'a> Argument<'a> for &'a str {
    const KIND: Kind = Kind::of(Base::Text);

    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure> {
        match value {
            Value::Text(value) => Ok(value),
            other => Err(at.wrong(other, "a str")),
        }
    }
}

impl<'a> Argument<'a> for Scalar {
    const KIND: Kind = Kind::of(Base::Element);

    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure> {
        match value {
            Value::Element(value) => Ok(value),
            other => Err(at.wrong(other, "a dtype")),
        }
    }
}

impl<'a, A: Argument<'a>> Argument<'a> for Option<A> {
    const KIND: Kind = Kind { is_optional: true, ..A::KIND };

    fn read(value: Value<'a>, at: At<'a>) -> Result<Self, Failure> {
        match value {
            Value::None => Ok(None),
            other => A::read(other, at).map(Some),
        }
    }
}
