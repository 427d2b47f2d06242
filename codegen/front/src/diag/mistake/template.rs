//! Modules that are instantiated from templates, and imports of modules from others.

use crate::diag::Code;
use crate::diag::text::Text;
use crate::diag::wording::listed;

/// A mistake in a `#[tma_module(from = ..)]`.
#[derive(Clone, Debug)]
pub enum Template {
    /// A path that leads to no template.
    Unfound { path: String, why: Unfound },
    /// A function of the template that may not be replaced. `open` are those that may.
    Closed { function: String, open: Vec<String> },
    /// A function that neither replaces one of the template nor is called.
    ReplacesNothing { function: String, open: Vec<String> },
    /// A replacement that is not compatible with the original's signature, `wanted`.
    Signature { function: String, wanted: String },
    /// A pattern that matches none of the instances.
    NoInstance { pattern: String, names: Vec<String> },
    /// Instances of a kernel that is not among the template's generic `kernels`.
    NoGenericKernel { kernel: String, kernels: Vec<String> },
    /// An unknown option of `#[tma_device]`.
    DeviceOption(String),
}

/// The reason why a template, or an item that is imported, is not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfound {
    /// The sources of the package are unknown.
    Package,
    /// The path leads to no module of this name.
    Module(String),
    /// The module is not a `#[tma_module]`.
    Unmarked,
    /// The module is itself instantiated from a template.
    Made,
    /// The build script has not looked for it.
    Unseen,
    /// The module has no such item.
    Item(String),
    /// The module imports items of the importing one, directly or indirectly.
    Cycle,
}

impl Template {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Unfound { path, why } => why.text(path),
            Self::Closed { function, open } => Text::new(
                Code::ClosedFunction,
                format!("the template does not allow `{function}` to be replaced"),
            )
            .help(format!(
                "mark `{function}` as `#[tma_device(open)]` in the template, or rename yours; {}",
                replaceable(open)
            )),
            Self::ReplacesNothing { function, open } => Text::new(
                Code::ClosedFunction,
                format!("`{function}` replaces no function of the template, and is never called"),
            )
            .help(format!("call it, or remove it; {}", replaceable(open))),
            Self::Signature { function, wanted } => Text::new(
                Code::ReplacementSignature,
                format!("the signature of `{function}` must begin like that of the function it replaces"),
            )
            .note(format!("the function of the template is `{wanted}`"))
            .help(
                "keep its parameters, generics and result; add parameters of your own, each a name, after \
                 them",
            ),
            Self::NoInstance { pattern, names } => {
                let text = Text::new(
                    Code::TemplateInstance,
                    format!("`{pattern}` matches no instance of the template"),
                );
                match &names[..] {
                    [] => text.help("remove `only`: the kernels of the template have no instances"),
                    names => text.help(format!("use one of {}, or `*` in place of any text", some_of(names))),
                }
            }
            Self::NoGenericKernel { kernel, kernels } => {
                let text = Text::new(
                    Code::TemplateInstance,
                    format!("the template has no generic kernel `{kernel}`"),
                );
                match &kernels[..] {
                    [] => text.help("remove `instances`: no kernel of the template is generic"),
                    kernels => text.help(format!("use {}", some_of(kernels))),
                }
            }
            Self::DeviceOption(option) => {
                Text::new(Code::Attribute, format!("`tma_device` has no option `{option}`")).help(
                    "write `#[tma_device]`, or `#[tma_device(open)]` to let modules that are instantiated \
                     from this one replace it",
                )
            }
        }
    }
}

impl Unfound {
    fn text(&self, path: &str) -> Text {
        let text = |why: &str| Text::new(Code::NoTemplate, format!("cannot find template `{path}`: {why}"));
        match self {
            Self::Package => text("the sources of its package are unknown").help(
                "add the package to `[dependencies]`, with `links = \"..\"` in its `Cargo.toml` and \
                 `tma_codegen::build()` in its `build.rs`; begin the path with its name, or with `crate`",
            ),
            Self::Module(name) => text(&format!("there is no module `{name}` at this path"))
                .help("write the path of the module itself, through the modules that it is declared in"),
            Self::Unmarked => text("it is not a `#[tma_module]`")
                .help("mark it `#[tma_module]`: a template contains everything that its kernels use"),
            Self::Made => {
                text("it is itself instantiated from a template").help("name that template instead")
            }
            Self::Unseen => text("the build script has not looked for it")
                .help("build again, with `fn main() { tma_codegen::build() }` in `build.rs`"),
            Self::Item(name) => text(&format!("it has no item `{name}`")).help("name another module"),
            Self::Cycle => text("it is made from itself").help("name another module"),
        }
    }
}

/// A mistake in the imports of a `#[tma_module]`.
#[derive(Clone, Debug)]
pub enum Import {
    /// A name in a kernel that is imported, but that kernels cannot use.
    Unusable { name: String, path: String, why: Unfound },
    /// A module that rustc finds at a path, and that differs from the one that the build script has
    /// found there. rustc reports it.
    OtherModule { path: String },
}

impl Import {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Unusable { name, path, why } => {
                let text = |reason: &str| {
                    Text::new(
                        Code::Import,
                        format!("kernels cannot use `{name}`, imported as `{path}`: {reason}"),
                    )
                };
                match why {
                    Unfound::Package => text("the sources of its package are unknown").help(
                        "add the package to `[dependencies]`, with `links = \"..\"` in its `Cargo.toml` and \
                         `tma_codegen::build()` in its `build.rs`",
                    ),
                    Unfound::Module(module) => text(&format!("there is no module `{module}` at this path"))
                        .help("write the path of the item's own `#[tma_module]`"),
                    Unfound::Unmarked => text("it is not in a `#[tma_module]`").help(
                        "mark the `mod { .. }` that contains it `#[tma_module]`, and name that module in the \
                         `use`",
                    ),
                    Unfound::Made => {
                        text("its module is instantiated from a template").help("import it from the template")
                    }
                    Unfound::Unseen => text("the build script has not looked for it")
                        .help("build again, with `fn main() { tma_codegen::build() }` in `build.rs`"),
                    Unfound::Item(item) => text(&format!("the module shares no `{item}`")).help(format!(
                        "make `{item}` a constant, a type alias, a `const` or `#[tma_device]` function, or a struct \
                         that derives `Copy`"
                    )),
                    Unfound::Cycle => text("its module imports items of this one")
                        .help("move what both use into a module of its own, and import it in both"),
                }
            }
            Self::OtherModule { path } => Text::new(
                Code::Import,
                format!("`{path}` is another module here than the one that the build script has found"),
            )
            .help(
                "build again if its source has changed; otherwise begin the path with `crate`, `super` or \
                 the name of a dependency, without a renamed or hidden module",
            ),
        }
    }
}

fn replaceable(open: &[String]) -> String {
    match open {
        [] => "none of the template's functions is open".to_owned(),
        [one] => format!("the template's only open function is `{one}`"),
        open => format!("the template's open functions are {}", listed(open)),
    }
}

/// Lists as many names as are readable in an error. A product may have made hundreds.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 8;
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => listed(names),
        Some(more) => format!("{}, .. and {more} more", listed(&names[..SHOWN])),
    }
}
