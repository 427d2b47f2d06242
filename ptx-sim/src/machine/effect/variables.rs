//! Shared variables that a source line accesses. Addresses alone do not tell them: a kernel of this
//! project has all of its shared memory as one symbol, and an index past the end of a variable is
//! the address of its neighbour.
//!
//! An access has to hit a byte of one of the line's variables, and need not be within it: the
//! compiler joins accesses of neighbours into one instruction, which has the line of one of them.

use crate::machine::Machine;
use crate::machine::address::{Target, resolve};
use crate::machine::types::{Action, Actor, Pointer};
use crate::report::{Finding, FindingKind, Stop, counted};

impl Machine {
    /// Checks that what a thread accesses is of one of `variables`, by their numbers among the
    /// names, in whichever block of the cluster. What is not in shared memory is not looked at.
    ///
    /// # Errors
    ///
    /// Out of bounds of the variables.
    #[inline]
    pub(crate) fn check_variables(
        &mut self,
        actor: Actor,
        does: &'static str,
        pointer: Pointer,
        bytes: u32,
        variables: &[u32],
    ) -> Result<(), Stop> {
        match resolve(pointer, actor.who.block) {
            Target::Shared(_, at) if !self.diagnostics.is_any_hit(at, bytes, variables) => {
                self.outside_of_variables(actor.does(does), at, bytes, variables)
            }
            Target::Shared(..) | Target::Global(_) => Ok(()),
        }
    }

    #[cold]
    fn outside_of_variables(
        &mut self,
        action: Action,
        at: u64,
        bytes: u32,
        variables: &[u32],
    ) -> Result<(), Stop> {
        // Outside of the block's memory the access itself is refused.
        let Some(at) = u32::try_from(at).ok().filter(|at| self.memory.window.contains(at)) else {
            return Ok(());
        };
        let (meant, does) = (self.diagnostics.list(variables), action.does);
        let message = format!(
            "{} at {} of shared memory, outside of {meant}, which this line {does}",
            counted(bytes, "byte"),
            self.diagnostics.offset(at)
        );
        let help = format!(
            "keep the index within {meant}: a kernel with `checked` in its attribute stops at the index itself"
        );
        let party = self.diagnostics.party(action);
        self.stop(Finding::new(FindingKind::OutOfBounds, message).with(party).help(help))
    }
}
