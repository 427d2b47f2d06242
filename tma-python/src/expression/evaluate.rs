//! Values of expressions, with the meaning that Python gives them.

use tma_runtime::spec::Scalar;

use super::{Allocation, Node, Operation};
use crate::value::Value;

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
enum Object {
    None,
    Int(i64),
    Bool(bool),
    Element(Scalar),
    List(Vec<i64>),
    /// A string, which can only be compared with itself.
    Other,
}

/// Returns the shape and the element type of a result.
pub(super) fn allocation(
    allocation: &Allocation,
    arguments: &[Value<'_>],
) -> Result<(Vec<i64>, Scalar), String> {
    let shape = list(&allocation.shape, arguments)?;
    if let Some(extent) = shape.iter().find(|extent| **extent < 0) {
        return Err(format!("the shape has the extent {extent}"));
    }
    match object(&allocation.element, arguments)? {
        Object::Element(element) => Ok((shape, element)),
        other => Err(format!("the element type is {}", name(&other))),
    }
}

fn name(object: &Object) -> String {
    match object {
        Object::None => "None".to_owned(),
        Object::Int(value) => value.to_string(),
        Object::Bool(value) => value.to_string(),
        Object::Element(_) => "an element type".to_owned(),
        Object::List(list) => format!("{list:?}"),
        Object::Other => "a str or a float".to_owned(),
    }
}

fn list(node: &Node, arguments: &[Value<'_>]) -> Result<Vec<i64>, String> {
    match object(node, arguments)? {
        Object::List(list) => Ok(list),
        other => Err(format!("expected a shape, found {}", name(&other))),
    }
}

fn int(node: &Node, arguments: &[Value<'_>]) -> Result<i64, String> {
    match object(node, arguments)? {
        Object::Int(value) => Ok(value),
        Object::Bool(value) => Ok(value.into()),
        other => Err(format!("expected a number, found {}", name(&other))),
    }
}

fn is_true(node: &Node, arguments: &[Value<'_>]) -> Result<bool, String> {
    Ok(match object(node, arguments)? {
        Object::None => false,
        Object::Int(value) => value != 0,
        Object::Bool(value) => value,
        Object::List(list) => !list.is_empty(),
        other @ (Object::Element(_) | Object::Other) => {
            return Err(format!("{} is no condition", name(&other)));
        }
    })
}

/// Returns the tensor that an expression names.
fn tensor<'v, 'a>(
    node: &Node,
    arguments: &'v [Value<'a>],
) -> Result<&'v crate::value::RawTensor<'a>, String> {
    match node {
        Node::Argument(index) => match arguments.get(*index) {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            _ => Err("only tensors have a shape and an element type".to_owned()),
        },
        _ => Err("only arguments have a shape and an element type".to_owned()),
    }
}

fn object(node: &Node, arguments: &[Value<'_>]) -> Result<Object, String> {
    let overflow = || "a number is too large".to_owned();
    Ok(match node {
        Node::Int(value) => Object::Int(*value),
        Node::Bool(value) => Object::Bool(*value),
        Node::None => Object::None,
        Node::Element(scalar) => Object::Element(*scalar),
        Node::Argument(index) => match arguments.get(*index) {
            Some(Value::Int(value)) => Object::Int(*value),
            Some(Value::Bool(value)) => Object::Bool(*value),
            Some(Value::Element(scalar)) => Object::Element(*scalar),
            Some(Value::None) | None => Object::None,
            Some(Value::Float(_) | Value::Text(_) | Value::Tensor(_)) => Object::Other,
        },
        Node::Shape(of) => Object::List(tensor(of, arguments)?.shape.to_vec()),
        Node::ElementOf(of) => Object::Element(tensor(of, arguments)?.element),
        Node::List(nodes) => {
            let numbers = nodes.iter().map(|node| int(node, arguments));
            Object::List(numbers.collect::<Result<_, _>>()?)
        }
        Node::Length(of) => Object::Int(list(of, arguments)?.len() as i64),
        Node::Index(of, index) => {
            let (list, index) = (list(of, arguments)?, int(index, arguments)?);
            let at = if index < 0 { index.saturating_add(list.len() as i64) } else { index };
            let found = usize::try_from(at).ok().and_then(|at| list.get(at));
            Object::Int(*found.ok_or_else(|| format!("{list:?} has no index {index}"))?)
        }
        Node::Slice(of, start, end) => {
            let list = list(of, arguments)?;
            let bound = |node: &Option<Box<Node>>, without: usize| match node {
                None => Ok(without),
                Some(node) => int(node, arguments).map(|index| clamped(index, list.len())),
            };
            let (start, end) = (bound(start, 0)?, bound(end, list.len())?);
            Object::List(list.get(start..end).map(<[i64]>::to_vec).unwrap_or_default())
        }
        Node::Negative(of) => Object::Int(int(of, arguments)?.checked_neg().ok_or_else(overflow)?),
        Node::Not(of) => Object::Bool(!is_true(of, arguments)?),
        Node::If { condition, then, otherwise } => {
            object(if is_true(condition, arguments)? { then } else { otherwise }, arguments)?
        }
        Node::Binary(operation, left, right) => binary(*operation, left, right, arguments)?,
    })
}

/// Returns the bound of a slice, as Python counts from the end and cuts.
fn clamped(index: i64, length: usize) -> usize {
    let from_start = if index < 0 { index.saturating_add(length as i64) } else { index };
    usize::try_from(from_start.max(0)).map_or(length, |index| index.min(length))
}

fn binary(
    operation: Operation,
    left: &Node,
    right: &Node,
    arguments: &[Value<'_>],
) -> Result<Object, String> {
    let (first, second) = match operation {
        Operation::And => {
            return if is_true(left, arguments)? {
                object(right, arguments)
            } else {
                object(left, arguments)
            };
        }
        Operation::Or => {
            return if is_true(left, arguments)? {
                object(left, arguments)
            } else {
                object(right, arguments)
            };
        }
        Operation::Equal => {
            return Ok(Object::Bool(object(left, arguments)? == object(right, arguments)?));
        }
        Operation::NotEqual => {
            return Ok(Object::Bool(object(left, arguments)? != object(right, arguments)?));
        }
        Operation::Add => match (object(left, arguments)?, object(right, arguments)?) {
            (Object::List(first), Object::List(second)) => {
                return Ok(Object::List([first, second].concat()));
            }
            _ => (int(left, arguments)?, int(right, arguments)?),
        },
        Operation::Subtract
        | Operation::Multiply
        | Operation::Divide
        | Operation::Remainder
        | Operation::Less
        | Operation::LessOrEqual
        | Operation::Greater
        | Operation::GreaterOrEqual => (int(left, arguments)?, int(right, arguments)?),
    };
    let number = match operation {
        Operation::Add => first.checked_add(second),
        Operation::Subtract => first.checked_sub(second),
        Operation::Multiply => first.checked_mul(second),
        Operation::Divide => floor_division(first, second),
        Operation::Remainder => floor_division(first, second)
            .and_then(|quotient| quotient.checked_mul(second))
            .and_then(|multiple| first.checked_sub(multiple)),
        Operation::Less => return Ok(Object::Bool(first < second)),
        Operation::LessOrEqual => return Ok(Object::Bool(first <= second)),
        Operation::Greater => return Ok(Object::Bool(first > second)),
        Operation::GreaterOrEqual => return Ok(Object::Bool(first >= second)),
        Operation::Equal | Operation::NotEqual | Operation::And | Operation::Or => None,
    };
    number.map(Object::Int).ok_or_else(|| format!("{first} {operation} {second} has no value"))
}

/// Returns the quotient, rounded down as in Python, or `None` if there is none.
fn floor_division(left: i64, right: i64) -> Option<i64> {
    let quotient = left.checked_div(right)?;
    let is_exact = left.checked_rem(right)? == 0;
    Some(if is_exact || (left < 0) == (right < 0) { quotient } else { quotient - 1 })
}
