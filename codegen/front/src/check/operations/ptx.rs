//! `ptx!`: operands that registers hold, and declared effects.

use crate::check::plain_polls::shared_name;
use crate::check::rules::Rules;
use crate::diag::Sink;
use crate::diag::mistake;
use crate::ir::{Expr, ExprKind, Kernel, Ptx, Scalar, Type};

pub(super) fn operands(rules: &Rules<'_>, ptx: &Ptx, sink: &mut Sink) {
    for output in &ptx.outputs {
        let local = rules.kernel.local(output.dest);
        if !is_register(&local.ty) {
            sink.error(mistake::Ptx::Operand((&local.ty).into()), local.span);
        }
    }
    for access in &ptx.accesses {
        if !is_memory(&access.object.ty) {
            sink.error(mistake::Ptx::NotMemory((&access.object.ty).into()), access.object.span);
        }
    }
    for input in &ptx.inputs {
        if is_memory(&input.ty) {
            address(rules, ptx, input, sink);
        } else if !is_register(&input.ty) {
            sink.error(mistake::Ptx::Operand((&input.ty).into()), input.span);
        }
    }
}

/// Checks that the effects name the object whose address is passed.
fn address(rules: &Rules<'_>, ptx: &Ptx, input: &Expr, sink: &mut Sink) {
    let name = input.to_string();
    if !ptx.accesses.iter().any(|access| access.object.to_string() == name) {
        let object = name_of(rules.kernel, input);
        sink.error(mistake::Ptx::Undeclared { object }, input.span);
    }
}

/// Whether an operand of PTX has this type. Source: PTX ISA, "Instruction Operands": no register
/// that instructions compute with has 8 bits.
fn is_register(ty: &Type) -> bool {
    ty.as_scalar().is_some_and(|scalar| scalar == Scalar::Bool || scalar.bytes() > 1)
}

/// Whether instructions can access it through an address.
fn is_memory(ty: &Type) -> bool {
    matches!(ty, Type::Global(_) | Type::Tile(_) | Type::Barrier | Type::SharedArray(..))
}

fn name_of(kernel: &Kernel, object: &Expr) -> String {
    if let ExprKind::Param(param) = &object.kind {
        return kernel.param(*param).name.clone();
    }
    shared_name(kernel, object).unwrap_or_else(|| object.ty.to_string())
}
