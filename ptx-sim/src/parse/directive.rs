//! Directives outside bodies (functions, variables, files), and declarations of variables anywhere.

use super::LoadError;
use super::cursor::Cursor;
use super::lex::Kind;
use super::syntax::{Function, Initial, Operand, Source, Variable, VariableSpace};
use super::{number, statement};

/// Parses a whole module.
pub(crate) fn module<'s>(cursor: &mut Cursor<'_, 's>) -> Result<Source<'s>, LoadError> {
    let mut source = Source::default();
    let mut external = false;
    while cursor.peek().kind != Kind::End {
        if cursor.take(b';') {
            continue;
        }
        if cursor.peek().kind != Kind::Dotted {
            return Err(cursor.wanted("a directive"));
        }
        match cursor.peek().text {
            "version" | "address_size" => {
                cursor.next();
                cursor.next();
            }
            "target" => {
                cursor.next();
                while cursor.peek().kind == Kind::Name || cursor.is_mark(b',') {
                    cursor.next();
                }
            }
            "file" => {
                cursor.next();
                let index = number::integer(cursor)? as u32;
                if cursor.peek().kind != Kind::Text {
                    return Err(cursor.wanted("the file's name in quotes"));
                }
                source.files.push((index, cursor.next().text));
                while cursor.take(b',') {
                    number::integer(cursor)?;
                }
            }
            "section" => section(cursor)?,
            "pragma" => {
                cursor.next();
                cursor.list(b';', |cursor| Ok(cursor.next()))?;
            }
            "visible" | "weak" | "common" => {
                cursor.next();
            }
            "extern" => {
                cursor.next();
                external = true;
                continue;
            }
            "entry" | "func" => source.add_function(function(cursor)?),
            "global" | "const" | "shared" => {
                for variable in variables(cursor, external)? {
                    source.add_variable(variable);
                }
            }
            _ => return Err(cursor.wanted("a directive that a module may have")),
        }
        external = false;
    }
    Ok(source)
}

/// Skips debug information, which is not used.
fn section(cursor: &mut Cursor<'_, '_>) -> Result<(), LoadError> {
    while !cursor.take(b'{') {
        if cursor.next().kind == Kind::End {
            return Err(cursor.wanted("a section's content"));
        }
    }
    while !cursor.take(b'}') {
        if cursor.next().kind == Kind::End {
            return Err(cursor.wanted("a section's end"));
        }
    }
    Ok(())
}

fn function<'s>(cursor: &mut Cursor<'_, 's>) -> Result<Function<'s>, LoadError> {
    let line = cursor.line();
    let entry = cursor.next().text == "entry";
    let returns = parameters(cursor)?;
    let name = cursor.name()?;
    let params = parameters(cursor)?;
    let mut function = Function {
        name,
        line,
        entry,
        returns,
        params,
        body: None,
        required_threads: None,
        most_threads: None,
        most_registers: None,
        resident_blocks: None,
        required_cluster: None,
    };
    while cursor.peek().kind == Kind::Dotted {
        match cursor.next().text {
            "reqntid" => function.required_threads = Some(extents(cursor)?),
            "maxntid" => function.most_threads = Some(extents(cursor)?),
            "reqnctapercluster" => function.required_cluster = Some(extents(cursor)?),
            "maxnreg" => function.most_registers = Some(small(cursor)?),
            "minnctapersm" => function.resident_blocks = Some(small(cursor)?),
            "maxnctapersm" | "maxclusterrank" => {
                number::integer(cursor)?;
            }
            "noreturn" | "explicitcluster" | "blocksareclusters" => {}
            "pragma" => {
                cursor.list(b';', |cursor| Ok(cursor.next()))?;
            }
            other => {
                return Err(LoadError::new(
                    cursor.line(),
                    format!("`.{other}` is not supported for a function"),
                ));
            }
        }
    }
    if cursor.take(b'{') {
        function.body = Some(statement::block(cursor)?);
    } else {
        cursor.take(b';');
    }
    Ok(function)
}

fn small(cursor: &mut Cursor<'_, '_>) -> Result<u32, LoadError> {
    let number = number::integer(cursor)?;
    u32::try_from(number).map_err(|_| LoadError::new(cursor.line(), "a number that is too great"))
}

fn extents(cursor: &mut Cursor<'_, '_>) -> Result<[u32; 3], LoadError> {
    let mut extents = [1; 3];
    for (axis, extent) in extents.iter_mut().enumerate() {
        if axis > 0 && !cursor.take(b',') {
            break;
        }
        *extent = number::integer(cursor)? as u32;
    }
    Ok(extents)
}

/// Parses `( .param .u32 a, … )`; empty if there is no bracket.
fn parameters<'s>(cursor: &mut Cursor<'_, 's>) -> Result<Vec<Variable<'s>>, LoadError> {
    if !cursor.take(b'(') {
        return Ok(Vec::new());
    }
    cursor.list(b')', |cursor| {
        let mut head = head(cursor, false)?;
        declare(cursor, &mut head)
    })
}

/// Parses `.global .align 4 .b8 a[4] = {1, 2}, b;` including the semicolon.
pub(crate) fn variables<'s>(
    cursor: &mut Cursor<'_, 's>,
    external: bool,
) -> Result<Vec<Variable<'s>>, LoadError> {
    let mut head = head(cursor, external)?;
    let mut variables = Vec::new();
    loop {
        variables.push(declare(cursor, &mut head)?);
        if cursor.take(b';') {
            return Ok(variables);
        }
        cursor.expect(b',')?;
    }
}

/// Returns the width of a register of this type in bits, or `None` for types that registers cannot
/// have here.
pub(crate) fn register_bits(ty: &str) -> Option<u32> {
    match ty {
        "pred" => Some(1),
        _ => scalar(ty).map(|bytes| bytes * 8).filter(|&bits| bits <= 128),
    }
}

/// Returns the bytes of a scalar type.
fn scalar(ty: &str) -> Option<u32> {
    Some(match ty {
        "b8" | "u8" | "s8" => 1,
        "b16" | "u16" | "s16" | "f16" | "bf16" => 2,
        "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16x2" => 4,
        "b64" | "u64" | "s64" | "f64" => 8,
        "b128" => 16,
        _ => return None,
    })
}

struct Head {
    space: VariableSpace,
    scalar_bytes: u32,
    lanes: u32,
    align: u32,
    external: bool,
}

fn head(cursor: &mut Cursor<'_, '_>, external: bool) -> Result<Head, LoadError> {
    let space = match cursor.dotted()? {
        "global" => VariableSpace::Global,
        "const" => VariableSpace::Const,
        "shared" => VariableSpace::Shared,
        "local" => VariableSpace::Local,
        "param" => VariableSpace::Param,
        "reg" => VariableSpace::Reg,
        other => {
            return Err(LoadError::new(cursor.line(), format!("variables in `.{other}` are not supported")));
        }
    };
    let (mut align, mut lanes) = (None, 1);
    loop {
        let line = cursor.line();
        match cursor.dotted()? {
            "align" => {
                let value = number::integer(cursor)?;
                let value = u32::try_from(value).ok().filter(|value| value.is_power_of_two());
                align =
                    Some(value.ok_or_else(|| LoadError::new(line, "an alignment must be a power of two"))?);
            }
            "v2" => lanes = 2,
            "v4" => lanes = 4,
            "pred" if space == VariableSpace::Reg => {
                return Ok(Head { space, scalar_bytes: 1, lanes, align: 1, external });
            }
            ty => {
                let scalar_bytes = scalar(ty)
                    .ok_or_else(|| LoadError::new(line, format!("variables of `.{ty}` are not supported")))?;
                pointed_to(cursor)?;
                let align = align.unwrap_or(scalar_bytes * lanes);
                return Ok(Head { space, scalar_bytes, lanes, align, external });
            }
        }
    }
}

/// Skips `.ptr .global .align 16` after a parameter's type, a hint about the pointee.
fn pointed_to(cursor: &mut Cursor<'_, '_>) -> Result<(), LoadError> {
    if cursor.take_dotted("ptr") {
        for space in ["global", "shared", "const", "local", "param"] {
            cursor.take_dotted(space);
        }
        if cursor.take_dotted("align") {
            number::integer(cursor)?;
        }
    }
    Ok(())
}

fn declare<'s>(cursor: &mut Cursor<'_, 's>, head: &mut Head) -> Result<Variable<'s>, LoadError> {
    let line = cursor.line();
    let name = cursor.name()?;
    let mut scalars = Some(u64::from(head.lanes));
    while cursor.take(b'[') {
        if cursor.take(b']') {
            scalars = None;
            continue;
        }
        let extent = number::integer(cursor)?;
        cursor.expect(b']')?;
        let extent =
            u64::try_from(extent).map_err(|_| LoadError::new(line, "an array of negative extent"))?;
        let product = scalars.map(|count| count.checked_mul(extent));
        scalars = product
            .map(|count| count.ok_or_else(|| LoadError::new(line, "an array too large")))
            .transpose()?;
    }
    let initial = if cursor.take(b'=') { initialiser(cursor)? } else { Vec::new() };
    if scalars.is_none() && !initial.is_empty() {
        scalars = Some(initial.len() as u64);
    }
    let bytes = scalars.map(|count| count.checked_mul(u64::from(head.scalar_bytes)));
    let bytes =
        bytes.map(|bytes| bytes.ok_or_else(|| LoadError::new(line, "an array too large"))).transpose()?;
    if bytes
        .is_some_and(|bytes| bytes > 1 << 36 || initial.len() as u64 * u64::from(head.scalar_bytes) > bytes)
    {
        return Err(LoadError::new(
            line,
            format!("`{name}` is too large, or its initialiser larger than it"),
        ));
    }
    Ok(Variable {
        name,
        line,
        space: head.space,
        scalar_bytes: head.scalar_bytes,
        align: head.align,
        bytes,
        external: head.external,
        initial,
    })
}

/// Parses one value, or nested braces of values, which are flattened. Missing values of inner
/// braces are not filled in, so only the last brace may be short.
fn initialiser<'s>(cursor: &mut Cursor<'_, 's>) -> Result<Vec<Initial<'s>>, LoadError> {
    if cursor.take(b'{') {
        let parts = cursor.nested(|cursor| cursor.list(b'}', initialiser))?;
        return Ok(parts.into_iter().flatten().collect());
    }
    let token = cursor.peek();
    if token.kind == Kind::Name {
        return address(cursor).map(|value| vec![value]);
    }
    let (negative, ahead) = if cursor.is_mark(b'-') { (true, 1) } else { (false, 0) };
    let numeral = cursor.peek_at(ahead);
    if numeral.kind == Kind::Number {
        let value = match number::literal(numeral.text, numeral.line)? {
            Operand::Single(bits) => Some(f64::from(f32::from_bits(bits))),
            Operand::Double(bits) => Some(f64::from_bits(bits)),
            _ => None,
        };
        if let Some(value) = value {
            for _ in 0..=ahead {
                cursor.next();
            }
            return Ok(vec![Initial::Number(if negative { -value } else { value })]);
        }
    }
    Ok(vec![Initial::Bits(number::integer(cursor)? as u64)])
}

/// Parses `symbol`, `symbol+8` or `generic(symbol)+8`. All of them yield the generic address here.
fn address<'s>(cursor: &mut Cursor<'_, 's>) -> Result<Initial<'s>, LoadError> {
    let mut symbol = cursor.name()?;
    if symbol == "generic" && cursor.take(b'(') {
        symbol = cursor.name()?;
        cursor.expect(b')')?;
    }
    let offset = if cursor.is_mark(b'+') || cursor.is_mark(b'-') { number::integer(cursor)? } else { 0 };
    Ok(Initial::Address { symbol, offset })
}
