use tma_runtime::spec::Scalar;

use super::Allocation;
use crate::value::{Place, RawTensor, Value};

const NAMES: [&str; 5] = ["x", "n", "flip", "out", "bias"];

fn made(text: &str) -> Result<(Vec<i64>, Scalar), String> {
    let (shape, strides) = ([2, 3, 5], [15, 5, 1]);
    let x =
        RawTensor { data: 0, element: Scalar::Bf16, place: Place::Host, shape: &shape, strides: &strides };
    let values =
        [Value::Tensor(x), Value::Int(-7), Value::Bool(true), Value::Element(Scalar::F32), Value::None];
    Allocation::parse(text, &NAMES)?.evaluate(&values)
}

#[track_caller]
fn shape(expression: &str, wanted: &[i64]) {
    let text = format!("empty({expression}, x.dtype)");
    assert_eq!(made(&text), Ok((wanted.to_vec(), Scalar::Bf16)), "{text}");
}

#[test]
fn shapes_are_those_of_python() {
    shape("x.shape", &[2, 3, 5]);
    shape("[]", &[]);
    shape("[x.shape[0], x.shape[-1],]", &[2, 5]);
    shape("x.shape[:-1] + [4]", &[2, 3, 4]);
    shape("x.shape[1:] + x.shape[:1]", &[3, 5, 2]);
    shape("x.shape[-2:9]", &[3, 5]);
    shape("x.shape[2:1]", &[]);
    shape("[len(x.shape), 2 + 3 * 4, (2 + 3) * 4, 10 - 2 - 3]", &[3, 14, 20, 5]);
    shape("[n // 2 + 9, n % 4, -n, 7 // 2, 7 % -4 + 3]", &[5, 1, 7, 3, 2]);
    shape("[1 if flip else 2, 1 if not flip else 2, 3 if n > 0 or n == -7 else 4]", &[1, 2, 3]);
    shape("[1 if bias is None else 2, 1 if bias is not None and n[0] else 2]", &[1, 2]);
    shape("[1] if x.dtype == bfloat16 else [2] if x.dtype != int8 else [3]", &[1]);
    shape("[8 if n < 1 and n <= -7 and not n >= 0 else 9]", &[8]);
}

#[test]
fn element_types_are_those_of_arguments_or_named() {
    assert_eq!(made("empty_like(x)"), Ok((vec![2, 3, 5], Scalar::Bf16)));
    assert_eq!(made("empty([1], out)"), Ok((vec![1], Scalar::F32)));
    assert_eq!(made("empty([1], float8_e4m3fn)"), Ok((vec![1], Scalar::E4m3)));
    assert_eq!(made("empty([1], x.dtype if out is None else out)"), Ok((vec![1], Scalar::F32)));
}

#[track_caller]
fn wrong(text: &str, message: &str) {
    let found = made(text);
    assert!(found.as_ref().is_err_and(|found| found.contains(message)), "{text}: {found:?}");
}

#[test]
fn mistakes_are_named() {
    wrong("zeros(x.shape, x.dtype)", "expected `empty`, found `zeros`");
    wrong("empty(x.shape)", "expected `,`, found `)`");
    wrong("empty(x.shape, x.dtype", "expected `)` at the end");
    wrong("empty(x.shape, x.dtype) x", "`x` follows the end");
    wrong("empty([y], x.dtype)", "`y` is neither an argument nor an element type; arguments are x, n, flip");
    wrong("empty([if], x.dtype)", "expected a value, found `if`");
    wrong("empty([1 ? 2], x.dtype)", "`?` has no meaning here");
    wrong("empty([2x], x.dtype)", "`2x` is no number");
    wrong("empty(x.strides, x.dtype)", "expected `shape` or `dtype`");
    wrong("empty([x.shape[3]], x.dtype)", "[2, 3, 5] has no index 3");
    wrong("empty([1 // 0], x.dtype)", "1 // 0 has no value");
    wrong("empty([9223372036854775807 + 1], x.dtype)", "has no value");
    wrong("empty([n], x.dtype)", "the shape has the extent -7");
    wrong("empty(n, x.dtype)", "expected a shape, found -7");
    wrong("empty([x], x.dtype)", "expected a number, found a str or a float");
    wrong("empty([1], n)", "the element type is -7");
    wrong("empty(n.shape, x.dtype)", "only tensors have a shape");
    let deep = format!("empty([{}1{}], x.dtype)", "(".repeat(1000), ")".repeat(1000));
    wrong(&deep, "nested more than 50 times");
}
