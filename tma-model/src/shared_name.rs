//! Names of variables in the shared memory of a block. The compiler writes them as comments at the
//! beginning of the PTX; the simulator and the traces of GPUs read them.
//!
//! A comment such as `// shared 4096..4104 full: Barrier` names a variable, and one such as
//! `// shared 4096..4128 by 8 full: Stages<Barrier, 4>` several objects of one kind. The offsets
//! are those in the dynamic shared memory.

/// A variable in the shared memory of each block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedName {
    /// The first byte.
    pub from: u32,
    /// The byte after the last one.
    pub to: u32,
    /// The stride in bytes, if the variable consists of several objects of one kind.
    pub step: Option<u32>,
    /// The name in the source.
    pub name: String,
}

impl SharedName {
    /// Returns the variables that the comments before the first directive of `ptx` name. A comment
    /// of any other form is ignored.
    pub fn in_ptx(ptx: &str) -> Vec<Self> {
        let header = ptx.lines().take_while(|line| line.is_empty() || line.starts_with("//"));
        header.filter_map(|line| Self::parse(line.strip_prefix("// shared ")?)).collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let (subject, _) = text.split_once(": ")?;
        let words: Vec<&str> = subject.split(' ').collect();
        let (range, step, name) = match words[..] {
            [range, name] => (range, None, name),
            [range, "by", step, name] => {
                (range, Some(step.parse().ok().filter(|&step: &u32| step > 0)?), name)
            }
            _ => return None,
        };
        let (from, to) = range.split_once("..")?;
        Some(Self { from: from.parse().ok()?, to: to.parse().ok()?, step, name: name.to_owned() })
    }

    /// Returns whether the byte at `at` belongs to the variable.
    pub fn has(&self, at: u32) -> bool {
        (self.from..self.to).contains(&at)
    }

    /// Returns the name of the object that the byte at `at` belongs to, such as `full[2]`, and the
    /// byte's offset in it. `at` is in the variable.
    pub fn object_at(&self, at: u32) -> (String, u32) {
        let (name, offset) = (&self.name, at.saturating_sub(self.from));
        match self.step {
            Some(step) => (format!("{name}[{}]", offset / step.max(1)), offset % step.max(1)),
            None => (name.clone(), offset),
        }
    }
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
        assert_eq!(
            (tile.object_at(9), full.object_at(1044)),
            (("tile".to_owned(), 9), ("full[2]".to_owned(), 4))
        );
        assert_eq!(SharedName::in_ptx(ptx), [tile, full]);
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
            assert_eq!(SharedName::in_ptx(line), [], "{line}");
        }
    }
}
