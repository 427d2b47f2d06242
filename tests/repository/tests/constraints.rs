//! Checks that `docs/constraints.md` names only pages and tests that exist, and omits no page about
//! tensor maps.

use std::fs;
use std::path::PathBuf;

use tma_tests_repository::root;

/// Texts by which pages about tensor maps and copies cite their source.
const SOURCES: [&str; 5] =
    ["`cuTensorMapEncode", "\"cp.async.bulk", "\"cp.reduce", "mbarrier object", "Thread Block Clusters"];

fn page() -> String {
    fs::read_to_string(root().join("docs/constraints.md")).expect("there is a page of constraints")
}

/// Returns the cells of each row of the page's tables, without the headings.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let cells = lines.map(|line| line.split(" | ").collect::<Vec<_>>());
    cells.filter(|cells| !matches!(cells[0], "rule" | "---")).collect()
}

/// Returns the texts between backquotes in a cell.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Returns the codes whose pages a cell links to.
fn codes(cell: &str) -> impl Iterator<Item = &str> {
    cell.split("[TMA").skip(1).filter_map(|rest| rest.split(']').next())
}

/// Whether the file that a cell names exists, or the test in it.
fn exists(name: &str) -> bool {
    let (path, test) = name.split_once("::").unwrap_or((name, ""));
    let text = fs::read_to_string(root().join(path));
    text.is_ok_and(|text| test.is_empty() || text.contains(&format!("#[test]\nfn {test}()")))
}

fn error_page(code: &str) -> PathBuf {
    root().join(format!("docs/errors/TMA{code}.md"))
}

#[test]
fn each_rule_says_where_it_is_held_and_what_breaks_it() {
    let page = page();
    let rows = rows(&page);
    assert!(rows.len() >= 60, "{} rules", rows.len());
    for cells in rows {
        let [rule, held, broken_by] = *cells else { panic!("not three cells: {cells:?}") };
        let (pages, tests) = (codes(broken_by).count(), quoted(broken_by).count());
        assert!(!held.is_empty() && pages + tests > 0, "`{rule}` names neither a page nor a test");
        for code in codes(broken_by) {
            assert!(error_page(code).exists(), "`{rule}`: there is no page of TMA{code}");
        }
        for name in quoted(broken_by) {
            assert!(exists(name), "`{rule}`: there is no {name}");
        }
    }
}

#[test]
fn what_is_not_there_is_noticed() {
    assert!(exists("tests/repository/tests/constraints.rs::what_is_not_there_is_noticed"));
    assert!(!exists("tests/repository/tests/constraints.rs::what_is_there_is_noticed"));
    assert!(!exists("tests/repository/tests/constraint.rs"));
}

#[test]
fn no_page_about_tensor_maps_and_copies_is_left_out() {
    let page = page();
    let folder = fs::read_dir(root().join("docs/errors")).expect("there are pages of errors");
    let mut left_out = vec![];
    for path in folder.flatten().map(|entry| entry.path()) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a page is text");
        let concerned = name.starts_with("TMA") && SOURCES.iter().any(|source| text.contains(source));
        if concerned && !page.contains(&format!("errors/{name}.md")) {
            left_out.push(name);
        }
    }
    assert!(left_out.is_empty(), "docs/constraints.md lacks {left_out:?}");
}
