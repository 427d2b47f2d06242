//! `mma.sync` in f64.
//!
//! The PTX ISA says that results are rounded to nearest even. It specifies neither the order in
//! which products are added nor which NaN results. On an H200 each element of C takes one `fma` for
//! each k, in order: the 312 cases of the list `doubles` of `tma-conformance` agree bit for bit.

use tma_model::mma::{DoubleForm, FragmentSlot, WARP_COLUMNS};

/// A 64-bit register of each lane.
pub(crate) type Lanes = [u64; tma_model::limits::WARP_THREADS as usize];

/// Multiplies A and B. `d` holds C on entry and D on return.
pub(crate) fn multiply(form: DoubleForm, a: &[Lanes], b: &[Lanes], d: &mut [Lanes]) {
    let element = |of: &[Lanes], FragmentSlot { thread, register, .. }: FragmentSlot| {
        f64::from_bits(of[register as usize][thread as usize])
    };
    for [row, column] in (0..form.rows).flat_map(|row| (0..WARP_COLUMNS).map(move |column| [row, column])) {
        let FragmentSlot { thread, register, .. } = form.accumulator_slot(row, column);
        let sum = &mut d[register as usize][thread as usize];
        let add = |sum: f64, k| {
            let (x, y) = (element(a, form.left_slot(row, k)), element(b, form.right_slot(k, column)));
            fused(x, y, sum)
        };
        *sum = (0..form.k).fold(f64::from_bits(*sum), add).to_bits();
    }
}

/// The bit that makes a NaN quiet.
const QUIET: u64 = 1 << 51;
/// The result of an invalid operation without NaN operands.
const NAN: f64 = f64::from_bits(0xfff8_0000_0000_0000);

/// Returns `x · y + sum`, rounded once. A NaN keeps its bits except that it becomes quiet. The
/// right operand's NaN takes precedence over that of the sum, and the left operand's comes last (as
/// on an H200).
fn fused(x: f64, y: f64, sum: f64) -> f64 {
    if let Some(nan) = [y, sum, x].into_iter().find(|value| value.is_nan()) {
        return f64::from_bits(nan.to_bits() | QUIET);
    }
    let result = x.mul_add(y, sum);
    if result.is_nan() { NAN } else { result }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row `r` of A is all `2^r`, column `c` of B is `c + k`, and the elements of C are numbered.
    #[test]
    fn each_sum_is_of_its_row_and_column() {
        for form in DoubleForm::ALL {
            let [a, b, c] = form.registers().map(|count| vec![[0; 32]; count as usize]);
            let (mut a, mut b, mut d) = (a, b, c);
            let put = |to: &mut Vec<Lanes>, position: FragmentSlot, value: f64| {
                to[position.register as usize][position.thread as usize] = value.to_bits();
            };
            for k in 0..form.k {
                for row in 0..form.rows {
                    put(&mut a, form.left_slot(row, k), f64::from(1 << row));
                }
                for column in 0..WARP_COLUMNS {
                    put(&mut b, form.right_slot(k, column), f64::from(column + k));
                }
            }
            let elements = || (0..form.rows).flat_map(|row| (0..WARP_COLUMNS).map(move |n| [row, n]));
            for [row, column] in elements() {
                put(&mut d, form.accumulator_slot(row, column), f64::from(8 * row + column));
            }
            multiply(form, &a, &b, &mut d);
            for [row, column] in elements() {
                let FragmentSlot { thread, register, .. } = form.accumulator_slot(row, column);
                let factors: u32 = (0..form.k).map(|k| column + k).sum();
                let wanted = f64::from(factors * (1 << row) + 8 * row + column);
                assert_eq!(f64::from_bits(d[register as usize][thread as usize]), wanted, "{form}");
            }
        }
    }

    #[test]
    fn each_product_is_added_exactly_and_rounded_once() {
        let form = DoubleForm { rows: 8, k: 4 };
        let near = 1.0 + f64::EPSILON;
        let (a, b) = ([[near.to_bits(); 32]], [[near.to_bits(); 32]]);
        // After three products the sum is close to -1, so that the low bits of the last product
        // show.
        let first = -4.0 * (near * near);
        let mut d = [[first.to_bits(); 32]; 2];
        multiply(form, &a, &b, &mut d);
        let wanted = (0..4).fold(first, |sum, _| f64::mul_add(near, near, sum));
        assert_eq!(d, [[f64::to_bits(wanted); 32]; 2]);
        let rounded_twice = (0..4).fold(first, |sum, _| near * near + sum);
        assert_ne!(wanted, rounded_twice);
    }

    #[test]
    fn a_nan_keeps_its_bits() {
        let [one, two, three] = [0x7ff0_0000_0000_0001, 0xfff0_0000_0000_0002, 0x7ff8_0000_0000_0003];
        let of = |x: u64, y: u64, sum: u64| {
            fused(f64::from_bits(x), f64::from_bits(y), f64::from_bits(sum)).to_bits()
        };
        let number = 1.0_f64.to_bits();
        assert_eq!(of(one, two, three), two | QUIET);
        assert_eq!(of(one, number, three), three);
        assert_eq!(of(one, number, number), one | QUIET);
        assert_eq!(of(f64::INFINITY.to_bits(), 0, number), NAN.to_bits());
    }
}
