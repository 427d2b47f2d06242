//! Checks of the editor's features in kernels.

use anyhow::{Result, ensure};

use super::session::Session;

type Check = fn(&mut Session) -> Result<()>;

/// All checks. Each starts from the original file.
pub(super) const ALL: [(&str, Check); 7] = [
    ("no diagnostics in correct kernels", nothing_is_underlined),
    ("no diagnostics in a kernel that was never built", nothing_is_underlined_while_typing),
    ("an error is reported on its line", a_mistake_is_underlined),
    ("members are completed after a dot", members_are_offered),
    ("members are completed within a statement", members_are_offered_within_a_statement),
    ("hover shows types and documentation", hover),
    ("go to definition", definitions),
];

/// A value's name, and some of its members.
type Members = (&'static str, &'static [&'static str]);

/// The positions at which the checks type, with the values in scope.
const MEMBERS: [(&str, &[Members]); 6] = [
    ("alone", &[("tile", TILE), ("full", BARRIER), ("map", MAP)]),
    ("nested", &[("tile", TILE), ("full", BARRIER), ("map", MAP)]),
    ("instances", &[("tile", TILE), ("full", BARRIER), ("map", GLOBAL)]),
    ("instruction", &[("tile", TILE), ("array", ARRAY), ("map", GLOBAL)]),
    ("device", &[("tile", TILE), ("map", GLOBAL)]),
    ("behind", &[("tile", TILE), ("full", BARRIER), ("map", GLOBAL)]),
];

const TILE: &[&str] = &["bytes", "get", "set"];
const ARRAY: &[&str] = &["get", "len", "set_vec"];
const BARRIER: &[&str] = &["arrive_expect_tx", "init", "wait"];
const MAP: &[&str] = &["load", "prefetch", "store"];
const GLOBAL: &[&str] = &["get", "len", "set"];

fn nothing_is_underlined(session: &mut Session) -> Result<()> {
    let found = session.diagnostics()?;
    ensure!(found.is_empty(), "{found:#?}");
    Ok(())
}

fn nothing_is_underlined_while_typing(session: &mut Session) -> Result<()> {
    for (definition, _) in MEMBERS {
        session.type_at(definition, "if thread_idx().x == 5 { sync_warp(); }")?;
        let found = session.diagnostics()?;
        ensure!(found.is_empty(), "at {definition}: {found:#?}");
    }
    Ok(())
}

fn a_mistake_is_underlined(session: &mut Session) -> Result<()> {
    for (definition, _) in MEMBERS {
        let mistake = "map.nope();";
        session.type_at(definition, mistake)?;
        let line = session.line(mistake)?;
        let found = session.diagnostics()?;
        let is_meant = |message: &String| message.starts_with(&format!("{line}: TMA0103"));
        ensure!(found.iter().any(is_meant), "at {definition}, line {line}: {found:#?}");
    }
    Ok(())
}

fn members_are_offered(session: &mut Session) -> Result<()> {
    each_member(session, |value| format!("{value}."))
}

fn members_are_offered_within_a_statement(session: &mut Session) -> Result<()> {
    each_member(session, |value| format!("if true {{ sync_warp(); }} let taken = {value}."))
}

fn each_member(session: &mut Session, typed: impl Fn(&str) -> String) -> Result<()> {
    for (definition, values) in MEMBERS {
        for (value, wanted) in values {
            let found = session.members(definition, &typed(value))?;
            let missing: Vec<_> =
                wanted.iter().filter(|name| !found.iter().any(|found| found == *name)).collect();
            ensure!(missing.is_empty(), "after `{value}.` at {definition}: no {missing:?} in {found:?}");
        }
    }
    Ok(())
}

fn hover(session: &mut Session) -> Result<()> {
    for (word, wanted) in [
        ("arrive_expect_tx(", "pub fn arrive_expect_tx(self, bytes: u32)"),
        ("tile.bytes()", "tile: Tile<f16, Shape2<64, 64>>"),
        ("leader {", "leader: bool"),
        ("array.set(", "array: SharedArray<u32, 32>"),
        ("number) };", "number: u32"),
        ("helped(map, tile);", "fn helped(map: Global<u32>, tile: Tile<u32"),
    ] {
        let found = session.hover(word)?;
        ensure!(found.contains(wanted), "hover of `{word}` is {found:?}");
    }
    Ok(())
}

fn definitions(session: &mut Session) -> Result<()> {
    for (word, wanted) in [
        ("tile.bytes()", "tile: Tile<f16"),
        ("leader {", "leader = "),
        ("helped(map, tile);", "fn helped"),
        ("array.set(", "array: SharedArray"),
        ("highest, in", "let mut highest"),
        ("number) };", "let number"),
        ("THREADS {", "const THREADS"),
        ("doubled(THREADS)", "fn doubled"),
    ] {
        let (file, line) = session.definition(word)?;
        let wanted = session.line(wanted)?;
        ensure!(file.ends_with("src/lib.rs") && line == wanted, "`{word}` leads to {file}:{line}");
    }
    let (file, _) = session.definition("arrive_expect_tx(")?;
    ensure!(file.ends_with("tma-runtime/src/lang/barrier.rs"), "`arrive_expect_tx` leads to {file}");
    Ok(())
}
