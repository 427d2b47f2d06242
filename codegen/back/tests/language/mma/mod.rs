//! Tensor cores: the meaning of their words; `rules` has each rule and a kernel that satisfies it.

mod collective;
mod elements;
mod forms;
mod fragments;
mod incomplete;
mod registers;
mod rules;
mod sync;

use super::{ir, refused};

/// The types of most kernels here.
const TYPES: &str = "type A = Tile<f16, Shape2<64, 64>, Swizzle128>;\n\
                     type B = Tile<f16, Shape2<128, 64>, Swizzle128>;\n";

/// Returns a module with a kernel of a warpgroup that has the tiles `a` and `b`, and `n` and `out`.
fn kernel(items: &str, body: &str) -> String {
    format!(
        "#[tma_module]\nmod m {{\n{TYPES}{items}\n#[tma_kernel(threads = 128)]\nfn k(n: u32, out: Global<f32>) {{\n\
         let a: A = shared();\nlet b: B = shared();\n{body}\n}}\n}}"
    )
}

/// Returns the statements of the IR for `body`.
#[track_caller]
fn body(items: &str, body: &str) -> String {
    let text = ir(&kernel(items, body));
    let declared =
        |line: &&str| ["  param ", "  shared ", "  local "].iter().any(|word| line.starts_with(word));
    text.lines().skip(1).filter(|line| !declared(line)).map(|line| format!("{}\n", &line[2..])).collect()
}

#[track_caller]
fn means(source: &str, want: &str) {
    assert_eq!(body("", source).trim_end(), want);
}

#[track_caller]
fn accepted(items: &str, source: &str) {
    body(items, source);
}

/// Returns the error of a kernel with this body, which has exactly one.
#[track_caller]
fn error(source: &str) -> String {
    let text = refused(&kernel("", source));
    assert_eq!(text.lines().filter(|line| line.starts_with("TMA0")).count(), 1, "{text}");
    text
}

/// Checks that a kernel violates a rule, and that its variant satisfies it.
#[track_caller]
fn flipped(broken: &str, code: &str, message: &str, kept: &str) {
    let text = error(broken);
    assert!(text.starts_with(code) && text.contains(message), "{text}");
    accepted("", kept);
}

const SUM: &str = "let mut sum = Accumulator::<f32, 64, 128>::zero();";

#[test]
fn a_multiplication_is_started_and_waited_for() {
    means(
        &format!("{SUM} sum.mma(a, b, ()).wait(); out.set(0, sum[3]);"),
        "v0 = zero(Accumulator<f32, 64, 128>)\nmma v0 s0 s1\nmma.wait v0\nglobal.set p1 0i32 v0[3usize]",
    );
}

#[test]
fn an_accumulator_has_the_type_of_what_it_is_assigned_to() {
    means(
        &format!("{SUM} sum.mma(a, b, ()).wait(); sum = Accumulator::zero(); sum.mma(a, b, ()).wait();"),
        "v0 = zero(Accumulator<f32, 64, 128>)\nmma v0 s0 s1\nmma.wait v0\nv0 = zero(Accumulator<f32, 64, 128>)\n\
         mma v0 s0 s1\nmma.wait v0",
    );
    accepted(
        "",
        "let mut sum: Accumulator<f32, 64, 128> = Accumulator::zero(); let f = sum.mma(a, b, ()); f.wait();",
    );
}

#[test]
fn a_flight_keeps_what_is_given_to_it() {
    let ring = "let ring: Pipeline<(A, B), 2> = shared(); let mut consumer = ring.consumer();";
    let start = "let slot = consumer.wait(); let mut flight = sum.mma(slot.0, slot.1, slot);";
    accepted("", &format!("{ring} {SUM} {start} flight.wait().release();"));
    accepted(
        "",
        &format!(
            "{ring} {SUM} {start} for _ in 0..n {{ let slot = consumer.wait(); \
             flight.mma(slot.0, slot.1, slot).release(); }} flight.wait().release();"
        ),
    );
    means(
        &format!("{SUM} let kept = sum.mma(a, b, n + 1).wait(); out.set(kept, 0.0);"),
        "v0 = zero(Accumulator<f32, 64, 128>)\nmma v0 s0 s1\nmma.wait v0\nv1 = (p0 + 1u32)\n\
         global.set p1 v1 0.0f32",
    );
}

#[test]
fn the_next_multiplication_waits_for_the_one_before() {
    means(
        &format!(
            "{SUM} let mut flight = sum.mma(a, b, 1u32); let one = flight.mma(a, b, 2u32); \
             let two = flight.wait(); out.set(one + two, sum[0]);"
        ),
        "v0 = zero(Accumulator<f32, 64, 128>)\nmma v0 s0 s1\nv1 = 1u32\nmma v0 s0 s1\nmma.wait v0 older\n\
         v2 = v1\nv1 = 2u32\nv3 = v2\nmma.wait v0\nv4 = v1\nglobal.set p1 (v3 + v4) v0[0usize]",
    );
}

#[test]
fn operands_are_transposed_negated_and_divided() {
    means(
        "let mut sum = Accumulator::<f32, 64, 64>::zero(); sum.mma(-a, -a.t(), ()).wait(); \
         let t = -a.t(); sum.mma(t, b.band::<64>(1), ()).wait();",
        "v0 = zero(Accumulator<f32, 64, 64>)\nmma v0 -s0 -s0.t\nmma.wait v0\nmma v0 -s0.t s1[1u32]\nmma.wait v0",
    );
}

#[test]
fn an_operand_is_transposed_if_a_constant_says_so() {
    means(
        "let mut sum = Accumulator::<f32, 64, 64>::zero(); sum.mma(a.t_if::<true>(), -a.t_if::<false>(), ()).wait(); \
         sum.mma(a.t_if::<{ 1 < 2 }>(), a.t_if::<{ 1 > 2 }>(), ()).wait();",
        "v0 = zero(Accumulator<f32, 64, 64>)\nmma v0 s0.t -s0\nmma.wait v0\nmma v0 s0.t s0\nmma.wait v0",
    );
    let missing = error(&format!("{SUM} sum.mma(a, b.t_if(), ()).wait();"));
    assert!(missing.starts_with("TMA0104") && missing.contains("`t_if`"), "{missing}");
}

#[test]
fn a_fragment_is_multiplied_as_it_was() {
    let text = body(
        "",
        &format!(
            "{SUM} sum.mma(a, b, ()).wait(); let mut weights = sum.pack::<f16>(); \
             let mut other = Accumulator::<f32, 64, 64>::zero(); let flight = other.mma(weights, b.t(), ()); \
             weights = sum.pack::<f16>(); flight.wait(); other.mma(weights, b.t(), ()).wait();"
        ),
    );
    assert!(text.contains("v1 = pack v0"), "{text}");
    let multiplied: Vec<_> = text.lines().filter(|line| line.starts_with("mma v")).collect();
    assert_eq!(multiplied.len(), 3, "{text}");
    assert!(multiplied[1] != multiplied[2], "both read the variable, which changes in between:\n{text}");
}

#[test]
fn elements_have_locations() {
    means(
        "let sum = Accumulator::<f32, 128, 64>::zero(); let rows = Rows::<f32, 128>::filled(2.0); \
         out.set(cast::<u64>(sum.len() + rows.len()), 0.0); for i in unroll(0..2) { out.set(cast::<u64>(sum.row(i)), rows[sum.row(i)]); }",
        "v0 = zero(Accumulator<f32, 128, 64>)\nv1 = repeat(2.0f32, Rows<f32, 128>)\n\
         global.set p1 68u64 0.0f32\nl0: for v2 in 0usize..2usize step 1usize unrolled\n  \
         global.set p1 ((((v2 / 32usize) * 2usize) + ((v2 / 2usize) % 2usize)) as u64) \
         v1[(((v2 / 32usize) * 2usize) + ((v2 / 2usize) % 2usize))]",
    );
}

#[test]
fn rows_are_reduced() {
    means(
        "let sum = Accumulator::<f32, 64, 64>::zero(); let top = sum.row_max(); let all = sum.row_sum(); \
         out.set(0, top[0] + all[1]);",
        "v0 = zero(Accumulator<f32, 64, 64>)\nv1 = row_max v0\nv2 = v1\nv3 = row_sum v0\nv4 = v3\n\
         global.set p1 0i32 (v2[0usize] + v4[1usize])",
    );
}

#[test]
fn columns_are_stored_separately() {
    means(
        "let sum = Accumulator::<f32, 64, 128>::zero(); for j in unroll(0..2u32) { sum.columns::<64>(j).store(a); }",
        "v0 = zero(Accumulator<f32, 64, 128>)\nl0: for v1 in 0u32..2u32 step 1usize unrolled\n  accumulator.store v0[(v1 * 64u32)] s0",
    );
}

/// Every type has a name, and functions can take its values.
#[test]
fn device_functions_take_what_tensor_cores_work_on() {
    let function = |parameters: &str, body: &str| format!("#[tma_device]\nfn f({parameters}) {{ {body} }}");
    for (parameters, inside, call) in [
        (
            "sum: &mut Accumulator<f32, 64, 128>, a: A, b: B",
            "sum.mma(a, b, ()).wait();",
            "f(&mut sum, a, b);",
        ),
        (
            "sum: &Accumulator<f32, 64, 128>, c: Tile<f16, Shape2<64, 128>>",
            "sum.store(c);",
            "f(&sum, shared());",
        ),
        (
            "flight: &mut Flight<'_, f32, 64, 128, ()>, a: A, b: B",
            "flight.mma(a, b, ());",
            "let mut flight = sum.mma(a, b, ()); f(&mut flight, a, b); flight.wait();",
        ),
        ("flight: Flight<f32, 64, 128, u32>", "flight.wait();", "f(sum.mma(a, b, n));"),
        ("part: Columns<'_, f32, 64, 64>, a: A", "part.store(a);", "f(sum.columns::<64>(1), a);"),
        (
            "a: Transposed<A>, sum: &mut Accumulator<f32, 64, 128>, b: Negated<B>",
            "sum.mma(a, b, ()).wait();",
            "f(a.t(), &mut sum, -b);",
        ),
        (
            "a: Negated<Transposed<A>>, sum: &mut Accumulator<f32, 64, 128>, b: B",
            "sum.mma(a, b, ()).wait();",
            "f(-a.t(), &mut sum, b);",
        ),
        (
            "a: Transposed<A, true>, sum: &mut Accumulator<f32, 64, 128>, b: Transposed<B, false>",
            "sum.mma(a, b, ()).wait();",
            "f(a.t(), &mut sum, b.t_if::<false>());",
        ),
        (
            "w: Fragment<f16, 64, 128>, sum: &mut Accumulator<f32, 64, 64>, b: B",
            "sum.mma(w, b.t(), ()).wait();",
            "let mut other = Accumulator::<f32, 64, 64>::zero(); f(sum.pack::<f16>(), &mut other, b);",
        ),
        ("rows: &mut Rows<f32, 64>", "rows[0] += rows[1];", "let mut rows = sum.row_max(); f(&mut rows);"),
    ] {
        let call = match call {
            "f(&sum, shared());" => "let c: Tile<f16, Shape2<64, 128>> = shared(); f(&sum, c);",
            other => other,
        };
        accepted(&function(parameters, inside), &format!("{SUM} {call}"));
    }
    let ring = "let ring: Pipeline<(A, B), 2> = shared(); let mut consumer = ring.consumer();";
    accepted(
        &function(
            "flight: &mut Flight<'_, f32, 64, 128, FullSlot<(A, B)>>, consumer: &mut Consumer<(A, B), 2>",
            "let slot = consumer.wait(); flight.mma(slot.0, slot.1, slot).release();",
        ),
        &format!(
            "{ring} {SUM} let slot = consumer.wait(); let mut flight = sum.mma(slot.0, slot.1, slot); \
             f(&mut flight, &mut consumer); flight.wait().release();"
        ),
    );
}

/// The type of a literal that a flight keeps is that of rustc: from a parameter, or from a use of
/// the values that the flight returns.
#[test]
fn a_flight_keeps_literals_of_any_type() {
    for (parameter, inside, call) in [
        ("Flight<'_, f32, 64, 128, u32>", "let kept: u32 = flight.wait();", "f(sum.mma(a, b, 7));"),
        ("Flight<f32, 64, 128, u64>", "flight.wait();", "let flight = sum.mma(a, b, 7); f(flight);"),
        ("Flight<f32, 64, 128, f32>", "flight.wait();", "f(sum.mma(a, b, 0.5));"),
        ("Flight<f32, 64, 128, [u8; 2]>", "flight.wait();", "f(sum.mma(a, b, [1, 2]));"),
        (
            "&mut Flight<'_, f32, 64, 128, i64>",
            "flight.mma(a, b, 9);",
            "let mut flight = sum.mma(a, b, 7); f(&mut flight); let kept: i64 = flight.wait();",
        ),
    ] {
        let function = format!("#[tma_device]\nfn f(flight: {parameter}) {{ {inside} }}");
        let function = if inside.contains("a, b") {
            function.replace("(flight", "(a: A, b: B, flight")
        } else {
            function
        };
        let call = if inside.contains("a, b") { call.replace("f(", "f(a, b, ") } else { call.to_owned() };
        accepted(&function, &format!("{SUM} {call}"));
    }
    accepted("", &format!("{SUM} let n: u64 = sum.mma(a, b, 7).wait(); out.set(n, 0.0);"));
    let wrong = "#[tma_device]\nfn f(flight: Flight<f32, 64, 128, bool>) { flight.wait(); }";
    let text = refused(&kernel(wrong, &format!("{SUM} f(sum.mma(a, b, 7));")));
    assert!(text.starts_with("TMA0102") && text.contains("expected `Flight<f32, 64, 128, bool>`"), "{text}");
}

#[test]
fn types_are_of_what_they_are_of() {
    let take = |ty: &str| refused(&kernel(&format!("#[tma_device]\nfn f(x: {ty}) {{}}"), "f(a);"));
    let text = take("Transposed<f32>");
    assert!(
        text.starts_with("TMA0004") && text.contains("`Transposed` requires a tile, not `f32`"),
        "{text}"
    );
    let text = take("Negated<Negated<A>>");
    assert!(text.contains("`Negated` requires a tile, not `Negated<"), "{text}");
    let text = take("Flight<'_, f32, 64, 128>");
    assert!(text.contains("`Flight` takes 4 generic arguments, but 3"), "{text}");
    let text = take("Accumulator<f32, 64>");
    assert!(text.contains("`Accumulator` takes 3 generic arguments, but 2"), "{text}");
}
