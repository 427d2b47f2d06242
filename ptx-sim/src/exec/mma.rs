//! `mma.sync`: matrix multiplication of a warp's registers.

use super::executor::Executor;
use super::warp::Warp;
use crate::isa::{MmaCode, MmaDoubleCode, Reg};
use crate::machine::{WarpArithmetic, WarpFactors, WarpLanes, WideLanes, multiply_doubles, multiply_in_warp};

impl Executor<'_, '_> {
    /// Executes `mma.sync`. All lanes must be at the instruction.
    pub(super) fn mma(&mut self, warp: &mut Warp, code: &MmaCode) {
        let read = |registers: &[Reg]| -> Vec<WarpLanes> {
            let words = |reg: &Reg| self.context.lanes(&warp.registers, *reg).map(|value| value as u32);
            registers.iter().map(words).collect()
        };
        let (a, b, mut d) = (read(&code.a), read(&code.b), read(&code.c));
        let MmaCode { form, saturates, differs, .. } = *code;
        multiply_in_warp(WarpArithmetic { form, saturates, differs }, WarpFactors { a: &a, b: &b }, &mut d);
        for (&reg, lanes) in code.d.iter().zip(&d) {
            for (lane, value) in (0..).zip(lanes) {
                warp.set(reg, lane, u64::from(*value));
            }
        }
    }

    /// Executes `mma.sync` in f64.
    pub(super) fn mma_double(&mut self, warp: &mut Warp, code: &MmaDoubleCode) {
        let read = |registers: &[Reg]| -> Vec<WideLanes> {
            registers.iter().map(|reg| *self.context.lanes(&warp.registers, *reg)).collect()
        };
        let (a, b, mut d) = (read(&code.a), read(&code.b), read(&code.c));
        multiply_doubles(code.form, &a, &b, &mut d);
        for (&reg, lanes) in code.d.iter().zip(&d) {
            for (lane, &value) in (0..).zip(lanes) {
                warp.set(reg, lane, value);
            }
        }
    }
}
