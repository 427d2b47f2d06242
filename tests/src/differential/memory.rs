//! Threads and their memory as plain Rust, for the generated kernels: the threads of a block are
//! threads of the program. This file is also a module of that program, next to `words`.

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::marker::PhantomData;
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;

use super::words::{bf16, f16};

/// The value of a word that no thread has written.
const UNTOUCHED: u64 = 0xabab_abab_abab_abab;

thread_local! {
    static THREAD: Cell<u32> = const { Cell::new(0) };
    /// The block of the thread.
    static BLOCK: RefCell<Option<Arc<Block>>> = const { RefCell::new(None) };
    /// The number of objects in shared memory that the thread has declared.
    static DECLARED: Cell<usize> = const { Cell::new(0) };
}

/// A thread index or block index.
pub struct Dim3 {
    pub x: u32,
}

pub fn thread_idx() -> Dim3 {
    Dim3 { x: THREAD.get() }
}

/// A slice of global memory.
#[derive(Clone)]
pub struct Global<T>(Arc<Mutex<Vec<T>>>);

impl<T: Copy> Global<T> {
    pub fn get(&self, index: u64) -> T {
        locked(&self.0, |all| all[index as usize])
    }

    pub fn set(&self, index: u64, value: T) {
        locked(&self.0, |all| all[index as usize] = value);
    }
}

fn locked<T, R>(all: &Mutex<T>, f: impl FnOnce(&mut T) -> R) -> R {
    f(&mut all.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A block of threads, and its shared memory.
struct Block {
    all_threads: Barrier,
    objects: Mutex<Vec<Memory>>,
}

/// The bytes of an object in shared memory.
type Memory = &'static Mutex<Vec<u8>>;

pub fn sync_threads() {
    BLOCK.with_borrow(|block| block.as_ref().expect("the thread is in a block").all_threads.wait());
}

/// Declares the next object of the thread. The first thread that does creates it.
pub fn shared<T: Element, const N: u32>() -> SharedArray<T, N> {
    let number = DECLARED.replace(DECLARED.get() + 1);
    let bytes = BLOCK.with_borrow(|block| {
        locked(&block.as_ref().expect("the thread is in a block").objects, |objects| {
            if objects.len() == number {
                objects.push(Box::leak(Box::new(Mutex::new(vec![0; N as usize * size_of::<T>()]))));
            }
            objects[number]
        })
    });
    SharedArray { bytes, element: PhantomData }
}

/// Declares an array in the memory of another one.
pub fn reuse<T: Element, const N: u32, U, const M: u32>(object: SharedArray<U, M>) -> SharedArray<T, N> {
    assert!(N as usize * size_of::<T>() <= M as usize * size_of::<U>(), "it needs more bytes");
    SharedArray { bytes: object.bytes, element: PhantomData }
}

/// An array in shared memory.
#[derive(Clone, Copy)]
pub struct SharedArray<T, const N: u32> {
    bytes: Memory,
    element: PhantomData<T>,
}

impl<T: Element, const N: u32> SharedArray<T, N> {
    pub fn get(&self, index: u32) -> T {
        assert!(index < N, "index {index} of {N}");
        let first = index as usize * size_of::<T>();
        locked(self.bytes, |bytes| T::read(&bytes[first..][..size_of::<T>()]))
    }

    pub fn set(&self, index: u32, value: T) {
        assert!(index < N, "index {index} of {N}");
        let first = index as usize * size_of::<T>();
        locked(self.bytes, |bytes| value.write(&mut bytes[first..][..size_of::<T>()]));
    }
}

/// A scalar in shared memory.
pub trait Element: Copy {
    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut [u8]);
}

macro_rules! elements {
    ($($ty:ident)+) => { $(
        impl Element for $ty {
            fn read(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("the bytes of one element"))
            }

            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )+ };
}

elements!(i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);

macro_rules! elements_by_bits {
    ($($ty:ident)+) => { $(
        impl Element for $ty {
            fn read(bytes: &[u8]) -> Self {
                Self::from_bits(Element::read(bytes))
            }

            fn write(self, bytes: &mut [u8]) {
                self.to_bits().write(bytes);
            }
        }
    )+ };
}

elements_by_bits!(f16 bf16);

/// A kernel: its input words and its output.
pub type Body = fn(Global<u64>, Global<u64>);

/// Runs every thread of every kernel on the words in the file that is the program's first argument,
/// and writes the output of each kernel to standard output.
pub fn run_all(kernels: &[Body], threads: u32, outputs: usize) {
    let path = std::env::args_os().nth(1).expect("a file of words");
    let bytes = std::fs::read(path).expect("the file can be read");
    let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
    let words = Global(Arc::new(Mutex::new(words.collect())));
    let mut stdout = std::io::stdout().lock();
    for kernel in kernels {
        let out = Global(Arc::new(Mutex::new(vec![UNTOUCHED; outputs])));
        let all_threads = Barrier::new(threads as usize);
        let block = Arc::new(Block { all_threads, objects: Mutex::default() });
        thread::scope(|scope| {
            for thread in 0..threads {
                let (block, words, out) = (block.clone(), words.clone(), out.clone());
                scope.spawn(move || {
                    THREAD.set(thread);
                    BLOCK.set(Some(block));
                    kernel(words, out);
                });
            }
        });
        let bytes: Vec<u8> = locked(&out.0, |all| all.iter().flat_map(|word| word.to_le_bytes()).collect());
        stdout.write_all(&bytes).expect("standard output is read");
    }
}
