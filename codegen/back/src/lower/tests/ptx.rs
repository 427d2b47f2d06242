//! `ptx!`: its text in the PTX, and what LLVM may do with it.

use super::{body, has, has_not};

/// Each line of a template is marked for the simulator, and operands are registers of their types.
#[test]
fn templates_are_marked_and_keep_their_text() {
    let text = body(
        "o: Global<u32>, x: u32, d: f64",
        "let mut y = 0u32;
         let mut e = 0.0f64;
         unsafe {
             ptx!(\"{{ .reg .pred p; // 100$\", \"setp.ne.u32 p, {x}, 3;\", \"selp.b32 {y}, {x}, 9, p; }}\", out y, in x);
             ptx!(\"neg.f64 {e}, {d};\", out e, in d);
         }
         o.set(0, y + e as u32);",
    );
    has(&text, &["{ .reg .pred p; // 100$ // ptx!\n", "selp.b32 %r", ", 9, p; } // ptx!\n", "neg.f64 %rd"]);
}

/// Without effects an output is a function of the inputs: equal ones are merged, unused ones
/// removed.
#[test]
fn pure_instructions_are_merged_and_removed() {
    let twice = |effect: &str| {
        let one =
            |to: &str| format!("unsafe {{ ptx!(\"brev.b32 {{{to}}}, {{x}};\", out {to}, in x{effect}) }};");
        let statements = ["a", "b", "c"].map(one).concat();
        body(
            "o: Global<u32>, x: u32",
            &format!("let mut a = 0u32; let mut b = 0u32; let mut c = 0u32; {statements} o.set(0, a + b);"),
        )
    };
    assert_eq!(twice("").matches("brev.b32").count(), 1);
    assert_eq!(twice(", volatile").matches("brev.b32").count(), 3);
    assert_eq!(twice(", reads(o)").matches("brev.b32").count(), 3);
}

/// Memory that is declared as written is loaded again.
#[test]
fn effects_keep_their_place() {
    let loads = |effect: &str| {
        let text = body(
            "o: Global<u32>, x: u32",
            &format!(
                "let before = o.get(0);
                 unsafe {{ ptx!(\"// {{x}}\", \"st.global.b32 [a], {{x}};\", in x{effect}) }};
                 o.set(1, before + o.get(0));"
            ),
        );
        text.matches("ld.global.b32").count()
    };
    assert_eq!(loads(", writes(o)"), 2);
    assert_eq!(loads(", volatile"), 2);
    assert_eq!(loads(""), 1);
}

/// An output is not in the register of an input: the template may write it first.
#[test]
fn outputs_are_not_in_registers_of_inputs() {
    let text = body(
        "o: Global<u32>, n: u32",
        "let mut x = 5u32;
         for _ in 0..n {
             let mut y = 0u32;
             unsafe { ptx!(\"mov.b32 {y}, 7;\", \"mad.lo.u32 {y}, {y}, {x}, 1;\", out y, in x) };
             x = y;
         }
         o.set(0, x);",
    );
    let products = text.lines().filter(|line| line.contains("mad.lo.u32") && line.contains("ptx!"));
    for line in products {
        let operands: Vec<_> = line.split(['\t', ' ', ',']).filter(|word| word.starts_with("%r")).collect();
        assert_ne!(operands[1], operands[2], "{text}");
    }
    has_not(&text, &["{y}", "{x}"]);
}
