//! Requirements that the build does not meet: PTX, or instructions of the target.

use crate::diag::Code;
use crate::diag::text::Text;
use crate::target::{Feature, Target};

/// Something that the build lacks for a kernel.
#[derive(Clone, Debug)]
pub enum Build {
    /// The package has no build script that compiles its kernels.
    NoScript { kernel: String },
    /// The build script has compiled no PTX for a kernel in such a file.
    NotSeen { kernel: String, file: SourceFile },
    /// The target lacks an instruction that the word requires.
    Feature { target: Target, feature: Feature, word: &'static str },
}

/// The file of a kernel, from the build script's perspective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceFile {
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
                    "write `fn main() { tma_codegen::build() }` in `build.rs`, and add `tma-codegen` to the \
                     `[build-dependencies]` in `Cargo.toml`",
                )
            }
            Self::NotSeen { kernel, file: SourceFile::Read(name) } => {
                no_ptx(kernel, &format!("the build script has not seen the current `{name}`"))
                    .help("build again: the build script then reads the file")
            }
            Self::NotSeen { kernel, file: SourceFile::NotRead(name) } => {
                let folders = "only `src`, `examples`, `tests` and `benches`";
                no_ptx(kernel, &format!("the build script does not read `{name}`, {folders}")).help(
                    "add the file or its folder in `build.rs`: \
                     `fn main() { tma_codegen::Build::new().source(\"..\").run_or_exit() }`",
                )
            }
            Self::NotSeen { kernel, file: SourceFile::Unknown } => {
                let why = "the build script did not find this kernel: it reads the files in `src`, \
                           `examples`, `tests` and `benches`, and expands no macros";
                no_ptx(kernel, why).help("write the kernel out instead of generating it with a macro")
            }
            Self::Feature { target, feature, word } => {
                let others = Target::ALL.into_iter().filter(|other| other.has(*feature));
                let having: Vec<_> = others.map(Target::name).collect();
                let verb = if having.len() == 1 { "has" } else { "have" };
                let message = format!("`{word}` requires `{feature}`, which {target} does not have");
                Text::new(Code::TargetFeature, message)
                    .note(format!(
                        "the target of this build is {target}; {} {verb} `{feature}`",
                        having.join(", ")
                    ))
                    .help("select another target in `build.rs`: `Build::new().target(Target::Sm90a)`")
            }
        }
    }
}

fn no_ptx(kernel: &str, why: &str) -> Text {
    Text::new(Code::MissingPtx, format!("no PTX for `{kernel}`: {why}"))
}
