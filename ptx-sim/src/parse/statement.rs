//! Bodies of functions: statements, instructions, operands.

use super::LoadError;
use super::cursor::Cursor;
use super::directive;
use super::lex::Kind;
use super::number;
use super::syntax::{Guard, Instruction, Operand, Statement};

/// Parses statements up to and including the closing brace.
pub(crate) fn block<'s>(cursor: &mut Cursor<'_, 's>) -> Result<Vec<Statement<'s>>, LoadError> {
    cursor.nested(|cursor| {
        let mut statements = Vec::new();
        loop {
            while let Some((line, mark)) = cursor.take_span_mark() {
                statements.push(Statement::SpanMark(mark, line));
            }
            if cursor.take(b'}') {
                return Ok(statements);
            }
            statement(cursor, &mut statements)?;
        }
    })
}

fn statement<'s>(cursor: &mut Cursor<'_, 's>, out: &mut Vec<Statement<'s>>) -> Result<(), LoadError> {
    let token = cursor.peek();
    match token.kind {
        Kind::Mark(b'{') => {
            cursor.next();
            out.push(Statement::Block(block(cursor)?));
        }
        Kind::Mark(b';') => {
            cursor.next();
        }
        Kind::Dotted => directive_in_body(cursor, out)?,
        Kind::Name if cursor.peek_at(1).kind == Kind::Mark(b':') => {
            cursor.next();
            cursor.next();
            out.push(Statement::Label(token.text, token.line));
        }
        Kind::Name | Kind::Mark(b'@') => out.push(Statement::Instruction(instruction(cursor)?)),
        _ => return Err(cursor.wanted("an instruction")),
    }
    Ok(())
}

fn directive_in_body<'s>(cursor: &mut Cursor<'_, 's>, out: &mut Vec<Statement<'s>>) -> Result<(), LoadError> {
    match cursor.peek().text {
        "loc" => {
            cursor.next();
            let file = number::integer(cursor)? as u32;
            let line = number::integer(cursor)? as u32;
            number::integer(cursor)?;
            if cursor.take(b',') {
                inlined_at(cursor)?;
            }
            out.push(Statement::SourceLine { file, line });
        }
        "reg" => registers(cursor, out)?,
        "pragma" => {
            cursor.next();
            cursor.list(b';', |cursor| Ok(cursor.next()))?;
        }
        "branchtargets" => {
            cursor.next();
            out.push(Statement::Targets(cursor.list(b';', Cursor::name)?));
        }
        "local" | "shared" | "param" | "global" | "const" => {
            for variable in directive::variables(cursor, false)? {
                out.push(Statement::Variable(variable));
            }
        }
        _ => return Err(cursor.wanted("a directive that a body may have")),
    }
    Ok(())
}

/// Skips `function_name SYMBOL[+N], inlined_at FILE LINE COLUMN` of a `.loc`.
fn inlined_at(cursor: &mut Cursor<'_, '_>) -> Result<(), LoadError> {
    cursor.name()?;
    cursor.name()?;
    if cursor.take(b'+') {
        number::integer(cursor)?;
    }
    cursor.expect(b',')?;
    cursor.name()?;
    for _ in 0..3 {
        number::integer(cursor)?;
    }
    Ok(())
}

fn registers<'s>(cursor: &mut Cursor<'_, 's>, out: &mut Vec<Statement<'s>>) -> Result<(), LoadError> {
    cursor.next();
    let line = cursor.line();
    let ty = cursor.dotted()?;
    let bits = directive::register_bits(ty)
        .ok_or_else(|| LoadError::new(line, format!("registers of `.{ty}` are not supported")))?;
    loop {
        let name = cursor.name()?;
        let count = if cursor.take(b'<') {
            let count = number::integer(cursor)?;
            cursor.expect(b'>')?;
            let count = u32::try_from(count).ok().filter(|&count| count <= 1 << 20);
            Some(count.ok_or_else(|| LoadError::new(line, "more registers than a function may have"))?)
        } else {
            None
        };
        out.push(Statement::Registers { name, count, bits, line });
        if cursor.take(b';') {
            return Ok(());
        }
        cursor.expect(b',')?;
    }
}

fn instruction<'s>(cursor: &mut Cursor<'_, 's>) -> Result<Instruction<'s>, LoadError> {
    let line = cursor.line();
    let guard = if cursor.take(b'@') {
        let negated = cursor.take(b'!');
        Some(Guard { name: cursor.name()?, negated })
    } else {
        None
    };
    let opcode = cursor.name()?;
    let mut modifiers = Vec::new();
    while cursor.peek().kind == Kind::Dotted {
        modifiers.push(cursor.next().text);
    }
    let operands = cursor.list(b';', operand)?;
    Ok(Instruction { line, guard, opcode, modifiers, operands })
}

fn operand<'s>(cursor: &mut Cursor<'_, 's>) -> Result<Operand<'s>, LoadError> {
    let token = cursor.peek();
    match token.kind {
        Kind::Name if token.text == "_" && cursor.peek_at(1).kind != Kind::Mark(b'|') => {
            cursor.next();
            Ok(Operand::Nothing)
        }
        Kind::Name => {
            let name = long_name(cursor)?;
            if cursor.take(b'|') {
                return Ok(Operand::Pair(name, long_name(cursor)?));
            }
            match offset(cursor)? {
                0 => Ok(Operand::Name(name)),
                bytes => Ok(Operand::Offset(name, bytes)),
            }
        }
        Kind::Mark(b'!') => {
            cursor.next();
            Ok(Operand::Not(cursor.name()?))
        }
        Kind::Mark(b'{') => {
            cursor.next();
            cursor.nested(|cursor| cursor.list(b'}', operand)).map(Operand::Vector)
        }
        Kind::Mark(b'(') => {
            cursor.next();
            cursor.nested(|cursor| cursor.list(b')', operand)).map(Operand::List)
        }
        Kind::Mark(b'[') => {
            cursor.next();
            cursor.nested(address)
        }
        Kind::Mark(b'-')
            if matches!(negative_literal(cursor), Some(Operand::Single(_) | Operand::Double(_))) =>
        {
            let value = negative_literal(cursor);
            cursor.next();
            cursor.next();
            Ok(value.unwrap_or(Operand::Nothing))
        }
        Kind::Number => {
            let value = number::literal(token.text, token.line)?;
            match value {
                Operand::Integer(_) => number::integer(cursor).map(|value| Operand::Integer(value as u64)),
                _ => {
                    cursor.next();
                    Ok(value)
                }
            }
        }
        Kind::Mark(b'-' | b'~') => number::integer(cursor).map(|value| Operand::Integer(value as u64)),
        _ => Err(cursor.wanted("an operand")),
    }
}

/// Returns the number after a minus, negated, if it is a floating-point number.
fn negative_literal<'s>(cursor: &Cursor<'_, 's>) -> Option<Operand<'s>> {
    let token = cursor.peek_at(1);
    if token.kind != Kind::Number {
        return None;
    }
    match number::literal(token.text, token.line) {
        Ok(Operand::Single(bits)) => Some(Operand::Single(bits ^ 1 << 31)),
        Ok(Operand::Double(bits)) => Some(Operand::Double(bits ^ 1 << 63)),
        _ => None,
    }
}

/// Parses a name. `%tid.x` counts as one name.
fn long_name<'s>(cursor: &mut Cursor<'_, 's>) -> Result<&'s str, LoadError> {
    let name = cursor.name()?;
    let next = cursor.peek();
    if next.kind != Kind::Dotted || !next.joined {
        return Ok(name);
    }
    let axis = special_axis(name, next.text).ok_or_else(|| cursor.wanted("the end of the operand"))?;
    cursor.next();
    Ok(axis)
}

/// Returns the name of a special register with three axes as one word.
fn special_axis(name: &str, axis: &str) -> Option<&'static str> {
    const AXES: [(&str, [&str; 3]); 8] = [
        ("%tid", ["%tid.x", "%tid.y", "%tid.z"]),
        ("%ntid", ["%ntid.x", "%ntid.y", "%ntid.z"]),
        ("%ctaid", ["%ctaid.x", "%ctaid.y", "%ctaid.z"]),
        ("%nctaid", ["%nctaid.x", "%nctaid.y", "%nctaid.z"]),
        ("%clusterid", ["%clusterid.x", "%clusterid.y", "%clusterid.z"]),
        ("%nclusterid", ["%nclusterid.x", "%nclusterid.y", "%nclusterid.z"]),
        ("%cluster_ctaid", ["%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z"]),
        ("%cluster_nctaid", ["%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z"]),
    ];
    let (_, names) = AXES.iter().find(|(base, _)| *base == name)?;
    ["x", "y", "z"].iter().position(|&letter| letter == axis).map(|index| names[index])
}

/// Parses `+8` or `-8` after a name; 0 if there is none.
fn offset(cursor: &mut Cursor<'_, '_>) -> Result<i64, LoadError> {
    if cursor.is_mark(b'+') || cursor.is_mark(b'-') { number::integer(cursor) } else { Ok(0) }
}

/// Parses the rest of an address after `[`.
fn address<'s>(cursor: &mut Cursor<'_, 's>) -> Result<Operand<'s>, LoadError> {
    let (base, offset) = match cursor.peek().kind {
        Kind::Name => (Operand::Name(cursor.name()?), offset(cursor)?),
        _ => (Operand::Integer(number::integer(cursor)? as u64), 0),
    };
    let more = if cursor.take(b',') {
        cursor.list(b']', operand)?
    } else {
        cursor.expect(b']')?;
        Vec::new()
    };
    Ok(Operand::Address { base: Box::new(base), offset, more })
}
