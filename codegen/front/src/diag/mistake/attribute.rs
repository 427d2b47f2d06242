//! Attributes and their positions.

use crate::diag::Code;
use crate::diag::text::Text;
use crate::diag::wording::given;
use crate::ir::Span;

/// A mistake in an attribute, or in its position.
#[derive(Clone, Debug)]
pub enum Attribute {
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
    /// An option that needs a template, `only` or `instances`, without `from`.
    WithoutFrom { option: String },
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
pub enum Trusted {
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
                    .help("write `name = <..>` or `T in [..]`, separated by commas")
            }
            Self::Twice { option, first } => {
                Text::new(Code::Attribute, format!("`{option}` is specified twice"))
                    .label(*first, "first specified here")
                    .help("remove one of them")
            }
            Self::BothChecks { other } => {
                Text::new(Code::Attribute, "a kernel cannot be both `checked` and `unchecked`")
                    .label(*other, "the other option")
                    .help("remove one of them; without either, builds with debug assertions check the kernel")
            }
            Self::UnknownOption(option) => {
                Text::new(Code::Attribute, format!("`tma_kernel` has no option `{option}`")).help(
                    "use `threads`, `min_blocks`, `max_registers`, `cluster`, `nonportable_cluster`, \
                     `checked`, `unchecked`, `local_arrays`, `protocol` or `instances(..)`",
                )
            }
            Self::Protocol(value) => {
                Text::new(Code::Attribute, format!("`protocol` must be `trusted`, not `{value}`"))
                    .help("write `protocol = trusted(\"reason\")`, or remove it to have the protocol checked")
            }
            Self::TrustedWithoutReason(of) => {
                let (what, form) = match of {
                    Trusted::Kernel => ("the protocol of this kernel", "protocol = trusted(\"reason\")"),
                    Trusted::Statement => ("this statement", "#[trusted = \"reason\"]"),
                };
                Text::new(Code::TrustedReason, format!("{what} is trusted without a reason"))
                    .help(format!("state why it is correct: `{form}`"))
            }
            Self::MalformedModule(error) => {
                Text::new(Code::Attribute, format!("malformed attribute: {error}")).help(
                    "write `#[tma_module]`, or `#[tma_module(from = package::module, only = [\"bf16_*\"])]` \
                     to instantiate a template",
                )
            }
            Self::UnknownModuleOption(option) => {
                Text::new(Code::Attribute, format!("`tma_module` has no option `{option}`"))
                    .help("use `from`, or `from` together with `only` and `instances`")
            }
            Self::WithoutFrom { option } => {
                let text = format!("`{option}` requires `from`: it is about the instances of a template");
                Text::new(Code::Attribute, text)
                    .help("add `from = package::module`, or change `instances(..)` of the kernels")
            }
            Self::NoThreads => {
                Text::new(Code::Attribute, "missing `threads`, the number of threads of a block")
                    .help("write `#[tma_kernel(threads = 128)]`")
            }
            Self::NonportableAlone => Text::new(Code::Attribute, "`nonportable_cluster` requires `cluster`")
                .help("add `cluster = 16` or `cluster = launch`, or remove `nonportable_cluster`"),
            Self::Dimensions { option, found } => {
                let message = format!("`{option}` takes 1 to 3 extents, but {}", given(*found));
                Text::new(Code::Attribute, message).help(format!("write `{option} = [x, y, z]`"))
            }
            Self::LoneDevice => Text::new(Code::Attribute, "a device function must be in a `#[tma_module]`")
                .help("move it, and the kernels that call it, into `#[tma_module] mod name { .. }`"),
            Self::ModuleWithoutBody => Text::new(
                Code::UnsupportedStatement,
                "a `#[tma_module]` must have its body in the same file",
            )
            .help(
                "declare the file by `mod name;` without the attribute, and put `#[tma_module] pub mod \
                         kernels { .. }` into it: an attribute cannot see the contents of another file",
            ),
            Self::Method { kernel } => Text::new(
                Code::MisplacedKernel,
                format!("the kernel `{kernel}` cannot be in an `impl` or a trait"),
            )
            .help(
                "move it into the surrounding module: a kernel expands to a module of its name, which only \
                 modules and functions can contain",
            ),
            Self::ConditionInKernel => {
                Text::new(Code::Attribute, "`#[cfg(..)]` is not supported inside a kernel").help(
                    "branch on a const generic or a constant with `if`, or put the condition on the whole \
                     kernel",
                )
            }
            Self::ConditionOnUsed => {
                Text::new(Code::Attribute, "`#[cfg(..)]` is not supported on items that a kernel uses").help(
                    "put the condition on the whole `#[tma_module]`, of which there may be two, or on items \
                     that only the host uses",
                )
            }
        }
    }
}
