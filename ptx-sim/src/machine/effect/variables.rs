//! Checks that accesses hit the shared variables that their source line names. The address alone is
//! not enough: kernels of this project have all their shared memory in one symbol, and an index
//! past the end of a variable is the address of its neighbour.
//!
//! An access must hit a byte of one of the line's variables, but need not lie within it: the
//! compiler merges accesses to neighbours into one instruction, which carries the line of one of
//! them.

use tma_model::help::Help;

use crate::machine::Machine;
use crate::machine::address::{Target, resolve};
use crate::machine::types::{Action, Actor, Pointer};
use crate::report::{Finding, FindingKind, Stop, counted};

impl Machine {
    /// Checks that a thread's access hits one of `variables`, indices into the names, in any block
    /// of the cluster. Accesses outside shared memory are ignored.
    ///
    /// # Errors
    ///
    /// If the access hits none of the variables.
    #[inline]
    pub(crate) fn check_variables(
        &mut self,
        actor: Actor,
        does: &'static str,
        pointer: Pointer,
        bytes: u32,
        variables: &[u32],
    ) -> Result<(), Stop> {
        match resolve(pointer, actor.thread.block) {
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
        // The access itself is refused if it is outside the block's memory.
        let Some(at) = u32::try_from(at).ok().filter(|at| self.memory.window.contains(at)) else {
            return Ok(());
        };
        let (meant, does) = (self.diagnostics.list(variables), action.does);
        let message = format!(
            "{} at {} of shared memory, outside of {meant}, which this line {does}",
            counted(bytes, "byte"),
            self.diagnostics.offset(at)
        );
        let party = self.diagnostics.party(action);
        self.stop(
            Finding::new(FindingKind::OutOfBounds, message).with(party).help(Help::KeepIndexWithin(meant)),
        )
    }
}
