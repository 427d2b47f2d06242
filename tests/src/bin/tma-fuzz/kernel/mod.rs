//! The target `kernel`: correct programs are mutated token by token, and passed to the entry points
//! of the compiler and of the macros.

mod corpus;
mod mutate;

use corpus::Program;
use mutate::Mutator;

use crate::Input;

/// One of this many accepted programs is compiled to PTX.
#[cfg(feature = "llvm")]
const COMPILED: usize = 50;

/// An endless source of programs.
pub(crate) struct Kernels {
    mutator: Mutator,
    accepted: usize,
}

impl Kernels {
    pub(crate) fn new(seed: u64) -> anyhow::Result<Self> {
        let programs = corpus::programs()?;
        println!("{} kernels and modules to mutate, seed {seed}", programs.len());
        Ok(Self { mutator: Mutator::new(programs, seed), accepted: 0 })
    }

    /// Returns the next program.
    pub(crate) fn next(&mut self) -> Input<'_> {
        let program = self.mutator.program();
        let text = program.text();
        let source = text.clone();
        Input { text, run: Box::new(move || self.is_accepted(&program, &source)) }
    }

    fn is_accepted(&mut self, program: &Program, text: &str) -> bool {
        program.expand();
        let sound = tma_codegen::check("fuzz.rs", text).is_ok();
        if sound {
            self.accepted += 1;
            #[cfg(feature = "llvm")]
            if self.accepted.is_multiple_of(COMPILED) {
                tma_codegen::compile("fuzz.rs", text, tma_codegen::Target::default())
                    .expect("an accepted kernel must compile");
            }
        }
        sound
    }
}
