//! Comments by which this project's compiler describes the layout of dynamic shared memory, such as
//! `// shared 4096..4104 full: Barrier` or, for several objects of one kind,
//! `// shared 4096..4128 by 8 full: Stages<Barrier, 4>`.
//!
//! These comments only serve findings. A comment of any other form is ignored.

use crate::isa::SharedName;

/// Returns the variables that the comments before the first directive name.
pub(crate) fn shared_names(ptx: &str) -> Vec<SharedName> {
    let header = ptx.lines().take_while(|line| line.is_empty() || line.starts_with("//"));
    header.filter_map(|line| shared_name(line.strip_prefix("// shared ")?)).collect()
}

fn shared_name(text: &str) -> Option<SharedName> {
    let (subject, _) = text.split_once(": ")?;
    let words: Vec<&str> = subject.split(' ').collect();
    let (range, step, name) = match words[..] {
        [range, name] => (range, None, name),
        [range, "by", step, name] => (range, Some(step.parse().ok().filter(|&step: &u32| step > 0)?), name),
        _ => return None,
    };
    let (from, to) = range.split_once("..")?;
    Some(SharedName { from: from.parse().ok()?, to: to.parse().ok()?, step, name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_the_form_name_variables() {
        let ptx = "// kernel: k\n// shared 0..1024 tile: Tile<f16, Shape2<8, 64>>\n// shared 1024..1056 by 8 full: Stages<Barrier, 4>\n\n\
                   .version 8.0\n// shared 0..8 late: Barrier\n";
        let tile = SharedName { from: 0, to: 1024, step: None, name: "tile".to_owned() };
        let full = SharedName { from: 1024, to: 1056, step: Some(8), name: "full".to_owned() };
        assert_eq!(shared_names(ptx), [tile, full]);
    }

    #[test]
    fn other_comments_are_comments() {
        for line in [
            "// shared",
            "// shared 0..8 full",
            "// shared 0..8: Barrier",
            "// shared 0-8 full: Barrier",
            "// shared 0..8 by 0 full: x",
            "// shared 0..8 by full: Barrier",
            "// shared 0..99999999999 full: Barrier",
            "// shared 0..8 a b: Barrier",
            "//shared 0..8 a: b",
        ] {
            assert_eq!(shared_names(line), [], "{line}");
        }
    }
}
