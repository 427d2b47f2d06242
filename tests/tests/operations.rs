//! Lines of kernels that are repeated for each operation. The compiler reads a kernel as it is
//! written, without expanding macros, so a test generates these lines from the line above them:
//!
//! ```text
//! // for op in ReduceOp: {i or _} => dst.reduce_{op}(at, tile),
//! 0 => dst.reduce_add(at, tile),
//! 1 => dst.reduce_min(at, tile),
//! ..
//! // end for
//! ```
//!
//! `// and: ` begins another line for the same operation. `{op}` is the operation's name and `{i}`
//! its number, which may be multiplied and added to: `{8i + 4}`, `{i + len}`. `{i or _}` is `_` for
//! the last. The operations are all, or those of one family: `ReduceFamily::Bits`.
//!
//! `BLESS=1` accepts a change, such as a new operation.

use std::fs;
use std::path::Path;

use tma_model::{ReduceFamily, ReduceOp};
use tma_tests::sources::{conformance, corpus};

const FOR: &str = "// for op in ";
const AND: &str = "// and: ";
const END: &str = "// end for";

/// Returns the operations of a list, by its name.
fn operations(name: &str) -> Option<Vec<ReduceOp>> {
    let of = |family| ReduceOp::ALL.into_iter().filter(|op| op.family() == family).collect();
    Some(match name {
        "ReduceOp" => ReduceOp::ALL.to_vec(),
        "ReduceFamily::Arithmetic" => of(ReduceFamily::Arithmetic),
        "ReduceFamily::Order" => of(ReduceFamily::Order),
        "ReduceFamily::Count" => of(ReduceFamily::Count),
        "ReduceFamily::Bits" => of(ReduceFamily::Bits),
        _ => return None,
    })
}

/// Computes a number of a template, such as `8i + 4`, for the operation `i` of `len`.
fn number(text: &str, i: usize, len: usize) -> Option<usize> {
    let (factor, rest) = text.split_once('i')?;
    let factor = if factor.is_empty() { 1 } else { factor.parse().ok()? };
    let more = match rest.strip_prefix(" + ") {
        None if rest.is_empty() => 0,
        Some("len") => len,
        Some(more) => more.parse().ok()?,
        None => return None,
    };
    Some(factor * i + more)
}

/// Returns the line of a template for the operation `i` of `all`.
fn line(template: &str, i: usize, all: &[ReduceOp]) -> Option<String> {
    let mut line = String::new();
    let mut rest = template;
    while let Some((before, (hole, after))) =
        rest.split_once('{').and_then(|(before, after)| Some((before, after.split_once('}')?)))
    {
        line.push_str(before);
        line.push_str(&match hole.strip_suffix(" or _") {
            Some(_) if i + 1 == all.len() => "_".to_owned(),
            Some(hole) => number(hole, i, all.len())?.to_string(),
            None if hole == "op" => all[i].name().to_owned(),
            None => number(hole, i, all.len())?.to_string(),
        });
        rest = after;
    }
    Some(line + rest)
}

/// Returns the text with the lines of its templates.
fn expanded(text: &str) -> Result<String, String> {
    let mut made = String::new();
    let mut lines = text.lines();
    while let Some(first) = lines.next() {
        made.push_str(&format!("{first}\n"));
        let code = first.trim_start();
        let Some(template) = code.strip_prefix(FOR) else { continue };
        let indent = &first[..first.len() - code.len()];
        let broken = || format!("not a template: {code}");
        let (list, template) = template.split_once(": ").ok_or_else(broken)?;
        let all = operations(list).ok_or_else(broken)?;
        let mut templates = vec![template];
        let mut end = None;
        for line in lines.by_ref() {
            if let Some(template) = line.trim_start().strip_prefix(AND) {
                made.push_str(&format!("{line}\n"));
                templates.push(template);
            } else if line.trim_start() == END {
                end = Some(line);
                break;
            }
        }
        for i in 0..all.len() {
            for template in &templates {
                let line = line(template, i, &all).ok_or_else(broken)?;
                made.push_str(&format!("{indent}{line}\n"));
            }
        }
        made.push_str(&format!("{}\n", end.ok_or_else(|| format!("`{END}` is missing after: {code}"))?));
    }
    Ok(made)
}

#[test]
fn kernels_have_a_line_for_each_operation() {
    let (mut templates, mut wrong) = (0, vec![]);
    for source in corpus().iter().chain(conformance()) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(source.path);
        let text = fs::read_to_string(&path).expect("the file can be read");
        templates += text.matches(FOR).count();
        let wanted = expanded(&text).unwrap_or_else(|fault| panic!("{}: {fault}", source.path));
        wrong.extend(tma_golden::compare(&path, &wanted).err());
    }
    assert!(templates > 0, "no kernel has such lines");
    let wrong: Vec<_> = wrong.iter().map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn templates_say_what_the_lines_are() {
    let text = "  // for op in ReduceFamily::Order: {i or _} => x.{op}([{8i + 4}]),\n  // and: old\n  stale\n  // end for\n";
    let wanted = "  // for op in ReduceFamily::Order: {i or _} => x.{op}([{8i + 4}]),\n  // and: old\n  \
                  0 => x.min([4]),\n  old\n  _ => x.max([12]),\n  old\n  // end for\n";
    assert_eq!(expanded(text).as_deref(), Ok(wanted));
    assert_eq!(expanded(wanted).as_deref(), Ok(wanted), "what is written stays");
    let ended = expanded("// for op in ReduceOp: {op}\n");
    assert_eq!(ended.unwrap_err(), "`// end for` is missing after: // for op in ReduceOp: {op}");
    assert!(expanded("// for op in Other: {op}\n// end for\n").is_err());
    assert!(expanded("// for op in ReduceOp: {x}\n// end for\n").is_err());
}
