//! What errors advise: the words that are to be written instead.

use super::refused;

/// What is said of a kernel that does this.
#[track_caller]
fn says(statements: &str, want: &str) {
    let source = format!(
        "#[tma_kernel(threads = 32)]\nfn k(out: Global<u32>) {{\n\
         let full: Barrier = shared(); let tile: Tile<f32, Shape2<8, 8>> = shared();\n\
         let row: SharedArray<u32, 8> = shared(); let rows: Stages<SharedArray<u32, 8>, 2> = shared();\n\
         {statements}\n}}"
    );
    assert_eq!(refused(&source).trim(), want.trim());
}

#[test]
fn an_element_in_memory_is_set() {
    let no_part =
        |ty: &str, help: &str| format!("TMA0108: no part of `{ty}` can be assigned to\nhelp: {help}");
    says("out[0] = 1;", &no_part("Global<u32>", "write `out.set(i, value)`"));
    says("out[0] += 1;", &no_part("Global<u32>", "write `out.set(i, value)`"));
    says("row[3] = 1;", &no_part("SharedArray<u32, 8>", "write `row.set(i, value)`"));
    says(
        "let mut part = rows[0]; part[3] = 1;",
        &no_part("SharedArray<u32, 8>", "write `part.set(i, value)`"),
    );
    says(
        "tile[3] = 1.0;",
        &no_part(
            "Tile<f32, Shape2<8, 8>>",
            "write `tile.set([row, column], value)`, with a coordinate for each dimension",
        ),
    );
    says(
        "rows[1][3] = 1;",
        &no_part("Stages<SharedArray<u32, 8>, 2>", "stages change by their methods: `rows[i].set(..)`"),
    );
    says(
        "let all = [1u32, 2]; all[0] = 3;",
        "TMA0108: `all` cannot be changed\nhelp: declare it with `let mut all = ..;`",
    );
}

#[test]
fn bulk_waits_take_a_constant_in_angle_brackets() {
    says(
        "bulk_wait_group_read(0);",
        "TMA0104: `bulk_wait_group_read` takes no arguments, but 1 is given: the groups that may be pending are generic\n\
         help: write `bulk_wait_group_read::<0>()` to wait for all",
    );
    says(
        "bulk_wait_group();",
        "TMA0104: `bulk_wait_group` takes how many groups may be pending, in angle brackets\n\
         help: write `bulk_wait_group::<0>()` to wait for all",
    );
}

#[test]
fn a_wait_is_told_its_parity_and_wait_next_its_phase() {
    says(
        "full.wait();",
        "TMA0104: `wait` takes one argument, but 0 are given\n\
         help: write `wait(parity)`: 0 for the first phase, then 1, then 0 again",
    );
    says(
        "full.arrive(1);",
        "TMA0104: `arrive` takes no arguments, but 1 is given\nhelp: write it without arguments",
    );
    says(
        "full.wait_next(0);",
        "TMA0102: `wait_next` takes a `Phase`, not an integer\n\
         help: pass `&mut phase`, of `let mut phase = Phase::new();`; a parity is for `wait`",
    );
    says(
        "full.wait_next();",
        "TMA0104: `wait_next` takes one argument, but 0 are given\nhelp: write `full.wait_next(&mut phase)`",
    );
}
