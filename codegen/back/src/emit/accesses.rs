//! Comments at the end of the PTX that list, for each source line, the shared variables that its
//! threads read and write: `// shared line 35: reads input; writes output`.
//!
//! All shared memory of a kernel is one symbol, and LLVM folds offsets into addresses. The
//! instructions therefore do not show which variable an index belongs to. The comments do, for each
//! line of `.loc`: the simulator compares them with the variable that an access hits.
//!
//! A line lists the variables of all its statements, over all calls of the function that contains
//! it. A local that holds a tile, an array or stages stands for every variable assigned to it.
//! Elements of stages count as the whole variable. Copies, mbarriers and multiplications are not
//! listed: the simulator checks their operands by other rules.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tma_front::escape::{self, SHARED_LINE};
use tma_front::ir::visit::{for_each_stmt, within};
use tma_front::ir::{Accessor, Expr, ExprKind, Kernel, LocalId, SharedId, StmtKind};

/// Ids of shared variables, in the order of the kernel.
type Variables = BTreeSet<u32>;

/// The variables accessed by the statements of a line.
#[derive(Default)]
struct Line {
    reads: Variables,
    writes: Variables,
}

/// Returns the comments, one per line, in the order of the source.
pub(super) fn comments(kernel: &Kernel) -> String {
    let handles = handles(kernel);
    let mut lines = BTreeMap::<usize, Line>::new();
    for_each_stmt(&kernel.body, &mut |stmt| {
        let facts = stmt.facts();
        for access in facts.accesses.iter().filter(|access| access.by == Accessor::Threads) {
            let Some(object) = access.object.shared() else { continue };
            let line = lines.entry(stmt.origin.span.first_line()).or_default();
            let accessed = if access.writes { &mut line.writes } else { &mut line.reads };
            accessed.extend(variables(object, &handles));
        }
    });
    lines.iter().map(|(number, line)| comment(kernel, *number, line)).collect()
}

fn comment(kernel: &Kernel, number: usize, line: &Line) -> String {
    let part = |does: &str, variables: &Variables| {
        let names: BTreeSet<_> = variables.iter().map(|&id| &kernel.shared_var(SharedId(id)).name).collect();
        let names: Vec<_> = names.into_iter().map(|name| escape::ascii(name)).collect();
        (!names.is_empty()).then(|| format!("{does} {}", names.join(" ")))
    };
    let parts: Vec<_> =
        [part("reads", &line.reads), part("writes", &line.writes)].into_iter().flatten().collect();
    format!("{SHARED_LINE}{number}: {}\n", parts.join("; "))
}

/// Returns the variables that each local may hold. A local may be assigned from another one that is
/// assigned later in a loop, so this iterates to a fixed point.
fn handles(kernel: &Kernel) -> HashMap<LocalId, Variables> {
    let mut handles = HashMap::<LocalId, Variables>::new();
    loop {
        let mut grown = false;
        for_each_stmt(&kernel.body, &mut |stmt| {
            let StmtKind::Assign { local, value, .. } = &stmt.kind else { return };
            let assigned = variables(value, &handles);
            if assigned.is_empty() {
                return;
            }
            let held = handles.entry(*local).or_default();
            let before = held.len();
            held.extend(assigned);
            grown |= held.len() > before;
        });
        if !grown {
            return handles;
        }
    }
}

/// Returns the variables that an expression names, directly or through locals.
fn variables(expr: &Expr, handles: &HashMap<LocalId, Variables>) -> Variables {
    let mut found = Variables::new();
    within(expr, &mut |part| {
        if let ExprKind::Shared(SharedId(id)) = part.kind {
            found.insert(id);
        } else if let ExprKind::Local(local) = part.kind {
            found.extend(handles.get(&local).into_iter().flatten());
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Target, compile};

    /// Returns the comments of the only kernel of `source`.
    fn noted(source: &str) -> Vec<String> {
        let compiled = compile("a.rs", source, Target::Sm90a).unwrap_or_else(|error| panic!("{error}"));
        let text = compiled.kernels.into_iter().next().expect("there is a kernel").text;
        text.lines().filter_map(|line| line.strip_prefix(SHARED_LINE)).map(str::to_owned).collect()
    }

    #[test]
    fn lines_say_what_they_read_and_write() {
        let found = noted(
            "#[tma_kernel(threads = 32)]\npub fn k() {\nlet a: SharedArray<u32, 32> = shared();\n\
             let b: SharedArray<u32, 32> = shared();\nlet i = thread_idx().x;\na.set(i, i);\n\
             sync_threads();\nb.set(i, a.get(31 - i));\n}\n",
        );
        assert_eq!(found, ["6: writes a", "8: reads a; writes b"]);
    }

    #[test]
    fn a_function_accesses_what_its_callers_pass() {
        let found = noted(
            "#[tma_module]\nmod m {\n#[tma_device]\nfn put(to: SharedArray<u32, 32>, i: u32) {\n\
             to.set(i, 1);\n}\n#[tma_kernel(threads = 32)]\npub fn k() {\n\
             let a: SharedArray<u32, 32> = shared();\nlet b: Stages<SharedArray<u32, 32>, 2> = shared();\n\
             let i = thread_idx().x;\nput(a, i);\nfor stage in 0..2 {\nput(b[stage], i);\n}\n}\n}\n",
        );
        assert_eq!(found, ["5: writes a b"]);
    }

    #[test]
    fn a_local_stands_for_all_that_is_assigned_to_it() {
        let found = noted(
            "#[tma_kernel(threads = 32)]\npub fn k() {\nlet a: SharedArray<u32, 32> = shared();\n\
             let b: SharedArray<u32, 32> = shared();\nlet c: SharedArray<u32, 32> = shared();\n\
             let i = thread_idx().x;\nlet mut first = a;\nlet mut second = b;\nfor _ in 0..3 {\n\
             first.set(i, i);\nfirst = second;\nsecond = c;\n}\n}\n",
        );
        assert_eq!(found, ["10: writes a b c"]);
    }
}
