//! Global memory. Allocations are far apart, so that an access beyond the end of one never reaches
//! another.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Log2 of the bytes of a slot. An allocation starts at a slot, and at least one unallocated byte
/// follows it.
const SLOT_BITS: u32 = 32;
/// The slot of the first allocation.
const FIRST_SLOT: u64 = 16;
/// The number of slots, which end below the windows of the other state spaces.
const SLOTS: u64 = 0x7c00;
/// The most bytes that can be allocated at a time. The host's memory holds all of them.
const MOST_BYTES: u64 = 1 << 33;

/// The global memory of a device. Clones share their bytes and are cheap; each launch takes one.
#[derive(Clone, Debug, Default)]
pub struct GlobalMemory {
    /// Allocations by slot, from [`FIRST_SLOT`] on.
    slots: Vec<Option<Arc<Allocation>>>,
    /// Bytes of all allocations.
    held: u64,
}

/// The reason why an access to global memory is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobalFault {
    /// The access is in no allocation, or beyond the end of one.
    OutOfBounds {
        /// Address and size of the nearest allocation that starts before the access, if there is
        /// one.
        near: Option<(u64, u64)>,
    },
    /// The address is not a multiple of the access size.
    Misaligned,
}

struct Allocation {
    base: u64,
    bytes: u64,
    words: Box<[AtomicU64]>,
    /// A bit for each byte that was written; `None` if this is not tracked.
    written: Option<Box<[AtomicU64]>>,
}

impl std::fmt::Debug for Allocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {:#x}", self.bytes, self.base)
    }
}

/// Returns zeroed words, or `None` if the host has no memory for them.
fn zeros(count: u64) -> Option<Box<[AtomicU64]>> {
    let count = usize::try_from(count).ok()?;
    let mut words = Vec::new();
    words.try_reserve_exact(count).ok()?;
    words.resize_with(count, AtomicU64::default);
    Some(words.into_boxed_slice())
}

impl GlobalMemory {
    /// Allocates zeroed bytes, and returns their address, a multiple of 2^32.
    ///
    /// With `track`, the bytes count as uninitialised until they are written, including by
    /// [`write`](Self::write). Returns `None` if the address space is full, more than 8 GiB would
    /// be allocated at a time, or the host has no memory.
    pub fn allocate(&mut self, bytes: u64, track: bool) -> Option<u64> {
        let held = self.held.checked_add(bytes).filter(|&held| held <= MOST_BYTES)?;
        let words = zeros(bytes.div_ceil(8))?;
        let written = if track { Some(zeros(bytes.div_ceil(64))?) } else { None };
        let first = self.room((bytes >> SLOT_BITS) as usize + 1)?;
        let base = (FIRST_SLOT + first.start as u64) << SLOT_BITS;
        let allocation = Arc::new(Allocation { base, bytes, words, written });
        self.held = held;
        self.slots.get_mut(first)?.fill(Some(allocation));
        Some(base)
    }

    /// Returns this many free slots. Slots that were never used come first, so that freed addresses
    /// are reused as late as possible.
    fn room(&mut self, count: usize) -> Option<Range<usize>> {
        let first = self.slots.len();
        if (first + count) as u64 <= SLOTS - FIRST_SLOT {
            self.slots.resize(first + count, None);
            return Some(first..first + count);
        }
        let freed = self.slots.windows(count).position(|slots| slots.iter().all(Option::is_none))?;
        Some(freed..freed + count)
    }

    /// Frees the allocation that starts at `address`; later accesses are out of bounds. Returns
    /// false if there is none.
    pub fn free(&mut self, address: u64) -> bool {
        let mut freed = false;
        for slot in &mut self.slots {
            if let Some(allocation) = slot.take_if(|allocation| allocation.base == address) {
                // Subtracted once, however many slots the allocation has.
                self.held -= if freed { 0 } else { allocation.bytes };
                freed = true;
            }
        }
        freed
    }

    fn near(&self, address: u64) -> Option<&Allocation> {
        let slot = (address >> SLOT_BITS).checked_sub(FIRST_SLOT)?;
        self.slots.get(usize::try_from(slot).ok()?)?.as_deref()
    }

    /// Returns the allocation that holds `len` bytes at `address`, and their offset in it.
    fn find(&self, address: u64, len: u64) -> Result<(&Allocation, u64), GlobalFault> {
        match self.near(address) {
            Some(found) if (address - found.base).saturating_add(len) <= found.bytes => {
                Ok((found, address - found.base))
            }
            Some(found) => Err(GlobalFault::OutOfBounds { near: Some((found.base, found.bytes)) }),
            None => Err(GlobalFault::OutOfBounds { near: None }),
        }
    }

    /// Returns the number of bytes from `address` to the end of its allocation, or `None` if it is
    /// in no allocation.
    pub fn rest(&self, address: u64) -> Option<u64> {
        let (allocation, offset) = self.find(address, 1).ok()?;
        Some(allocation.bytes - offset)
    }

    /// Copies bytes out of memory.
    ///
    /// # Errors
    ///
    /// If they are not all in one allocation.
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), GlobalFault> {
        let (allocation, offset) = self.find(address, out.len() as u64)?;
        allocation.read(offset, out);
        Ok(())
    }

    /// Copies bytes into memory.
    ///
    /// # Errors
    ///
    /// If they are not all in one allocation.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), GlobalFault> {
        let (allocation, offset) = self.find(address, bytes.len() as u64)?;
        allocation.write(offset, bytes);
        Ok(())
    }

    /// Returns whether all of the `len` bytes at `address` were written, to the extent that this is
    /// tracked.
    pub fn is_written(&self, address: u64, len: u64) -> bool {
        self.find(address, len).is_ok_and(|(allocation, offset)| allocation.is_written(offset, len))
    }

    /// Changes `width` bytes (1, 2, 4 or 8) atomically, and returns their previous value.
    ///
    /// # Errors
    ///
    /// If they are not all in one allocation, or the address is not a multiple of `width`.
    pub fn update(
        &self,
        address: u64,
        width: usize,
        change: &mut dyn FnMut(u64) -> u64,
    ) -> Result<u64, GlobalFault> {
        if !matches!(width, 1 | 2 | 4 | 8) || !address.is_multiple_of(width as u64) {
            return Err(GlobalFault::Misaligned);
        }
        let (allocation, offset) = self.find(address, width as u64)?;
        Ok(allocation.update(offset, width, change))
    }
}

impl GlobalMemory {
    /// Changes 16 bytes, atomically with respect to other calls of this function, and returns their
    /// previous value.
    ///
    /// # Errors
    ///
    /// If they are not all in one allocation.
    pub fn update_wide(
        &self,
        address: u64,
        change: &mut dyn FnMut(u128) -> u128,
    ) -> Result<u128, GlobalFault> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [0; 16];
        self.read(address, &mut bytes)?;
        let old = u128::from_le_bytes(bytes);
        let new = change(old);
        if new != old {
            self.write(address, &new.to_le_bytes())?;
        }
        Ok(old)
    }
}

/// Returns a mask of `width` bytes.
const fn mask(width: usize) -> u64 {
    if width >= 8 { u64::MAX } else { (1 << (width * 8)) - 1 }
}

/// Returns the word and shift of the byte at `offset`, which must be in bounds.
fn word_and_shift(offset: u64) -> (usize, u32) {
    ((offset / 8) as usize, (offset % 8) as u32 * 8)
}

impl Allocation {
    fn read(&self, mut offset: u64, out: &mut [u8]) {
        let mut rest = out;
        while !rest.is_empty() {
            let (word, shift) = word_and_shift(offset);
            let len = rest.len().min(8 - shift as usize / 8);
            let (now, later) = rest.split_at_mut(len);
            let value = self.words[word].load(Ordering::Relaxed) >> shift;
            now.copy_from_slice(&value.to_le_bytes()[..len]);
            rest = later;
            offset += len as u64;
        }
    }

    fn write(&self, mut offset: u64, bytes: &[u8]) {
        self.mark(offset, bytes.len() as u64);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (word, shift) = word_and_shift(offset);
            let len = rest.len().min(8 - shift as usize / 8);
            let (now, later) = rest.split_at(len);
            let mut wide = [0; 8];
            wide[..len].copy_from_slice(now);
            self.put(word, u64::from_le_bytes(wide) << shift, mask(len) << shift);
            rest = later;
            offset += len as u64;
        }
    }

    fn put(&self, word: usize, value: u64, mask: u64) {
        let word_cell = &self.words[word];
        if mask == u64::MAX {
            return word_cell.store(value, Ordering::Relaxed);
        }
        let mut old = word_cell.load(Ordering::Relaxed);
        while let Err(now) =
            word_cell.compare_exchange_weak(old, old & !mask | value, Ordering::Relaxed, Ordering::Relaxed)
        {
            old = now;
        }
    }

    fn update(&self, offset: u64, width: usize, change: &mut dyn FnMut(u64) -> u64) -> u64 {
        self.mark(offset, width as u64);
        let (word, shift) = word_and_shift(offset);
        let (word_cell, mask) = (&self.words[word], mask(width));
        let mut old = word_cell.load(Ordering::Relaxed);
        loop {
            let value = change(old >> shift & mask) & mask;
            let new = old & !(mask << shift) | value << shift;
            match word_cell.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return old >> shift & mask,
                Err(now) => old = now,
            }
        }
    }

    fn mark(&self, offset: u64, len: u64) {
        let Some(written) = &self.written else { return };
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let (bit, count) = (at % 64, (end - at).min(64 - at % 64));
            let bits = if count == 64 { u64::MAX } else { ((1 << count) - 1) << bit };
            let word = &written[(at / 64) as usize];
            if word.load(Ordering::Relaxed) & bits != bits {
                word.fetch_or(bits, Ordering::Relaxed);
            }
            at += count;
        }
    }

    fn is_written(&self, offset: u64, len: u64) -> bool {
        let Some(written) = &self.written else { return true };
        (offset..offset + len)
            .all(|at| written[(at / 64) as usize].load(Ordering::Relaxed) >> (at % 64) & 1 == 1)
    }
}
