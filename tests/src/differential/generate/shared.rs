//! Shared memory of several types: what threads write by one name, others read by another.

use super::types::Ty;
use super::{Local, Writer};
use crate::differential::THREADS;

/// The types of elements. The bytes of any of them are a value of any other.
const ELEMENTS: [Ty; 12] = [
    Ty::I8,
    Ty::U8,
    Ty::I16,
    Ty::U16,
    Ty::I32,
    Ty::U32,
    Ty::I64,
    Ty::U64,
    Ty::F16,
    Ty::Bf16,
    Ty::F32,
    Ty::F64,
];

/// An array in shared memory, with as many elements for each thread.
struct SharedArray {
    name: String,
    ty: Ty,
    per_thread: usize,
}

impl SharedArray {
    /// Returns the bytes for each thread.
    fn bytes(&self) -> usize {
        self.per_thread * self.ty.bytes()
    }

    /// Returns the type as the source has it.
    fn text(&self) -> String {
        format!("SharedArray<{}, {}>", self.ty.name(), self.len())
    }

    fn len(&self) -> usize {
        self.per_thread * THREADS as usize
    }
}

impl Writer<'_> {
    /// Declares an array, and others in its memory. Threads write all elements by one name, and
    /// read any by the next. Barriers order these steps, so this must be where all threads are.
    pub(super) fn exchange(&mut self) {
        let first = SharedArray {
            name: self.fresh("s"),
            ty: *self.rng.one_of(&ELEMENTS),
            per_thread: 1 + self.rng.below(4),
        };
        self.line(&format!("let {}: {} = shared();", first.name, first.text()));
        self.write_all(&first);
        let mut arrays = vec![first];
        for _ in 0..1 + self.rng.below(2) {
            let array = self.reused(&arrays);
            self.line("sync_threads();");
            self.read_one(&array);
            if self.rng.once_in(2) {
                self.line("sync_threads();");
                self.write_all(&array);
                self.line("sync_threads();");
                let other = self.rng.below(arrays.len());
                self.read_one(&arrays[other]);
            }
            arrays.push(array);
        }
    }

    /// Declares an array in the memory of one of the others.
    fn reused(&mut self, arrays: &[SharedArray]) -> SharedArray {
        let object = self.rng.one_of(arrays);
        let fitting: Vec<_> = ELEMENTS.into_iter().filter(|ty| ty.bytes() <= object.bytes()).collect();
        let ty = *self.rng.one_of(&fitting);
        let per_thread = 1 + self.rng.below(object.bytes() / ty.bytes());
        let array = SharedArray { name: self.fresh("s"), ty, per_thread };
        self.line(&format!("let {}: {} = reuse({});", array.name, array.text(), object.name));
        array
    }

    /// Writes all elements, those of a thread at a distance from each other.
    fn write_all(&mut self, array: &SharedArray) {
        for at in 0..array.per_thread {
            let value = self.expr(array.ty, 2);
            let (name, value, first) = (&array.name, finite(array.ty, &value), at * THREADS as usize);
            self.line(&format!("{name}.set(thread_idx().x + {first}u32, {value});"));
        }
    }

    /// Declares a variable with an element, usually one that another thread wrote.
    fn read_one(&mut self, array: &SharedArray) {
        let (factor, first, len) = (1 + self.rng.below(7), self.rng.below(array.len()), array.len());
        let index = format!("(thread_idx().x * {factor}u32 + {first}u32) % {len}u32");
        let (name, ty) = (self.fresh("v"), array.ty);
        self.line(&format!("let mut {name}: {} = {}.get({index});", ty.name(), array.name));
        self.locals.push(Local { name, ty, extents: vec![], mutable: true });
    }
}

/// Returns a value that is finite, with a bit of its exponent cleared: others read the bits, and
/// those of a NaN are not specified.
fn finite(ty: Ty, value: &str) -> String {
    match ty {
        Ty::F16 => format!("f16::from_bits((bits_f16({value}) & 0xfbffu64) as u16)"),
        Ty::Bf16 => format!("bf16::from_bits((bits_bf16({value}) & 0xff7fu64) as u16)"),
        Ty::F32 => format!("f32::from_bits((bits_f32({value}) & 0xff7fffffu64) as u32)"),
        Ty::F64 => format!("f64::from_bits(bits_f64({value}) & 0xffefffffffffffffu64)"),
        _ => value.to_owned(),
    }
}
