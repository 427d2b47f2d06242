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
        "TMA0104: `bulk_wait_group_read` takes no arguments, but 1 is given\n\
         help: write `bulk_wait_group_read::<N>()`: at most `N` groups may be pending, and 0 waits for all",
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
    says("full.arrive(1);", "TMA0104: `arrive` takes no arguments, but 1 is given\nhelp: write `arrive()`");
    says(
        "full.wait_next(0);",
        "TMA0102: `wait_next` takes a `Phase`, not an integer\n\
         help: pass `&mut phase`, of `let mut phase = Phase::new();`; a parity is for `wait`",
    );
    says(
        "full.wait_next();",
        "TMA0104: `wait_next` takes one argument, but 0 are given\nhelp: write `wait_next(&mut phase)`",
    );
}

/// The lists of types in messages are those of the language reference.
#[test]
fn messages_and_the_reference_list_the_same_types() {
    let book = include_str!("../../../docs/language.md");
    let parameter = refused("#[tma_kernel(threads = 32)]\nfn k(full: Barrier) {}");
    let (_, list) = parameter.split_once("help: parameters are ").expect("the list is in the help");
    assert!(book.contains(&format!("Parameters are {}.\n", list.trim())), "{list}");

    let of_shared = refused("#[tma_kernel(threads = 32)]\nfn k() { let x: u32 = shared(); }");
    let (_, list) = of_shared.split_once("help: what can: ").expect("the list is in the help");
    let (_, table) = book.split_once("## Shared memory").expect("the chapter is there");
    let rows = table.lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with("| `"));
    // What stands in backquotes, without generics.
    let quoted = |text: &str| -> Vec<String> {
        let names = text.split('`').skip(1).step_by(2).filter_map(|name| name.split('<').next());
        names.map(str::to_owned).collect()
    };
    let in_book: Vec<_> = rows.filter_map(|row| quoted(row).into_iter().next()).collect();
    assert_eq!(in_book, quoted(list));
    let type_help = refused("#[tma_kernel(threads = 32)]\nfn k() { let x: (u32, u32) = 1; }");
    for word in ["Im2colMap", "Maps", "SharedMap", "Phase", "Token"] {
        assert!(type_help.contains(&format!("`{word}")), "{type_help}");
    }
}

#[test]
fn suggestions_are_near_and_of_the_right_kind() {
    // `tile` is a variable, and no nearer than two letters.
    says(
        "out.set(0, twice(1));",
        "TMA0101: kernels have no function `twice`\n\
         help: a kernel calls the vocabulary's functions and, in a `#[tma_module]`, the module's `#[tma_device]` functions",
    );
    says(
        "sync_thread();",
        "TMA0101: kernels have no function `sync_thread`\nhelp: did you mean `sync_threads`?",
    );
    says(
        "out.set(thread_idx.x, 1);",
        "TMA0101: nothing in this kernel is called `thread_idx`\n\
         help: `thread_idx` is a function: write `thread_idx()` to call it",
    );
}

#[test]
fn words_of_other_languages_are_named() {
    for (statement, want) in [
        ("__syncthreads();", "`__syncthreads` is `sync_threads()` here"),
        ("out.set(threadIdx.x, 1);", "`threadIdx` is `thread_idx()` here"),
        ("let x = __shfl_xor_sync(1, 2, 3);", "`__shfl_xor_sync` is `shuffle_xor(x, mask)` here"),
        (
            "wgmma(tile, tile);",
            "`wgmma` is not there: kernels do not have the tensor cores' instructions yet",
        ),
        ("let x = expf(1.0);", "`expf` is `exp(x)` here"),
        ("let x = 1.0f32; let y = x.exp();", "`exp` is `exp(x)` here"),
        ("let x = floor(1.0);", "kernels do not have `floor`: there is no rounding to whole floats yet"),
        ("atomicAdd(out, 1);", "`atomicAdd` is `global.atomic_add(i, value)` here"),
        ("let x = tl.load(out);", "tiles are moved by tensor maps"),
        ("let x: half = 1;", "`half` is `f16` here"),
        ("println!(\"x\");", "`println` is `printf!(\"..\\n\", ..)` here"),
    ] {
        let source = format!(
            "#[tma_kernel(threads = 32)]\nfn k(out: Global<u32>) {{\n\
             let tile: Tile<f32, Shape2<8, 8>> = shared();\n{statement}\n}}"
        );
        let said = refused(&source);
        assert!(said.contains(want), "{want:?} is not in:\n{said}");
    }
}

#[test]
fn each_scalar_has_its_own_methods() {
    let methods = |value: &str| {
        let said = refused(&format!("#[tma_kernel(threads = 32)]\nfn k() {{ let x = {value}; x.quirk(); }}"));
        said.split_once("its methods are ").map(|(_, list)| list.trim().to_owned())
    };
    let bits = "count_ones, count_zeros, leading_zeros, leading_ones, trailing_zeros, trailing_ones, \
                reverse_bits, swap_bytes, rotate_left, rotate_right";
    assert_eq!(methods("1u32"), Some(format!("min, max, clamp, div_ceil, {bits}")));
    assert_eq!(methods("1i32"), Some(format!("min, max, abs, clamp, {bits}")));
    assert_eq!(
        methods("1.0f32").as_deref(),
        Some("min, max, abs, mul_add, sqrt, recip, clamp, copysign, to_bits")
    );
    assert_eq!(
        methods("f16::from_f32(1.0)").as_deref(),
        Some("min, max, abs, mul_add, clamp, copysign, to_f32, to_f64, to_bits")
    );
    assert_eq!(methods("e4m3::from_f32(1.0)").as_deref(), Some("to_f32, to_f64, to_bits"));
    assert_eq!(methods("true"), None);
}

#[test]
fn sliced_loads_are_suggested_where_they_can_be() {
    let said = |attr: &str, map: &str| {
        refused(&format!(
            "#[tma_kernel(threads = 32{attr})]\nfn k(map: {map}) {{ map.load_slice(); map.quirk(); }}"
        ))
    };
    let tiled = "TensorMap<Tile<f32, Shape2<8, 8>>>";
    assert!(said(", cluster = 2", tiled).contains("did you mean `load_sliced`"));
    assert!(!said("", tiled).contains("load_sliced"));
    assert!(!said(", cluster = 2", "Im2colMap<Tile<f32, Shape2<8, 8>>, 4>").contains("load_sliced"));
}

#[test]
fn an_error_of_some_instances_names_them() {
    let said = refused(
        "#[tma_kernel(threads = 32, instances(narrow = <4>, wide = <64>, widest = <128>))]\n\
         fn k<const N: u32>(out: Global<u32>) { out.set(0, 1 << N); out.set(1, totl); }",
    );
    assert!(said.contains("the width of its type or more (in the instances `wide`, `widest`)"), "{said}");
    assert!(said.contains("nothing in this kernel is called `totl`\n"), "{said}");
}
