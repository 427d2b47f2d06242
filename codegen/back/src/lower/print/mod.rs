//! `printf!`, `assert!`, `trap` and, in [`tile`], `print_tile`.
//!
//! Except for `trap`, they call the two functions that the driver provides. Source: CUDA C++
//! Programming Guide, "Formatted Output" and "Assertion"; "CUDA Interoperability", "System Calls",
//! of the NVPTX ABI for `vprintf`. A kernel with multiplications must not call functions. It writes
//! a report of the failed assertion to host memory ([`tma_model::assertion`]), and the runtime
//! replaces its calls of `vprintf` when it loads the kernel.

pub(super) mod tile;

use std::fmt::Write as _;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Linkage;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, FunctionType};
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, IntValue, PointerValue};
use tma_front::abi;
use tma_front::ir::{Expr, PrintfPiece, Scalar, Span};

use super::ptxas::{self, no_calls};
use super::types::{Class, GENERIC, class, int, scalar_of};
use super::{Cx, Lower, cast, debug, expr, nvvm};
use crate::backend::BackendError;

/// Lowers `trap`, which stops the grid.
pub(super) fn trap(cx: &mut Cx<'_, '_>) -> Lower<()> {
    if cx.has_mma {
        nvvm::emit(cx, &nvvm::stop(ptxas::stop(cx)), &[])?;
    } else {
        cx.intrinsic("llvm.trap", &[], &[])?;
    }
    cx.builder.build_unreachable()?;
    cx.unreachable_from_here();
    Ok(())
}

/// Lowers `assert!`.
pub(super) fn assert_stmt(cx: &mut Cx<'_, '_>, condition: &Expr, message: &str, span: Span) -> Lower<()> {
    let condition = expr::int_value(cx, condition)?;
    assert(cx, condition, message, span)
}

/// Emits a check that stops the grid unless `condition` holds. It reports `message` and the start
/// of `span`.
///
/// The driver prints `file:line: function: .. Assertion `message` failed`, without a column. It
/// receives the line as a part of the file name, and the column as the line. Positions then read as
/// in Rust's own panics.
pub(super) fn assert<'c>(
    cx: &mut Cx<'c, '_>,
    condition: IntValue<'c>,
    message: &str,
    span: Span,
) -> Lower<()> {
    let held = cx.new_block("held");
    if no_calls::is_needed(cx) {
        let failed = no_calls::failure(cx, message, span)?;
        cx.builder.build_conditional_branch(condition, held, failed)?;
        cx.builder.position_at_end(held);
        return Ok(());
    }

    let failed = cx.new_block("failed");
    cx.builder.build_conditional_branch(condition, held, failed)?;
    cx.builder.position_at_end(failed);
    let pointer = BasicMetadataTypeEnum::from(cx.pointer_type(GENERIC));
    let ty = cx.context.void_type().fn_type(
        &[pointer, pointer, cx.context.i32_type().into(), pointer, cx.context.i64_type().into()],
        false,
    );
    let assert_fail = driver_function(cx, "__assertfail", ty);
    let noreturn = Attribute::get_named_enum_kind_id("noreturn");
    assert_fail.add_attribute(AttributeLoc::Function, cx.context.create_enum_attribute(noreturn, 0));
    let (line, column) = debug::line_and_column(span)?;
    let (path, function) = (format!("{}:{line}", cx.path), abi::entry(cx.kernel.kernel()));
    let bytes_per_character = cx.context.i64_type().const_int(1, false);
    let args = [
        string(cx, message).into(),
        string(cx, &path).into(),
        cx.u32_const(column).into(),
        string(cx, &function).into(),
        bytes_per_character.into(),
    ];
    cx.builder.build_call(assert_fail, &args, "")?;
    cx.builder.build_unreachable()?;
    cx.builder.position_at_end(held);
    Ok(())
}

/// Lowers `printf!`.
pub(super) fn printf(cx: &mut Cx<'_, '_>, pieces: &[PrintfPiece], args: &[Expr]) -> Lower<()> {
    let mut format = String::new();
    let mut printed = Vec::new();
    for piece in pieces {
        match piece {
            PrintfPiece::Text(text) => format.push_str(&text.replace('%', "%%")),
            PrintfPiece::Arg { index, hex, precision, width } => {
                let arg = args.get(*index).ok_or_else(|| {
                    BackendError::Unchecked(format!("argument {index} of `printf!`, which is not there"))
                })?;
                let (value, conversion) = argument(cx, arg, *hex)?;
                format.push('%');
                if let Some(width) = width {
                    _ = write!(format, "{width}");
                }
                match precision {
                    Some(precision) if conversion == "g" => _ = write!(format, ".{precision}f"),
                    _ => format.push_str(conversion),
                }
                printed.push(value);
            }
        }
    }
    call(cx, &format, &printed)
}

/// Calls `vprintf` with a format and its promoted arguments.
fn call<'c>(cx: &mut Cx<'c, '_>, format: &str, args: &[BasicValueEnum<'c>]) -> Lower<()> {
    let buffer = argument_buffer(cx, args)?;
    let pointer = BasicMetadataTypeEnum::from(cx.pointer_type(GENERIC));
    let ty = cx.context.i32_type().fn_type(&[pointer, pointer], false);
    let vprintf = driver_function(cx, "vprintf", ty);
    let format = string(cx, format);
    let printed = cx.builder.build_call(vprintf, &[format.into(), buffer.into()], "")?;
    no_calls::keep_apart(cx, printed);
    Ok(())
}

/// Emits an argument, promoted for C's variadic functions, and returns its conversion specifier.
fn argument<'c>(cx: &mut Cx<'c, '_>, arg: &Expr, hex: bool) -> Lower<(BasicValueEnum<'c>, &'static str)> {
    let scalar = scalar_of(&arg.ty)?;
    let value = expr::value(cx, arg)?;
    promoted(cx, value, scalar, hex)
}

/// Promotes a scalar for C's variadic functions, and returns its conversion specifier.
fn promoted<'c>(
    cx: &mut Cx<'c, '_>,
    value: BasicValueEnum<'c>,
    scalar: Scalar,
    hex: bool,
) -> Lower<(BasicValueEnum<'c>, &'static str)> {
    match class(scalar) {
        Class::Bool => {
            let (yes, no) = (string(cx, "true"), string(cx, "false"));
            Ok((cx.builder.build_select(int(value)?, yes, no, "")?, "s"))
        }
        Class::Int { signed } => {
            let wide = scalar.bytes() == 8;
            let ty = if wide { cx.context.i64_type() } else { cx.context.i32_type() };
            // In hexadecimal, a negative number is printed with its own bits, not sign-extended.
            let value = cx.builder.build_int_cast_sign_flag(int(value)?, ty, signed && !hex, "")?;
            let conversion = match (hex, signed, wide) {
                (true, _, false) => "x",
                (true, _, true) => "llx",
                (false, true, false) => "d",
                (false, true, true) => "lld",
                (false, false, false) => "u",
                (false, false, true) => "llu",
            };
            Ok((value.into(), conversion))
        }
        Class::Float | Class::Tf32 | Class::Float8 => Ok((cast::cast(cx, value, scalar, Scalar::F64)?, "g")),
    }
}

/// Stores the arguments to local memory, each aligned to its size.
fn argument_buffer<'c>(cx: &Cx<'c, '_>, args: &[BasicValueEnum<'c>]) -> Lower<PointerValue<'c>> {
    if args.is_empty() {
        return Ok(cx.pointer_type(GENERIC).const_null());
    }
    let types: Vec<_> = args.iter().map(BasicValueEnum::get_type).collect();
    let ty = cx.context.struct_type(&types, false);
    let buffer = cx.allocas.build_alloca(ty.as_basic_type_enum(), "printed")?;
    for (index, arg) in (0..).zip(args) {
        let location = cx.builder.build_struct_gep(ty, buffer, index, "")?;
        cx.builder.build_store(location, *arg)?;
    }
    Ok(buffer)
}

/// Declares a function that the driver defines.
fn driver_function<'c>(cx: &Cx<'c, '_>, name: &str, ty: FunctionType<'c>) -> FunctionValue<'c> {
    cx.module.get_function(name).unwrap_or_else(|| cx.module.add_function(name, ty, Some(Linkage::External)))
}

/// Returns the address of a constant, NUL-terminated string. Equal texts share an address.
fn string<'c>(cx: &mut Cx<'c, '_>, text: &str) -> PointerValue<'c> {
    if let Some(&address) = cx.strings.get(text) {
        return address;
    }
    let bytes = cx.context.const_string(text.as_bytes(), true);
    let global = cx.module.add_global(bytes.get_type(), None, "text");
    global.set_initializer(&bytes.as_basic_value_enum());
    global.set_constant(true);
    global.set_unnamed_addr(true);
    global.set_linkage(Linkage::Private);
    let address = global.as_pointer_value();
    cx.strings.insert(text.to_owned(), address);
    address
}
