//! Requirements that the build does not meet: PTX, or instructions of the target.

use crate::diag::Code;
use crate::diag::text::Text;
use crate::target::{Feature, Target};

/// Something that the build lacks for a kernel.
#[derive(Clone, Debug)]
pub(crate) enum Build {
    /// The package has no build script that compiles its kernels.
    NoScript { kernel: String },
    /// The build script has compiled no PTX for a kernel in such a file.
    NotSeen { kernel: String, file: SourceFile },
    /// The target lacks an instruction that the word requires.
    Feature { target: Target, feature: Feature, word: &'static str },
}

/// The file of a kernel, from the build script's perspective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceFile {
    /// A file that the build script reads when it runs.
    Read(String),
    /// A file that it reads only if its folder is named.
    NotRead(String),
    /// No file contains the kernel in this form.
    Unknown,
}

impl Build {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::NoScript { kernel } => {
                no_ptx(kernel, "this package has no build script that compiles kernels").help(
                    "`build.rs` must hold `fn main() { tma_codegen::build() }`, and `Cargo.toml` must name \
                     `tma-codegen` under `[build-dependencies]`",
                )
            }
            Self::NotSeen { kernel, file: SourceFile::Read(name) } => {
                no_ptx(kernel, &format!("the build script has not seen `{name}` as it is now"))
                    .help("build again: the script runs again and finds it")
            }
            Self::NotSeen { kernel, file: SourceFile::NotRead(name) } => {
                let folders = "it reads `src`, `examples`, `tests` and `benches`";
                no_ptx(kernel, &format!("the build script did not read `{name}`: {folders}")).help(
                    "name the file or its folder in `build.rs`: \
                     `fn main() { tma_codegen::Build::new().source(\"..\").run_or_exit() }`",
                )
            }
            Self::NotSeen { kernel, file: SourceFile::Unknown } => {
                let why = "the build script did not see this kernel: it reads the files in `src`, `examples`, \
                           `tests` and `benches`, and not what macros make";
                no_ptx(kernel, why).help("write the kernel out instead of letting a macro make it")
            }
            Self::Feature { target, feature, word } => {
                let others = Target::ALL.into_iter().filter(|other| other.has(*feature));
                let having: Vec<_> = others.map(Target::name).collect();
                let verb = if having.len() == 1 { "has" } else { "have" };
                let message = format!("{target} has no `{feature}`, which `{word}` needs");
                Text::new(Code::TargetFeature, message)
                    .note(format!("the target is {target}; {} {verb} it", having.join(", ")))
                    .help("name another target in `build.rs`: `Build::new().target(Target::Sm90a)`")
            }
        }
    }
}

fn no_ptx(kernel: &str, why: &str) -> Text {
    Text::new(Code::MissingPtx, format!("there is no PTX for `{kernel}`: {why}"))
}
