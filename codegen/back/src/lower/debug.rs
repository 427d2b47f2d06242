//! Line information for profilers, sanitizers and the simulator.
//!
//! Every instruction carries the line and column of its statement, or of its expression if that is
//! on another line. `emit` reduces this to bare `.loc` directives.

use inkwell::context::Context;
use inkwell::debug_info::{
    AsDIScope, DIFlags, DIFlagsConstants, DILocation, DISubprogram, DWARFEmissionKind, DWARFSourceLanguage,
    DebugInfoBuilder, debug_metadata_version,
};
use inkwell::module::{FlagBehavior, Module};
use tma_front::ir::{Kernel, Span};

use super::{Cx, Lower, narrow};

/// The debug information of one function.
pub(super) struct Lines<'c> {
    builder: DebugInfoBuilder<'c>,
    function: DISubprogram<'c>,
    /// The line and location of the instructions emitted now.
    current: Option<(u32, DILocation<'c>)>,
}

/// Creates the debug information of the file and the function.
pub(super) fn describe<'c>(
    module: &Module<'c>,
    kernel: &Kernel,
    entry: &str,
    path: &str,
) -> Lower<Lines<'c>> {
    let (builder, unit) = module.create_debug_info_builder(
        true,
        DWARFSourceLanguage::Rust,
        path,
        "",
        concat!("tma-codegen ", env!("CARGO_PKG_VERSION")),
        true,
        "",
        0,
        "",
        DWARFEmissionKind::LineTablesOnly,
        0,
        false,
        false,
        "",
        "",
    );
    // Without this version, LLVM drops all debug information.
    let version = module.get_context().i32_type().const_int(u64::from(debug_metadata_version()), false);
    module.add_basic_value_flag("Debug Info Version", FlagBehavior::Warning, version);
    let file = unit.get_file();
    let line = line_of(kernel.span)?;
    let ty = builder.create_subroutine_type(file, None, &[], DIFlags::ZERO);
    let function = builder.create_function(
        file.as_debug_info_scope(),
        entry,
        None,
        file,
        line,
        ty,
        false,
        true,
        line,
        DIFlags::ZERO,
        true,
    );
    Ok(Lines { builder, function, current: None })
}

impl<'c> Lines<'c> {
    /// Returns the function's description, for LLVM's function.
    pub(super) fn function(&self) -> DISubprogram<'c> {
        self.function
    }

    /// Finalises the debug information.
    pub(super) fn finish(&self) {
        self.builder.finalize();
    }

    fn locate(&mut self, context: &'c Context, span: Span) -> Lower<DILocation<'c>> {
        let (line, column) = line_and_column(span)?;
        let scope = self.function.as_debug_info_scope();
        let location = self.builder.create_debug_location(context, line, column, scope, None);
        self.current = Some((line, location));
        Ok(location)
    }
}

/// Attributes the instructions that follow to the statement at `span`.
pub(super) fn at_stmt(cx: &mut Cx<'_, '_>, span: Span) -> Lower<()> {
    let location = cx.lines.locate(cx.context, span)?;
    cx.builder.set_current_debug_location(location);
    Ok(())
}

/// Attributes the instructions that `f` emits to the expression at `span`, and later ones to the
/// statement again.
pub(super) fn at_expr<'c, 'k, T>(
    cx: &mut Cx<'c, 'k>,
    span: Span,
    f: impl FnOnce(&mut Cx<'c, 'k>) -> Lower<T>,
) -> Lower<T> {
    let (outer, line) = (cx.lines.current, line_of(span)?);
    if outer.is_some_and(|(current, _)| current == line) {
        return f(cx);
    }
    at_stmt(cx, span)?;
    let value = f(cx);
    if let Some((_, location)) = outer {
        cx.lines.current = outer;
        cx.builder.set_current_debug_location(location);
    }
    value
}

/// Returns line and column of the beginning of `span`, both from 1.
pub(super) fn line_and_column(span: Span) -> Lower<(u32, u32)> {
    let column = narrow(span.start().column as u64 + 1)?;
    Ok((line_of(span)?, column))
}

/// Returns the line of the beginning of `span`, from 1.
pub(super) fn line_of(span: Span) -> Lower<u32> {
    narrow(span.start().line as u64)
}
