//! Random kernels that multiply, edit elements, pack and wait, in branches and loops. Accumulators
//! of matmuls in flight are not accessed, as rustc demands.

/// A source of random numbers: SplitMix64.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    fn among<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        if all.is_empty() { None } else { all.get(self.below(all.len() as u64) as usize) }
    }
}

/// Returns a kernel with accumulators `s` and `t` of 64 × 64, which it writes to `out` at its end.
pub(crate) fn with_body(body: &str) -> String {
    of_element("f32", body)
}

/// Returns such a kernel with elements of another type.
pub(crate) fn of_element(element: &str, body: &str) -> String {
    format!(
        "#[tma_kernel(threads = 128)]\nfn k(n: u32, x: {element}, out: Global<{element}>) {{\n\
         let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();\n\
         let b: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();\n\
         let mut s = Accumulator::<{element}, 64, 64>::zero();\n\
         let mut t = Accumulator::<{element}, 64, 64>::zero();\n\
         {body}\n\
         for i in unroll(0..s.len()) {{ out.set(i as u32, s[i]); out.set(1000 + i as u32, t[i]); }}\n}}\n"
    )
}

/// Generates the kernel of a seed. Every fourth sums in f16, with two elements per register.
pub(crate) fn kernel(seed: u64) -> String {
    let mut maker = Maker { draws: Draws(seed), text: String::new(), flying: vec![] };
    let statements = 4 + maker.draws.below(10);
    maker.block(statements, 0, &["s", "t"]);
    of_element(if seed % 4 == 3 { "f16" } else { "f32" }, &maker.text)
}

struct Maker {
    draws: Draws,
    text: String,
    /// The accumulators of the matmuls in flight.
    flying: Vec<&'static str>,
}

impl Maker {
    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    /// Writes some statements, which use the accumulators of `own` that are not in flight, and wait
    /// for the matmuls that they start.
    fn block(&mut self, statements: u64, depth: u32, own: &[&'static str]) {
        let mut started: Vec<&'static str> = vec![];
        for _ in 0..statements {
            let idle: Vec<_> = own.iter().copied().filter(|sum| !self.flying.contains(sum)).collect();
            let open: Vec<_> = started.iter().copied().filter(|sum| self.flying.contains(sum)).collect();
            match (self.draws.below(16), self.draws.among(&idle).copied(), self.draws.among(&open).copied()) {
                (0..=4, Some(sum), _) => {
                    self.start(sum, &idle);
                    started.push(sum);
                }
                (5, _, Some(sum)) => self.line(&format!("f{sum}.mma(a, b, ());")),
                (6..=7, _, Some(sum)) => self.wait(sum),
                (8..=10, Some(sum), _) => self.edit(sum),
                (11, Some(sum), _) => self.line(&format!("{sum} = Accumulator::zero();")),
                (12, Some(sum), _) => {
                    let i = self.draws.below(32);
                    self.line(&format!("out.set(n + {i}, {sum}[{i}]);"));
                }
                (13, ..) => self.line("sync_threads();"),
                (14..=15, Some(_), _) if depth < 2 => self.nested(depth + 1, &idle),
                _ => {}
            }
        }
        for sum in started {
            if self.flying.contains(&sum) {
                self.wait(sum);
            }
        }
    }

    fn start(&mut self, sum: &'static str, idle: &[&'static str]) {
        let packed = self.draws.among(idle).map(|from| format!("{from}.pack::<f16>()"));
        let left = match self.draws.below(4) {
            0 => packed.unwrap_or_default(),
            1 => "-a".to_owned(),
            _ => "a".to_owned(),
        };
        let right = ["b", "b.t()"][self.draws.below(2) as usize];
        self.line(&format!("let left = {left}; let mut f{sum} = {sum}.mma(left, {right}, ());"));
        self.flying.push(sum);
    }

    fn wait(&mut self, sum: &'static str) {
        self.line(&format!("f{sum}.wait();"));
        self.flying.retain(|flying| *flying != sum);
    }

    fn edit(&mut self, sum: &str) {
        let (i, j) = (self.draws.below(32), self.draws.below(32));
        let edit = match self.draws.below(6) {
            0 => format!("{sum}[{i}] += x;"),
            1 => format!("{sum}[{i}] = x;"),
            2 => format!("{sum}[{i}] = {sum}[{j}] + {sum}[{j}];"),
            3 => format!("for i in unroll(0..{sum}.len()) {{ {sum}[i] *= x; }}"),
            4 => format!("for i in unroll(0..{sum}.len()) {{ {sum}[i] = max({sum}[i], x); }}"),
            _ => format!("for i in unroll(0..8usize) {{ {sum}[i] = x; }}"),
        };
        self.line(&edit);
    }

    /// Writes a branch that all threads take together, or a loop.
    fn nested(&mut self, depth: u32, idle: &[&'static str]) {
        let statements = 2 + self.draws.below(4);
        let limit = self.draws.below(9);
        match self.draws.below(3) {
            0 => {
                self.line("for _ in 0..n {");
                self.block(statements, depth, idle);
            }
            kind => {
                self.line(&format!("if n > {limit} {{"));
                self.block(statements, depth, idle);
                if kind == 2 {
                    self.line("} else {");
                    self.block(statements, depth, idle);
                }
            }
        }
        self.line("}");
    }
}
