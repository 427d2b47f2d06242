//! Attributes and their positions.

use crate::diag::Code;
use crate::diag::text::Text;
use crate::diag::wording::given;
use crate::ir::Span;

/// A mistake in an attribute, or in its position.
#[derive(Clone, Debug)]
pub(crate) enum Attribute {
    /// A kernel's attribute that does not parse, with syn's message.
    Malformed(String),
    /// A list of instances that does not parse, with syn's message.
    MalformedInstances(String),
    /// An option that occurs twice.
    Twice { option: String, first: Span },
    /// Both `checked` and `unchecked`. The span is that of the other option.
    BothChecks { other: Span },
    /// An unknown option.
    UnknownOption(String),
    /// `protocol = ` with this value instead of `trusted`.
    Protocol(String),
    /// An exemption from the protocol's rules without a reason.
    TrustedWithoutReason(Trusted),
    /// A module's attribute that does not parse, with syn's message.
    MalformedModule(String),
    /// An option that modules do not have.
    UnknownModuleOption(String),
    /// `only` without `from`.
    OnlyWithoutFrom,
    /// A kernel without `threads`.
    NoThreads,
    /// `nonportable_cluster` without a cluster.
    NonportableAlone,
    /// `option = [..]` with a wrong number of extents.
    Dimensions { option: &'static str, found: usize },
    /// `#[tma_device]` outside of a `#[tma_module]`.
    LoneDevice,
    /// `#[tma_module] mod name;`.
    ModuleWithoutBody,
    /// A kernel in an `impl` or a trait.
    Method { kernel: String },
    /// `#[cfg(..)]` inside a kernel.
    ConditionInKernel,
    /// `#[cfg(..)]` on or inside an item that a kernel uses.
    ConditionOnUsed,
}

/// The subject of an exemption from the protocol's rules.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trusted {
    /// A whole kernel.
    Kernel,
    /// A statement.
    Statement,
}

impl Attribute {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Malformed(error) => Text::new(Code::Attribute, format!("malformed attribute: {error}"))
                .help("write `#[tma_kernel(threads = 128)]`"),
            Self::MalformedInstances(error) => {
                Text::new(Code::Attribute, format!("malformed attribute: {error}"))
                    .help("write `name = <..>` or `T in [..]`, with commas between them")
            }
            Self::Twice { option, first } => {
                Text::new(Code::Attribute, format!("`{option}` is given twice"))
                    .label(*first, "first given here")
                    .help("keep one of them")
            }
            Self::BothChecks { other } => {
                Text::new(Code::Attribute, "a kernel cannot be both `checked` and `unchecked`")
                    .label(*other, "the other is given here")
                    .help("keep one of them; with neither, builds with debug assertions check it")
            }
            Self::UnknownOption(option) => {
                Text::new(Code::Attribute, format!("`tma_kernel` has no option `{option}`")).help(
                    "the options are `threads`, `min_blocks`, `max_registers`, `cluster`, `nonportable_cluster`, \
                     `checked`, `unchecked`, `protocol` and `instances(..)`",
                )
            }
            Self::Protocol(value) => {
                Text::new(Code::Attribute, format!("`protocol` is `trusted`, not `{value}`"))
                    .help("write `protocol = trusted(\"reason\")`, or remove it: then the protocol is judged")
            }
            Self::TrustedWithoutReason(of) => {
                let (what, form) = match of {
                    Trusted::Kernel => ("the protocol of this kernel", "protocol = trusted(\"reason\")"),
                    Trusted::Statement => ("this statement", "#[trusted = \"reason\"]"),
                };
                Text::new(Code::TrustedReason, format!("{what} is trusted, and no reason is given"))
                    .help(format!("say why it is right: `{form}`"))
            }
            Self::MalformedModule(error) => {
                Text::new(Code::Attribute, format!("malformed attribute: {error}")).help(
                    "write `#[tma_module]`, or `#[tma_module(from = package::module, only = [\"bf16_*\"])]` for a \
                     module that is made from another one",
                )
            }
            Self::UnknownModuleOption(option) => {
                Text::new(Code::Attribute, format!("`tma_module` has no option `{option}`"))
                    .help("the options are `from`, and `only` beside it")
            }
            Self::OnlyWithoutFrom => {
                Text::new(Code::Attribute, "`only` chooses among the instances of a template, and there is none")
                    .help("write `from = package::module` beside it, or name fewer instances in the kernels")
            }
            Self::NoThreads => {
                Text::new(Code::Attribute, "the attribute does not say how many threads a block has")
                    .help("write `#[tma_kernel(threads = 128)]`")
            }
            Self::NonportableAlone => {
                Text::new(Code::Attribute, "`nonportable_cluster` is about clusters, and the kernel has none")
                    .help("write `cluster = 16` or `cluster = launch` beside it, or remove it")
            }
            Self::Dimensions { option, found } => {
                let message = format!("`{option}` has 1 to 3 dimensions, but {}", given(*found));
                Text::new(Code::Attribute, message).help(format!("write `{option} = [x, y, z]`"))
            }
            Self::LoneDevice => {
                Text::new(Code::Attribute, "a device function stands outside of a `#[tma_module]`")
                    .help("put it and the kernels that call it into `#[tma_module] mod name { .. }`")
            }
            Self::ModuleWithoutBody => {
                Text::new(Code::UnsupportedStatement, "a `#[tma_module]` needs its body here")
                    .help("write `mod name { .. }`: an attribute does not see into another file")
            }
            Self::Method { kernel } => {
                Text::new(Code::KernelPlace, format!("the kernel `{kernel}` stands in an `impl` or a trait"))
                    .help(
                        "move it out, into the module: a kernel becomes a module of its name, and those stand in \
                         modules and functions",
                    )
            }
            Self::ConditionInKernel => {
                Text::new(Code::Attribute, "a kernel is not compiled in part").help(
                    "choose with a const generic or a constant and `if`, or put the condition on the whole item",
                )
            }
            Self::ConditionOnUsed => {
                Text::new(Code::Attribute, "what a kernel uses is not compiled in part").help(
                    "put the condition on the whole `#[tma_module]`, of which there may be two, or on what only the \
                     host uses",
                )
            }
        }
    }
}
