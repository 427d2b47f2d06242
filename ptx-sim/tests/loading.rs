//! Modules that load, modules that are refused, and that nothing panics.

use crate::common::{Matrix, compile, sources, tiles};
use ptx_sim::tensor_map::{DataType, Swizzle};
use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module, launch};

#[test]
fn all_that_the_compiler_emits_loads() {
    let mut kernels = 0;
    for folder in ["examples/src/bin", "tests/src/kernels"] {
        for file in sources(folder) {
            for (entry, text) in compile(&file) {
                let module = Module::load(&text).unwrap_or_else(|error| panic!("{entry}: {error}"));
                assert!(module.kernel(&entry).is_some());
                kernels += 1;
            }
        }
    }
    assert!(kernels > 50, "only {kernels} kernels were found");
}

/// Wraps a body in a kernel with registers of all widths.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;\n{body}\nret;\n}}\n"
    )
}

#[test]
fn unsupported_instructions_are_errors_with_their_line() {
    for (body, wanted) in [
        ("frobnicate.u32 %r1, %r2;", "not supported"),
        ("add.frob.u32 %r1, %r2, %r3;", "`.frob`"),
        ("add.u32 %r1, %r2, %d3;", "`%d3` has 64"),
        ("add.u32 %r1, %r2;", "operands"),
        ("add.u32 %r1, %r2, %nothing;", "not declared"),
        ("bra nowhere;", "label"),
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 %r1, %r2, %r3, %r4;", "not supported"),
        ("mov.u32 %laneid, %r1;", "cannot be written"),
        ("st.param.u64 [p], %d1;", "cannot be written"),
        ("call f;", "not defined"),
        ("add.f32 %r1, %r2, 0fZZZZZZZZ;", "not a number"),
        ("mbarrier.frob.b64 [%r1];", "not supported"),
    ] {
        let error = Module::load(&kernel(body)).expect_err(body);
        assert_eq!(error.line, 7, "{body}: {error}");
        assert!(error.message.contains(wanted), "{body}: {error}");
    }
}

#[test]
fn kernels_that_repeat_a_function_too_often_are_refused() {
    let adds = "add.u32 %r1, %r1, 1;\n".repeat(50_000);
    let kernels: String = (0..100).map(|k| format!(".visible .entry k{k}() {{ call f; ret; }}\n")).collect();
    let head = ".version 8.0\n.target sm_90a\n.address_size 64\n";
    let error = Module::load(&format!("{head}.func f() {{ .reg .b32 %r<2>;\n{adds} }}\n{kernels}"))
        .expect_err("too much");
    assert!(error.message.contains("up to `k83`") && error.message.contains("4194304"), "{error}");
}

#[test]
fn variables_that_no_memory_holds_are_refused() {
    for variable in [
        ".global .b8 x[18446744073709551615];",
        ".global .b8 x[1073741824]; .global .b8 y[1];",
        ".const .u64 x[4611686018427387904];",
        ".shared .b32 x; .shared .b8 y[18446744073709551615];",
        ".global .v4 .u64 x[18446744073709551615][18446744073709551615];",
    ] {
        let text = kernel("mov.b64 %d1, x;").replace(".visible", &format!("{variable}\n.visible"));
        assert!(Module::load(&text).is_err(), "{variable}");
    }
    let text = kernel(".local .b32 x; .local .b8 y[4294967295]; mov.b64 %d1, y;");
    let error = Module::load(&text).expect_err("it is too large");
    assert!(error.message.contains("does not fit its memory"), "{error}");
}

#[test]
fn recursion_is_refused() {
    let text = ".version 8.0\n.target sm_90a\n.address_size 64\n.func f { call g; ret; }\n.func g { call f; ret; }\n\
                .visible .entry k() { call f; ret; }\n";
    let error = Module::load(text).expect_err("it recurs");
    assert!(error.message.contains("recursion"), "{error}");
}

/// A pseudorandom generator (splitmix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Mutates a text at random: words are swapped, repeated, dropped or replaced.
fn mutated(words: &[&str], state: &mut u64) -> String {
    const STRANGE: [&str; 9] = ["{", "}", "-", "99999999999999999999", "\"", "[", "%r1", ".b8", "é"];
    let mut changed = words.to_vec();
    for _ in 0..=next(state) % 3 {
        let (a, b) = (next(state) as usize % changed.len(), next(state) as usize % changed.len());
        match next(state) % 4 {
            0 => changed.swap(a, b),
            1 => changed[a] = changed[b],
            2 => drop(changed.remove(a)),
            _ => changed[a] = STRANGE[b % STRANGE.len()],
        }
    }
    changed.concat()
}

#[test]
fn broken_text_neither_panics_nor_hangs() {
    for (example, shared, tile, threads) in
        [("tma_scale", 8200, [64, 32], 128), ("transpose", 32776, [64, 64], 512)]
    {
        let (entry, text) =
            compile(&format!("examples/src/bin/{example}.rs")).pop().expect("it has a kernel");
        let words: Vec<&str> = text.split_inclusive([' ', '\n', ',', '.']).collect();
        let mut state = 1;
        let (mut ran, mut found, mut refused) = (0, 0, 0);
        for _ in 0..1500 {
            let Ok(module) = Module::load(&mutated(&words, &mut state)) else {
                refused += 1;
                continue;
            };
            let mut memory = GlobalMemory::default();
            let matrix = Matrix::new(&mut memory, DataType::F32, [64, 64], Some(&[0; 64 * 64 * 4]));
            let map = || Arg::Map(matrix.map(tile, Swizzle::None));
            let mut args = vec![map(), map(), Arg::Bytes(vec![0; 4])];
            args.truncate(module.kernel(&entry).map_or(0, |kernel| kernel.param_bytes().len()));
            let config = tiles(&matrix, [64, 64], threads, shared, next(&mut state));
            let config = LaunchConfig { instruction_limit: 300_000, ..config };
            if let Ok(report) = launch(&module, &mut memory, &entry, &config, &args) {
                ran += 1;
                found += u32::from(!report.findings.is_empty());
            }
        }
        assert!(
            ran > found && found > 0 && refused > 0,
            "{ran} ran, {found} with findings, {refused} refused"
        );
    }
}

#[test]
fn deep_nesting_is_an_error() {
    for text in [
        "{".repeat(100_000),
        format!("ld.u32 %r1, {}", "[".repeat(100_000)),
        format!("mov.u32 %r1, {}1;", "~".repeat(100_000)),
    ] {
        assert!(Module::load(&kernel(&text)).is_err());
    }
}
