//! Constants that functions compute.

use super::types::Ty;
use super::{Local, Writer};

impl Writer<'_> {
    /// Writes a `const fn` of one number, and a table of its results.
    pub(super) fn constants(&mut self) {
        let (function, table) = (self.fresh("c"), self.fresh("K"));
        let [divisor, factor, added] = [2, 1, 0].map(|least| self.rng.below(6) + least);
        let (turns, modulus) = (self.rng.below(9), 2 + self.rng.below(1000));
        let word = *self.rng.one_of(&["break", "continue"]);
        self.line(&format!("const fn {function}(x: u32) -> u32 {{"));
        for line in [
            format!("let mut n: u32 = x % {modulus}u32;"),
            "let mut i: u32 = 0u32;".to_owned(),
            format!("while i < {turns}u32 {{"),
            "    i += 1u32;".to_owned(),
            format!("    if n == {}u32 {{ {word}; }}", self.rng.below(4)),
            format!("    n = match n % {divisor}u32 {{"),
            format!("        0 => n / {divisor}u32,"),
            format!("        1 => if n > {added}u32 {{ n - {added}u32 }} else {{ n }},"),
            format!("        _ => (n * {factor}u32 + {added}u32) % {modulus}u32,"),
            "    };".to_owned(),
            "}".to_owned(),
            "n".to_owned(),
        ] {
            self.line(&format!("    {line}"));
        }
        self.line("}");
        let extent = 1 + self.rng.below(4);
        let results = (0..extent).map(|_| format!("{function}({}u32)", self.rng.below(5000)));
        let results = results.collect::<Vec<_>>().join(", ");
        self.line(&format!("const {table}: [u32; {extent}] = [{results}];"));
        self.const_functions.push(function);
        self.tables.push(Local { name: table, ty: Ty::U32, extents: vec![extent], mutable: false });
        self.locals.clone_from(&self.tables);
    }
}
