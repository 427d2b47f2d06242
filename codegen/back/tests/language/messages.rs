//! Messages and the language reference have the same lists.

use super::refused;

/// The lists of types in messages are those of the language reference.
#[test]
fn messages_and_the_reference_list_the_same_types() {
    let kernels = include_str!("../../../../docs/language/kernels.md");
    let shared_memory = include_str!("../../../../docs/language/shared-memory.md");
    let parameter = refused("#[tma_kernel(threads = 32)]\nfn k(full: Barrier) {}");
    let (_, list) = parameter.split_once("help: use one of ").expect("the list is in the help");
    let unwrapped = kernels.replace('\n', " ");
    assert!(unwrapped.contains(&format!("Parameters are {}. ", list.trim())), "{list}");

    let of_shared = refused("#[tma_kernel(threads = 32)]\nfn k() { let x: u32 = shared(); }");
    let (_, list) = of_shared.split_once("help: use one of ").expect("the list is in the help");
    let rows = shared_memory.lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with("| `"));
    // The text between backquotes, without generics.
    let quoted = |text: &str| -> Vec<String> {
        let names = text.split('`').skip(1).step_by(2).filter_map(|name| name.split('<').next());
        names.map(str::to_owned).collect()
    };
    let in_book: Vec<_> = rows.filter_map(|row| quoted(row).into_iter().next()).collect();
    assert_eq!(in_book, quoted(list));
    let type_help = refused("#[tma_kernel(threads = 32)]\nfn k() { let x: &u32 = 1; }");
    for word in ["Im2colMap", "Maps", "SharedMap", "Phase", "Token", "Accumulator", "Rows", "Fragment"] {
        assert!(type_help.contains(&format!("`{word}")), "{type_help}");
    }
}
