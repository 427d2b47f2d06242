//! Integer overflow: a checked kernel stops where plain Rust panics, with the same words, and
//! computes the same results elsewhere.
#![cfg(feature = "llvm")]

use std::any::Any;
use std::panic::{self, catch_unwind};

use tma_codegen::{Checks, Ptx, Target, compile_with};
use tma_tests::differential::device;
use tma_tests::parallel::on_all_cores;

const FILE: &str = "src/kernels.rs";

/// The line of the first operation of a [`Type`].
const FIRST_LINE: usize = 7;

/// An integer type, and its operations on `a`, `b` and the `u32` `n`, which is `b`.
struct Type {
    name: &'static str,
    /// The operations as text.
    operations: &'static [&'static str],
    /// Computes an operation in plain Rust.
    plain: fn(usize, [u64; 2]) -> u64,
    /// Operands, with those at which results leave the type.
    edges: Vec<u64>,
}

macro_rules! of_type {
    ($ty:ident, $a:ident, $b:ident, $n:ident, $($operation:expr),+) => {
        Type {
            name: stringify!($ty),
            operations: &[$(stringify!($operation)),+],
            plain: |operation, words| {
                let all: &[fn($ty, $ty, u32) -> $ty] = &[$(|$a, $b, $n| { _ = ($a, $b, $n); $operation }),+];
                all[operation](words[0] as $ty, words[1] as $ty, words[1] as u32) as u64
            },
            edges: {
                let (root, bits) = (<$ty>::MAX.isqrt(), <$ty>::BITS as $ty);
                let least = [<$ty>::MIN, <$ty>::MIN + 1, (0 as $ty).wrapping_sub(1)];
                let greatest = [<$ty>::MAX / 2 + 1, <$ty>::MAX - 1, <$ty>::MAX];
                let between = [0, 1, 2, root, root + 1, bits - 1, bits];
                least.into_iter().chain(between).chain(greatest).map(|edge| edge as u64).collect()
            },
        }
    };
}

macro_rules! signed {
    ($($ty:ident)+) => { [$(of_type!(
        $ty, a, b, n,
        a + b, a - b, a * b, a / b, a % b, a << b, a >> b, -a, a.abs(), a.pow(n), a.pow(3),
        { let mut c = a; c += b; c },
        { let mut c = a; c -= b; c },
        { let mut c = a; c *= b; c },
        { let mut c = a; c <<= n; c },
        { let mut c = a; c >>= n; c },
        a + 1, 1 - a, a * 3
    )),+] };
}

macro_rules! unsigned {
    ($($ty:ident)+) => { [$(of_type!(
        $ty, a, b, n,
        a + b, a - b, a * b, a / b, a % b, a << b, a >> b, a.pow(n), a.pow(3), a.next_multiple_of(b),
        a.div_ceil(b),
        { let mut c = a; c += b; c },
        { let mut c = a; c -= b; c },
        { let mut c = a; c *= b; c },
        { let mut c = a; c <<= n; c },
        { let mut c = a; c >>= n; c },
        a + 1, 1 - a, a * 3
    )),+] };
}

impl Type {
    fn all() -> Vec<Self> {
        signed![i8 i16 i32 i64].into_iter().chain(unsigned![u8 u16 u32 u64 usize]).collect()
    }

    /// Returns a kernel that computes the operation whose number is `words[0]`.
    fn kernel(&self) -> String {
        let name = self.name;
        let arms: String =
            (0..).zip(self.operations).map(|(at, text)| format!("{at} => {text},\n")).collect();
        format!(
            "#[tma_kernel(threads = 1)]\nfn k(words: Global<u64>, out: Global<u64>) {{\n\
             let a = words.get(1) as {name};\nlet b = words.get(2) as {name};\n\
             let n = words.get(2) as u32;\nlet c: {name} = match words.get(0) {{\n{arms}_ => a,\n}};\n\
             out.set(0, c as u64);\n}}\n"
        )
    }
}

fn compiled(source: &str, checks: Checks) -> Ptx {
    let compiled = compile_with(FILE, source, Target::default(), checks);
    compiled.unwrap_or_else(|failure| panic!("{failure}\n{source}")).kernels.swap_remove(0)
}

/// Returns the words of a panic.
fn words_of(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|&words| words.to_owned());
    literal.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Compares one operation on a pair of operands. Returns whether it stops.
fn compare(ty: &Type, ptx: &Ptx, operation: usize, pair: [u64; 2]) -> bool {
    let plain = catch_unwind(|| (ty.plain)(operation, pair)).map_err(|panic| words_of(&*panic));
    let found = device::run(ptx, 1, &[operation as u64, pair[0], pair[1]], 1).map(|out| out[0]);
    let shown = format!("{} of {}, {:#x} and {:#x}", ty.operations[operation], ty.name, pair[0], pair[1]);
    match (&plain, &found) {
        (Ok(plain), Ok(found)) => assert_eq!(plain, found, "{shown}"),
        (Err(words), Err(found)) => {
            let place = format!("{FILE}:{}:", FIRST_LINE + operation);
            assert!(found.contains(&place) && found.contains(words), "{shown}: {words}\n{found}");
        }
        _ => panic!("{shown}: plain Rust {plain:?}, the kernel {found:?}"),
    }
    plain.is_err()
}

#[test]
fn checked_kernels_stop_where_plain_rust_panics() {
    // Thousands of expected panics print nothing.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !words_of(info.payload()).starts_with("attempt to ") {
            hook(info);
        }
    }));
    on_all_cores(Type::all(), |ty| {
        let ptx = compiled(&ty.kernel(), Checks::On);
        for operation in 0..ty.operations.len() {
            let pairs = ty.edges.iter().flat_map(|&a| ty.edges.iter().map(move |&b| [a, b]));
            let stopped: Vec<bool> = pairs.map(|pair| compare(&ty, &ptx, operation, pair)).collect();
            assert!(stopped.contains(&true) && stopped.contains(&false), "{}", ty.operations[operation]);
        }
    });
}

/// Returns a kernel with `a`, `b` and `n` of type `u32`, and `i` of type `i32`.
fn kernel(threads: u32, body: &str) -> String {
    format!(
        "#[tma_kernel(threads = {threads})]\nfn k(words: Global<u64>, out: Global<u64>) {{\n\
         let a = words.get(0) as u32; let b = words.get(1) as u32;\n\
         let n = words.get(2) as u32; let i = words.get(0) as i32;\n{body}\n}}\n"
    )
}

fn run(body: &str, checks: Checks, words: [u64; 3]) -> Result<u64, String> {
    device::run(&compiled(&kernel(1, body), checks), 1, &words, 1).map(|out| out[0])
}

/// The greatest word of 32 bits.
const MAX: u64 = u32::MAX as u64;

#[test]
fn methods_that_wrap_or_saturate_never_stop() {
    for (value, wanted) in [
        ("a.wrapping_add(b)", MAX.wrapping_add(MAX) & MAX),
        ("b.wrapping_sub(a.wrapping_add(2))", MAX - 1),
        ("a.wrapping_mul(b)", 1),
        ("1u32.wrapping_neg()", MAX),
        ("a.wrapping_shl(n)", MAX << 1 & MAX),
        ("a.wrapping_shr(n)", MAX >> 1),
        ("a.saturating_add(b)", MAX),
        ("1u32.saturating_sub(b)", 0),
        ("a.saturating_mul(b)", MAX),
        ("a.rotate_left(n)", MAX),
        ("a.abs_diff(0)", MAX),
        ("i32::MIN.wrapping_neg() as u32", 1 << 31),
        ("mul_hi(a, b)", MAX - 1),
        ("(a as u8) as u32", 255),
    ] {
        let body = format!("out.set(0, ({value}) as u64);");
        assert_eq!(run(&body, Checks::On, [MAX, MAX, 33]), Ok(wanted), "{value}");
    }
}

#[test]
fn the_right_side_stops_only_if_it_is_evaluated() {
    for (condition, a, wanted) in [
        ("a > 0 && a - 1 < b", 0, Ok(0)),
        ("a > 0 && a - 1 < b", 3, Ok(1)),
        ("a == 0 || a - 1 < b", 0, Ok(1)),
        ("a == 0 || (a != 5 && a - 6 < b)", 5, Ok(0)),
        ("(a > 0) & (a - 1 < b)", 0, Err("subtract")),
        ("(a == 0) | (a - 1 < b)", 0, Err("subtract")),
        ("a < 9 && a - 1 < b", 0, Err("subtract")),
        ("i >= 0 && -i < 1", 1 << 31, Ok(0)),
        ("i < 0 && -i < 1", 1 << 31, Err("negate")),
        ("i < 0 && i.abs() < 1", 1 << 31, Err("negate")),
        ("n < 32 && a << n == 0", 1, Ok(0)),
    ] {
        let body = format!("out.set(0, ({condition}) as u64);");
        match (run(&body, Checks::On, [a, 7, 32]), wanted) {
            (Ok(found), Ok(wanted)) => assert_eq!(found, wanted, "{condition} with {a}"),
            (Err(found), Err(word)) => assert!(found.contains(word), "{condition}\n{found}"),
            (found, wanted) => panic!("{condition} with {a}: {found:?}, wanted {wanted:?}"),
        }
    }
    // A constant decides at compile time, and the other side need not have a value.
    let body = "let none = 0u32; out.set(0, (none > 0 && a < none - 1) as u64);";
    assert_eq!(run(body, Checks::On, [0; 3]), Ok(0));
}

#[test]
fn loops_count_to_the_ends_of_their_types() {
    for (range, wanted) in [
        ("250u8..=255", 6),
        ("(250u8..=255).rev()", 6),
        ("(0u8..=255).step_by(300)", 1),
        ("(-128i8..=127).step_by(100)", 3),
        ("(-128i8..127).rev().step_by(100)", 3),
        ("0..b", 0),
    ] {
        let body = format!("let mut count = 0u64;\nfor _ in {range} {{ count += 1; }}\nout.set(0, count);");
        assert_eq!(run(&body, Checks::On, [0; 3]), Ok(wanted), "{range}");
    }
}

/// Four rows of 2^30 words are 2^32 words, and 32 bits wrap to row 0.
#[test]
fn an_index_that_overflows_stops() {
    for index in ["a * b", "(a * b) as u64", "a << n", "a * b - 1 + 1", "(i * b as i32) as u32"] {
        let body = format!("out.set(0, words.get({index}));");
        let words = [4, 1 << 30, 32];
        let found = run(&body, Checks::On, words).expect_err(index);
        assert!(found.contains(&format!("{FILE}:5:")) && found.contains("with overflow"), "{index}\n{found}");
    }
    assert_eq!(run("out.set(0, words.get(a * b));", Checks::Off, [4, 1 << 30, 30]), Ok(4));
}

/// An unused result is computed nevertheless, as in Rust.
#[test]
fn unused_results_stop() {
    for (statement, stopping, passing) in [
        ("a + b;", MAX, MAX - 1),
        ("let _ = a + b;", MAX, MAX - 1),
        ("_ = a - 1;", 0, 1),
        ("let _c = a * 2;", 1 << 31, MAX >> 1),
        ("-i;", 1 << 31, MAX),
        ("i.abs();", 1 << 31, MAX),
    ] {
        let body = format!("{statement}\nout.set(0, 1);");
        assert!(run(&body, Checks::On, [stopping, 1, 0]).is_err(), "{statement}");
        assert_eq!(run(&body, Checks::On, [passing, 1, 0]), Ok(1), "{statement}");
        assert_eq!(run(&body, Checks::Off, [stopping, 1, 0]), Ok(1), "{statement}");
    }
}

/// Returns the number of checks in the PTX, in addition to those of the accesses.
fn overflow_checks(body: &str, checks: Checks) -> usize {
    let with =
        |body: &str| compiled(&kernel(256, body), checks).text.matches("call.uni __assertfail").count();
    with(body) - with("out.set(0, 1);")
}

#[test]
fn arithmetic_that_cannot_overflow_is_not_checked() {
    let reads = "let lane = lane_idx(); let t = thread_idx().x;";
    for value in [
        "t * 4 + lane",
        "warp_idx() * 32 + lane",
        "(t % 8) << 3",
        "-((t & 7) as i32) as u32",
        "(a & 255) * (b & 255)",
        "if a > 0 { a - 1 } else { 0 }",
        "a % 64 + 1",
    ] {
        let body = format!("{reads} let x = {value}; if x != 12345 {{ out.set(0, 1); }}");
        assert_eq!(overflow_checks(&body, Checks::On), 0, "{value}");
    }
    let body = "if a + b * n != 12345 { out.set(0, (a << n) as u64); }";
    assert_eq!(overflow_checks(body, Checks::On), 3);
    assert_eq!(overflow_checks(body, Checks::Off), 0);
}
