//! Comments at the end of the PTX by which this project's compiler lists the shared variables that
//! the threads of a source line read and write, such as
//! `// shared line 35: reads input; writes output`. The names are those of the
//! [comments at the beginning](tma_model::shared_name).
//!
//! The reads (or writes) of a line are only checked if it has such a comment and the comment lists
//! its reads (or writes). PTX of other compilers has no such comments.

use std::collections::HashMap;
use std::sync::Arc;

use crate::isa::{Program, SharedName};
use crate::parse::LoadError;

const PREFIX: &str = "// shared line ";

/// The number of the only source file in PTX with these comments.
const FILE: u32 = 1;

/// The variables that a line accesses, as indices into the names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Line {
    reads: Option<Arc<[u32]>>,
    writes: Option<Arc<[u32]>>,
}

/// Annotates each access of threads to shared memory with the variables that its line may access.
pub(crate) fn mark_variables(
    ptx: &str,
    names: &[SharedName],
    programs: &mut [Program],
) -> Result<(), LoadError> {
    let lines = lines(ptx, names)?;
    if lines.is_empty() {
        return Ok(());
    }
    for inst in programs.iter_mut().flat_map(|program| &mut program.code) {
        if let Some((FILE, number)) = inst.site.source
            && let Some(line) = lines.get(&number)
            && let Some(access) = inst.op.thread_access()
        {
            inst.variables = if access.writes { line.writes.clone() } else { line.reads.clone() };
        }
    }
    Ok(())
}

/// Parses the comments after the last function, and returns them by line number.
fn lines(ptx: &str, names: &[SharedName]) -> Result<HashMap<u32, Line>, LoadError> {
    let all: Vec<&str> = ptx.lines().collect();
    let trailing = (1_u32..).zip(&all).collect::<Vec<_>>().into_iter().rev();
    let trailing = trailing.take_while(|(_, text)| text.is_empty() || text.starts_with("//"));
    let mut lines = HashMap::new();
    for (at, text) in trailing {
        let Some(text) = text.strip_prefix(PREFIX) else { continue };
        let (number, line) = line(text, names).map_err(|message| LoadError::new(at, message))?;
        if lines.insert(number, line).is_some() {
            return Err(LoadError::new(at, format!("two comments name the accesses of line {number}")));
        }
    }
    Ok(lines)
}

/// Parses `35: reads input; writes output`.
fn line(text: &str, names: &[SharedName]) -> Result<(u32, Line), String> {
    let malformed = || format!("`{PREFIX}{text}` is not of the form `{PREFIX}35: reads a; writes b c`");
    let (number, parts) = text.split_once(": ").ok_or_else(malformed)?;
    let number = number.parse().map_err(|_| malformed())?;
    let mut line = Line::default();
    for part in parts.split("; ") {
        let (does, variables) = part.split_once(' ').ok_or_else(malformed)?;
        let variables = numbers(variables, names)?;
        let list = match does {
            "reads" => &mut line.reads,
            "writes" => &mut line.writes,
            _ => return Err(malformed()),
        };
        if list.replace(variables).is_some() {
            return Err(malformed());
        }
    }
    Ok((number, line))
}

/// Returns the indices of the named variables. If several variables share a name, all of them are
/// included.
fn numbers(text: &str, names: &[SharedName]) -> Result<Arc<[u32]>, String> {
    let mut numbers = Vec::new();
    for wanted in text.split(' ') {
        let before = numbers.len();
        let named = (0..).zip(names).filter(|(_, name)| name.name == wanted);
        numbers.extend(named.map(|(number, _)| number));
        if numbers.len() == before {
            return Err(format!("no `// shared` comment has the variable `{wanted}`"));
        }
    }
    Ok(numbers.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<SharedName> {
        let name = |name: &str| SharedName { from: 0, to: 8, step: None, name: name.to_owned() };
        vec![name("a"), name("b"), name("a"), name("ring.full")]
    }

    fn parsed(ptx: &str) -> Result<HashMap<u32, Line>, LoadError> {
        lines(ptx, &names())
    }

    #[test]
    fn trailing_comments_name_accessed_variables() {
        let ptx = "// shared line 1: reads b\n.version 8.0\n}\n\n// shared line 3: reads b\n\
                   // anything\n// shared line 40: reads a ring.full; writes b\n";
        let (reads, writes) = (Some([0, 2, 3].into()), Some([1].into()));
        let wanted = [(3, Line { reads: Some([1].into()), writes: None }), (40, Line { reads, writes })];
        assert_eq!(parsed(ptx), Ok(wanted.into()));
        assert_eq!(parsed(".version 8.0\n}\n"), Ok(HashMap::new()));
    }

    #[test]
    fn malformed_comments_are_errors_with_their_line() {
        for text in [
            "",
            "3",
            "3:",
            "3: ",
            ": reads a",
            "x: reads a",
            "-3: reads a",
            "99999999999: reads a",
            "3: reads",
            "3: reads ",
            "3: reads a  b",
            "3: reads c",
            "3: reads a;writes b",
            "3: reads a; ",
            "3: reads a; reads b",
            "3: has a",
        ] {
            let found = parsed(&format!("}}\n// shared line {text}\n"));
            assert_eq!(found.map_err(|error| error.line), Err(2), "{text}");
        }
        let twice = "}\n// shared line 3: reads a\n// shared line 3: reads a\n";
        assert_eq!(parsed(twice).map_err(|error| error.line), Err(2));
    }
}
