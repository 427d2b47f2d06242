//! Bit manipulation: fields, bytes, funnel shifts, truth tables.

use super::{BinaryFn, Lanes, TernaryFn, UnaryFn, one, three, two};
use crate::isa::{Integer, Permutation};

/// `and`, `or`, `xor`, for any width.
pub(super) const AND: BinaryFn = two!(a, b => a & b);
pub(super) const OR: BinaryFn = two!(a, b => a | b);
pub(super) const XOR: BinaryFn = two!(a, b => a ^ b);
/// `mov`.
pub(super) const COPY: UnaryFn = one!(a => a);
/// `selp`.
pub(super) const SELECT: TernaryFn = three!(a, b, c => if c & 1 != 0 { a } else { b });
/// `slct` by a signed integer.
pub(super) const SELECT_BY_SIGN: TernaryFn = three!(a, b, c => if (c as i32) < 0 { b } else { a });
/// `slct` by a single: `-0` counts as not negative, a NaN as negative.
pub(super) const SELECT_BY_SINGLE: TernaryFn = three!(a, b, c => {
    if f32::from_bits(c as u32) >= 0.0 { a } else { b }
});

/// `bfe`: a field of `c` bits that starts at bit `b`. Beyond the top it is filled with the sign or
/// with zeros.
pub(super) fn extract(ty: Integer) -> TernaryFn {
    match (ty.bits, ty.signed) {
        (32, false) => three!(a, b, c => field(a, b, c, 32, false)),
        (32, true) => three!(a, b, c => field(a, b, c, 32, true)),
        (_, false) => three!(a, b, c => field(a, b, c, 64, false)),
        (_, true) => three!(a, b, c => field(a, b, c, 64, true)),
    }
}

fn field(value: u64, from: u64, count: u64, bits: u32, signed: bool) -> u64 {
    let (from, count) = (from as u32 & 0xff, count as u32 & 0xff);
    let all = u64::MAX >> (64 - bits);
    let wide = if signed { ((value << (64 - bits)) as i64 >> (64 - bits)) as u64 } else { value };
    let shifted =
        if signed { ((wide as i64) >> from.min(63)) as u64 } else { wide.checked_shr(from).unwrap_or(0) };
    if count == 0 {
        return 0;
    }
    let unused = 64 - count.min(64);
    let cut = if signed {
        // The sign is the last bit of the field, or that of the value if the field extends beyond
        // it.
        ((shifted << unused) as i64 >> unused) as u64
    } else {
        shifted << unused >> unused
    };
    cut & all
}

/// `bfi`: inserts the low `count` bits of `a` into `b` at bit `from`.
pub(super) fn insert(a: u64, b: u64, from: u64, count: u64, bits: u32) -> u64 {
    let (from, count) = (from as u32 & 0xff, count as u32 & 0xff);
    let all = u64::MAX >> (64 - bits);
    let ones = 1_u64.checked_shl(count).map_or(u64::MAX, |bit| bit - 1);
    let mask = ones.checked_shl(from).unwrap_or(0) & all;
    b & !mask | a.checked_shl(from).unwrap_or(0) & mask
}

/// `shf`: 32 of the 64 bits of `b:a`.
pub(super) fn funnel(left: bool, wrap: bool) -> TernaryFn {
    match (left, wrap) {
        (true, true) => three!(a, b, c => ((b << 32 | a) << (c & 31)) >> 32),
        (true, false) => three!(a, b, c => {
            let amount = (c & 0xffff_ffff).min(32);
            (((u128::from(b << 32 | a)) << amount) >> 32) as u64 & 0xffff_ffff
        }),
        (false, true) => three!(a, b, c => (b << 32 | a) >> (c & 31) & 0xffff_ffff),
        (false, false) => three!(a, b, c => (b << 32 | a) >> (c & 0xffff_ffff).min(32) & 0xffff_ffff),
    }
}

/// `lop3`: any function of three bits, by its truth table.
#[inline]
pub(super) fn table(a: u64, b: u64, c: u64, table: u8) -> u64 {
    let mut result = 0;
    for index in 0..8 {
        if table >> index & 1 == 1 {
            let pick = |value: u64, bit: u32| if index >> bit & 1 == 1 { value } else { !value };
            result |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    result & 0xffff_ffff
}

/// Returns the lane function of `prmt`.
pub(super) fn permute(mode: Permutation) -> TernaryFn {
    match mode {
        Permutation::Generic => three!(a, b, c => {
            let bytes = b << 32 | a;
            let mut result = 0;
            for index in 0..4 {
                let nibble = c >> (4 * index) & 15;
                let byte = bytes >> (8 * (nibble & 7)) & 0xff;
                let byte = if nibble & 8 == 0 { byte } else { (byte >> 7) * 0xff };
                result |= byte << (8 * index);
            }
            result
        }),
        Permutation::Forward4 => three!(a, b, c => (b << 32 | a) >> (8 * (c & 3)) & 0xffff_ffff),
        Permutation::Backward4 => three!(a, b, c => {
            gather(b << 32 | a, |index| (c & 3).wrapping_sub(index) & 7)
        }),
        Permutation::Replicate8 => three!(a, b, c => gather(b << 32 | a, |_| c & 3)),
        Permutation::EdgeLeft => three!(a, b, c => gather(b << 32 | a, |index| index.max(c & 3))),
        Permutation::EdgeRight => three!(a, b, c => gather(b << 32 | a, |index| index.min(c & 3))),
        Permutation::Replicate16 => three!(a, b, c => {
            gather(b << 32 | a, |index| 2 * (c & 1) + (index & 1))
        }),
    }
}

fn gather(bytes: u64, pick: impl Fn(u64) -> u64) -> u64 {
    (0..4).map(|index| (bytes >> (8 * pick(index)) & 0xff) << (8 * index)).sum()
}

/// `fns`: the index of the `offset`-th set bit, counted from bit `base`, upwards if positive and
/// downwards if negative.
pub(super) const FIND_NTH: TernaryFn = three!(a, b, c => find_nth(a as u32, b as u32, c as i32));

fn find_nth(mask: u32, base: u32, offset: i32) -> u64 {
    let set = |bit: &u32| mask >> bit & 1 == 1;
    let found = match offset {
        0 => Some(base).filter(|bit| *bit < 32 && set(bit)),
        1.. => (base..32).filter(set).nth(offset as usize - 1),
        _ => (0..=base.min(31)).rev().filter(set).nth(offset.unsigned_abs() as usize - 1),
    };
    u64::from(found.unwrap_or(u32::MAX))
}

/// `bmsk`: `b` ones that start at bit `a`.
pub(super) fn mask(wrap: bool) -> BinaryFn {
    if wrap {
        two!(a, b => insert(u64::MAX, 0, a & 31, b & 31, 32))
    } else {
        two!(a, b => insert(u64::MAX, 0, (a & 0xffff_ffff).min(32), (b & 0xffff_ffff).min(32), 32))
    }
}

/// `dp2a`: the dot product of the two halves of `a` with the low or high two bytes of `b`, plus
/// `c`.
pub(super) fn dot_2(high: bool, signed_a: bool, signed_b: bool) -> TernaryFn {
    match (high, signed_a, signed_b) {
        (false, false, false) => three!(a, b, c => halves_dot(a, b, c, false, false)),
        (false, false, true) => three!(a, b, c => halves_dot(a, b, c, false, true)),
        (false, true, false) => three!(a, b, c => halves_dot(a, b, c, true, false)),
        (false, true, true) => three!(a, b, c => halves_dot(a, b, c, true, true)),
        (true, false, false) => three!(a, b, c => halves_dot(a, b >> 16, c, false, false)),
        (true, false, true) => three!(a, b, c => halves_dot(a, b >> 16, c, false, true)),
        (true, true, false) => three!(a, b, c => halves_dot(a, b >> 16, c, true, false)),
        (true, true, true) => three!(a, b, c => halves_dot(a, b >> 16, c, true, true)),
    }
}

fn halves_dot(a: u64, b: u64, c: u64, signed_a: bool, signed_b: bool) -> u64 {
    let product = |index: u32| {
        let half = (a >> (16 * index)) as u16;
        let half = if signed_a { i64::from(half as i16) } else { i64::from(half) };
        half * byte(b, index, signed_b)
    };
    u64::from((c as u32).wrapping_add((product(0) + product(1)) as u32))
}

/// Returns the byte `index` of a register, counted from the lowest.
fn byte(value: u64, index: u32, signed: bool) -> i64 {
    let byte = (value >> (8 * index)) as u8;
    if signed { i64::from(byte as i8) } else { i64::from(byte) }
}

/// `vabsdiff4`: the absolute differences of four bytes. With `.add`, their sum plus `c`.
pub(super) fn differences_4(signed: bool, summed: bool) -> TernaryFn {
    match (signed, summed) {
        (false, false) => three!(a, b, _c => sum_lanes(differences(a, b, false))),
        (true, false) => three!(a, b, _c => sum_lanes(differences(a, b, true))),
        (false, true) => three!(a, b, c => (c + differences(a, b, false).sum::<u64>()) & 0xffff_ffff),
        (true, true) => three!(a, b, c => (c + differences(a, b, true).sum::<u64>()) & 0xffff_ffff),
    }
}

/// Packs bytes, lowest first.
fn sum_lanes(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.zip(0..).map(|(byte, index): (u64, u32)| (byte & 0xff) << (8 * index)).sum()
}

/// Returns the absolute differences of the bytes of two registers.
fn differences(a: u64, b: u64, signed: bool) -> impl Iterator<Item = u64> {
    (0..4).map(move |index| byte(a, index, signed).abs_diff(byte(b, index, signed)))
}

/// `dp4a`: the dot product of four bytes, plus `c`.
pub(super) fn dot_4(signed_a: bool, signed_b: bool) -> TernaryFn {
    match (signed_a, signed_b) {
        (false, false) => three!(a, b, c => dot(a, b, c, false, false)),
        (false, true) => three!(a, b, c => dot(a, b, c, false, true)),
        (true, false) => three!(a, b, c => dot(a, b, c, true, false)),
        (true, true) => three!(a, b, c => dot(a, b, c, true, true)),
    }
}

fn dot(a: u64, b: u64, c: u64, signed_a: bool, signed_b: bool) -> u64 {
    let sum: i64 = (0..4).map(|index| byte(a, index, signed_a) * byte(b, index, signed_b)).sum();
    u64::from((c as u32).wrapping_add(sum as u32))
}
