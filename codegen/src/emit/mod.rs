//! LLVM to PTX text.

mod accesses;
mod batch;
mod llvm;
mod locations;

pub(crate) use batch::Batch;
use llvm::{Module, assembly};

use inkwell::context::Context;

use crate::backend::{BackendError, Source};
use crate::check::{CheckedKernel, TargetKernel, layout};
use crate::ir::{SharedId, SharedVar, Type};
use crate::lower::{Lowered, NewSums, around_stops, lower, share_in_part, with_fences};
use crate::{Checks, dump, escape};

/// Compiles a kernel to PTX. The same kernel gives the same text, byte for byte.
///
/// # Errors
/// See [`BackendError`].
pub(crate) fn ptx(
    kernel: &TargetKernel,
    source: &Source<'_>,
    checks: Checks,
) -> Result<String, BackendError> {
    let text = assembly(&lowered(kernel, source, checks, NewSums::Stay)?)?;
    finished(kernel, source, checks, text)
}

/// The PTX of a kernel, of which LLVM has made this text.
fn finished(
    kernel: &TargetKernel,
    source: &Source<'_>,
    checks: Checks,
    text: String,
) -> Result<String, BackendError> {
    let text = match share_in_part(&text) {
        true => assembly(&lowered(kernel, source, checks, NewSums::Move)?)?,
        false => text,
    };
    let body = around_stops(&body(&with_fences(&text)));
    let accesses = accesses::comments(kernel.kernel().kernel());
    let ptx = header(kernel.kernel(), source) + &body + &accesses;
    dump::stage("ptx", &ptx);
    Ok(ptx)
}

/// A kernel as LLVM gets it.
fn lowered(
    kernel: &TargetKernel,
    source: &Source<'_>,
    checks: Checks,
    new_sums: NewSums,
) -> Result<Module, BackendError> {
    let path = escape::source(source.path);
    let context = Context::create();
    let Lowered { module, ptx_version } = lower(&context, kernel, &Source { path: &path }, checks, new_sums)?;
    Ok(Module {
        kernel: kernel.kernel().kernel().path(),
        text: module.print_to_string().to_string(),
        target: kernel.target(),
        ptx_version,
    })
}

/// Names the kernel, the compiler, the source, and what lies where in shared memory: the
/// simulator's findings say it so.
fn header(checked: &CheckedKernel, source: &Source<'_>) -> String {
    let kernel = checked.kernel();
    let line = kernel.span.start().line;
    let mut header = format!(
        "// kernel: {}\n// generator: tma-codegen {}\n// source: {}:{line}\n",
        escape::ascii(&kernel.path()),
        env!("CARGO_PKG_VERSION"),
        escape::ascii(&escape::source(source.path)),
    );
    let places = (0..).map(|id| checked.layout().offset(SharedId(id))).zip(&kernel.shared);
    let mut places: Vec<_> = places.collect();
    places.sort_by_key(|(from, _)| *from);
    for (from, SharedVar { name, ty, .. }) in places {
        let to = u64::from(from) + layout::size(ty);
        let by = match ty {
            Type::Stages(thing, _) => format!(" by {}", layout::stride(thing)),
            _ => String::new(),
        };
        header += &format!("// shared {from}..{to}{by} {}: {ty}\n", escape::ascii(name));
    }
    header + "\n"
}

/// What LLVM printed, without its comments and without what only DWARF sections would refer to.
fn body(text: &str) -> String {
    const NOISE: [&str; 5] = ["//", "$L__func_begin", "$L__func_end", "$L__tmp", ".section"];
    let kept = text.lines().filter(|line| !NOISE.iter().any(|noise| line.trim_start().starts_with(noise)));
    // The braces around a call are followed by a comment.
    let bare = kept.map(|line| match line.split_once(" //") {
        Some((brace @ ("\t{" | "\t}"), _)) => brace,
        _ => line,
    });
    bare.skip_while(|line| line.is_empty()).flat_map(|line| [line, "\n"]).collect()
}
