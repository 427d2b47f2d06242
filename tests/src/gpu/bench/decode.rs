//! A decoder's step over its cache: attention of one query per head and sequence. It reads each key
//! and value once, so the figures are bytes per second.
//!
//! The rivals are not libraries that can be loaded: `tests/rivals` starts them, and requests
//! [slices in alternation](super::serve) from this program.

use anyhow::{Context, ensure};
use serde_json::json;
use tma_kernels::cached::{
    CacheElement, CacheScales, CacheWorkspace, CachedAttentionOptions, KeyValueCache, cached_attention,
};
use tma_runtime::prelude::*;

use super::attention::reference;
use super::measure::{Plan, Spread};
use super::products::problem::normal;
use super::slices::{Instruments, Slices};
use crate::random::{hash, noise_of};

/// The bytes of caches that launches go through in turn, so that the L2 cache of 50 to 60 MB holds
/// none of them.
const COLD_BYTES: usize = 200_000_000;
/// Keys and values repeat this many numbers, which are no multiple of a row.
const NUMBERS: usize = 1_000_003;
/// The rows of the result that the host computes.
const ROWS: usize = 6;
/// The largest absolute error of an element, relative to the greatest of its row.
const TOLERANCE: f64 = 2e-2;
/// The shapes: sequences, heads of queries, heads of keys, keys.
const SHAPES: [Shape; 7] = [
    Shape { batch: 1, heads: 32, key_heads: 8, keys: 8192 },
    Shape { batch: 1, heads: 32, key_heads: 8, keys: 131_072 },
    Shape { batch: 16, heads: 32, key_heads: 8, keys: 8192 },
    Shape { batch: 32, heads: 32, key_heads: 8, keys: 4096 },
    Shape { batch: 64, heads: 32, key_heads: 8, keys: 4096 },
    Shape { batch: 128, heads: 64, key_heads: 8, keys: 4096 },
    Shape { batch: 8, heads: 128, key_heads: 1, keys: 32_768 },
];

/// The extents of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Sequences.
    pub batch: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub key_heads: usize,
    /// Keys of each sequence.
    pub keys: usize,
}

/// The shapes of a check, for each of the kernels.
const SMALL: [Shape; 2] = [
    Shape { batch: 2, heads: 8, key_heads: 2, keys: 200 },
    Shape { batch: 2, heads: 64, key_heads: 1, keys: 200 },
];

impl Shape {
    /// Returns the shape of a text such as `16x32x8x8192`.
    ///
    /// # Errors
    ///
    /// Another text.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let extents: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
        let extents: [usize; 4] = extents?.try_into().ok().context("a step has four extents")?;
        let [batch, heads, key_heads, keys] = extents;
        ensure!(!extents.contains(&0), "the extents of a step are above zero");
        Ok(Self { batch, heads, key_heads, keys })
    }

    fn extents(self) -> [usize; 4] {
        [self.batch, self.heads, self.key_heads, self.keys]
    }
}

/// A way to store the cache, and the number of queries.
#[derive(Clone, Copy, Debug)]
pub struct Contestant {
    /// The name in results.
    pub name: &'static str,
    /// The rows of a page, if there are pages. They are in no order.
    page: Option<usize>,
    /// The queries of each head, with a causal mask.
    queries: usize,
    /// The elements of a head.
    depth: usize,
    /// Whether the launches go through several caches in turn.
    is_cold: bool,
    /// Whether keys and values are `e4m3`, with a scale per head, and not `bf16`.
    is_narrow: bool,
}

impl Contestant {
    /// Returns the bytes of keys and values.
    fn bytes(self, shape: Shape) -> usize {
        let elements = 2 * shape.batch * shape.key_heads * shape.keys * self.depth;
        elements * if self.is_narrow { size_of::<e4m3>() } else { size_of::<bf16>() }
    }

    /// Returns the numbers that keys or values repeat, as `bf16` has them exactly.
    fn numbers(self, seed: u64) -> Vec<bf16> {
        let rounded =
            |x: bf16| if self.is_narrow { bf16::from_f32(e4m3::from_f32(x.to_f32()).to_f32()) } else { x };
        noise_of(NUMBERS, |i| rounded(bf16::from_f64(normal(seed, i))))
    }
}

/// A cache of heads of 128 elements that is not in the L2 cache.
const COLD: Contestant = Contestant {
    name: "cold/contiguous",
    page: None,
    queries: 1,
    depth: 128,
    is_cold: true,
    is_narrow: false,
};

/// The same cache in each launch.
const SAME: Contestant = Contestant { name: "same/contiguous", is_cold: false, ..COLD };

/// All contestants.
pub const CONTESTANTS: [Contestant; 14] = [
    COLD,
    Contestant { name: "cold/pages_of_16", page: Some(16), ..COLD },
    Contestant { name: "cold/pages_of_64", page: Some(64), ..COLD },
    Contestant { name: "cold/pages_of_256", page: Some(256), ..COLD },
    Contestant { name: "cold/4_queries", queries: 4, ..COLD },
    Contestant { name: "cold/e4m3", is_narrow: true, ..COLD },
    Contestant { name: "cold/e4m3_in_pages_of_64", page: Some(64), is_narrow: true, ..COLD },
    Contestant { name: "cold/d256", depth: 256, ..COLD },
    Contestant { name: "cold/d256_in_pages_of_64", depth: 256, page: Some(64), ..COLD },
    Contestant { name: "cold/d256_8_queries", depth: 256, queries: 8, ..COLD },
    Contestant { name: "cold/d256_e4m3", depth: 256, is_narrow: true, ..COLD },
    SAME,
    Contestant { name: "same/pages_of_64", page: Some(64), ..SAME },
    Contestant { name: "same/4_queries", queries: 4, ..SAME },
];

/// A step's tensors.
struct Step {
    q: DeviceTensor<bf16, 4>,
    keys_and_values: KeysAndValues,
    /// The pages of each sequence, and the number of its keys.
    pages: Option<(DeviceTensor<u32, 2>, DeviceTensor<u32, 1>)>,
    o: DeviceTensor<bf16, 4>,
}

/// Keys, and values.
enum KeysAndValues {
    Bf16([DeviceTensor<bf16, 4>; 2]),
    /// With the scales of all heads.
    E4m3([DeviceTensor<e4m3, 4>; 2], DeviceTensor<f32, 2>),
}

/// A contestant with its caches.
pub struct Steps {
    contestant: Contestant,
    shape: Shape,
    steps: Vec<Step>,
    next: usize,
    workspace: CacheWorkspace,
}

impl Steps {
    /// Allocates and fills the tensors.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn new(device: &Device, shape: Shape, contestant: Contestant) -> anyhow::Result<Self> {
        let count = if contestant.is_cold { COLD_BYTES.div_ceil(contestant.bytes(shape)) } else { 1 };
        let steps =
            (0..count).map(|_| Step::new(device, shape, contestant)).collect::<anyhow::Result<_>>()?;
        Ok(Self { contestant, shape, steps, next: 0, workspace: CacheWorkspace::new(device)? })
    }

    /// Queues the step of the next cache.
    ///
    /// # Errors
    ///
    /// Errors of the launch.
    pub fn queue(&mut self, stream: &Stream) -> anyhow::Result<()> {
        let index = self.next;
        self.next = (index + 1) % self.steps.len();
        let Step { q, keys_and_values, pages, o } = &mut self.steps[index];
        let options = CachedAttentionOptions {
            causal: true,
            workspace: Some(&mut self.workspace),
            ..CachedAttentionOptions::default()
        };
        match keys_and_values {
            KeysAndValues::Bf16(kv) => cached_attention(stream, &*q, cache(kv, pages.as_ref()), o, options)?,
            KeysAndValues::E4m3(kv, scales) => {
                let scales = CacheScales { keys: scales.view(), values: scales.view() };
                let cache = cache(kv, pages.as_ref()).with_scales(scales);
                cached_attention(stream, &*q, cache, o, options)?;
            }
        }
        Ok(())
    }

    /// Runs a step into poisoned memory, and compares some rows with those that the host computes.
    ///
    /// # Errors
    ///
    /// Errors of the launch, and a row that is wrong.
    pub fn check(&mut self, stream: &Stream) -> anyhow::Result<()> {
        let Shape { heads, key_heads, keys, .. } = self.shape;
        let Contestant { queries, depth, .. } = self.contestant;
        self.next = 0;
        self.steps[0].o.fill_bytes(0xff)?;
        self.steps[0].o.device().synchronize()?; // the copy is not ordered with the stream
        self.queue(stream)?;
        stream.synchronize()?;
        self.next = 0;
        let (q, found) = (self.steps[0].q.to_vec()?, self.steps[0].o.to_vec()?);
        let [k, v] = [K, V].map(|seed| self.contestant.numbers(seed));
        for sample in 0..ROWS as u64 {
            let row = (hash(98, sample) % (found.len() / depth) as u64) as usize;
            let (head, seen) = (row / queries, keys + row % queries + 1 - queries);
            let head = head / heads * key_heads + head % heads / (heads / key_heads);
            let rows = |all: &[bf16]| -> Vec<bf16> {
                (0..seen * depth).map(|i| all[(head * keys * depth + i) % NUMBERS]).collect()
            };
            let wanted = reference(&q[row * depth..][..depth], &rows(&k), &rows(&v));
            let greatest = wanted.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            let found = found[row * depth..].iter().zip(&wanted);
            let errors = found.map(|(found, wanted)| (found.to_f64() - wanted).abs() / greatest);
            let worst = errors.fold(0.0, |worst, error| if error <= worst { worst } else { error });
            ensure!(worst <= TOLERANCE, "row {row} of {:?} is wrong by {worst:.1e}", self.shape);
        }
        Ok(())
    }

    /// Returns the bytes of keys and values that a step reads.
    pub fn bytes(&self) -> f64 {
        self.contestant.bytes(self.shape) as f64
    }
}

impl Step {
    fn new(device: &Device, shape: Shape, contestant: Contestant) -> anyhow::Result<Self> {
        let Shape { batch, heads, key_heads, keys } = shape;
        let Contestant { queries, depth, .. } = contestant;
        let q = noise_of(batch * heads * queries * depth, |i| bf16::from_f64(normal(Q, i)));
        let q = device.tensor(&q, [batch, heads, queries, depth])?;
        let o = device.filled_bytes(q.shape(), 0xff)?;
        let pages = match contestant.page {
            None => None,
            Some(rows) => {
                let width = keys.div_ceil(rows);
                let table = device.tensor(&scattered(batch * width), [batch, width])?;
                Some((table, device.tensor(&vec![u32::try_from(keys)?; batch], [batch])?))
            }
        };
        let keys_and_values = if contestant.is_narrow {
            let scales = device.tensor(&vec![1.0; key_heads], [1, key_heads])?;
            let narrow = |x: &bf16| e4m3::from_f32(x.to_f32());
            KeysAndValues::E4m3(stored(device, shape, contestant, narrow)?, scales)
        } else {
            KeysAndValues::Bf16(stored(device, shape, contestant, |&x| x)?)
        };
        Ok(Self { q, keys_and_values, pages, o })
    }
}

/// Returns the cache of these keys and values.
fn cache<'a, C: CacheElement<bf16>>(
    [k, v]: &'a [DeviceTensor<C, 4>; 2],
    pages: Option<&'a (DeviceTensor<u32, 2>, DeviceTensor<u32, 1>)>,
) -> KeyValueCache<'a, C> {
    match pages {
        None => KeyValueCache::contiguous(k.view(), v.view()),
        Some((table, lengths)) => {
            KeyValueCache::paged(k.view(), v.view(), table.view()).with_lengths(lengths.view())
        }
    }
}

/// Returns keys and values as the contestant stores them.
fn stored<C: CacheElement<bf16>>(
    device: &Device,
    shape: Shape,
    contestant: Contestant,
    convert: impl Fn(&bf16) -> C,
) -> anyhow::Result<[DeviceTensor<C, 4>; 2]> {
    let Shape { batch, key_heads, keys, .. } = shape;
    let depth = contestant.depth;
    let rows = contestant.page.unwrap_or(keys);
    let width = keys.div_ceil(rows); // 1 without pages
    let table =
        if contestant.page.is_some() { scattered(batch * width) } else { (0..batch as u32).collect() };
    let mut positions = vec![0; table.len()];
    for (i, &page) in table.iter().enumerate() {
        positions[page as usize] = i;
    }
    let tensor = |seed| {
        let numbers: Vec<C> = contestant.numbers(seed).iter().map(&convert).collect();
        let mut all = Vec::with_capacity(table.len() * key_heads * rows * depth);
        for (position, head) in positions.iter().flat_map(|at| (0..key_heads).map(move |head| (at, head))) {
            let (sequence, first) = (position / width, position % width * rows);
            let source = ((sequence * key_heads + head) * keys + first) * depth;
            repeat(&numbers, source, rows * depth, &mut all); // rows beyond the length count for nothing
        }
        device.tensor(&all, [table.len(), key_heads, rows, depth])
    };
    Ok([tensor(K)?, tensor(V)?])
}

/// The seeds of the operands.
const Q: u64 = 98;
const K: u64 = 99;
const V: u64 = 100;

/// Appends `len` of the numbers, repeated without an end, from the one at `first` on.
fn repeat<C: Copy>(numbers: &[C], first: usize, len: usize, to: &mut Vec<C>) {
    let end = to.len() + len;
    let mut rest = &numbers[first % numbers.len()..];
    while to.len() < end {
        to.extend_from_slice(&rest[..rest.len().min(end - to.len())]);
        rest = numbers;
    }
}

/// Returns the numbers below `count` in a reproducible order.
fn scattered(count: usize) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count as u32).collect();
    numbers.sort_by_key(|&number| hash(101, u64::from(number)));
    numbers
}

/// Returns the names of the contestants.
pub fn names() -> Vec<String> {
    CONTESTANTS.iter().map(|contestant| contestant.name.to_owned()).collect()
}

/// Checks and measures each contestant at each shape. Returns a verdict for each check.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, &SHAPES)
}

/// Checks each contestant at small shapes, in which a head of keys has 4 rows of queries and 16, and
/// 64 and 256.
///
/// # Errors
///
/// Errors of the device.
pub fn check(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, &SMALL)
}

fn run_at(device: &Device, plan: &Plan, shapes: &[Shape]) -> anyhow::Result<Vec<bool>> {
    let (stream, instruments) = (device.stream()?, Instruments::load(device)?);
    let slices = Slices { stream: &stream, instruments: &instruments, slice_ms: plan.products.slice_ms };
    let mut verdicts = vec![];
    for &shape in shapes {
        for contestant in CONTESTANTS.iter().filter(|contestant| plan.names("decode", contestant.name)) {
            let name = format!("decode/{}", contestant.name);
            // One cache is enough to check.
            let meant = Contestant { is_cold: contestant.is_cold && !plan.check_only, ..*contestant };
            let mut steps = Steps::new(device, shape, meant)?;
            if let Some(launches) = plan.launches {
                (0..launches).try_for_each(|_| steps.queue(&stream))?;
                stream.synchronize()?;
                println!("{}", json!({"benchmark": name, "shape": shape.extents(), "launches": launches}));
                continue;
            }
            let checked = steps.check(&stream);
            verdicts.push(checked.is_ok());
            if let Err(error) = checked {
                let error = format!("{error:#}");
                println!("{}", json!({"benchmark": name, "shape": shape.extents(), "error": error}));
            } else if !plan.check_only {
                let bytes = steps.bytes();
                let mut queue = || steps.queue(&stream);
                let slice = slices.prepare(&mut queue)?;
                let rounds = 0..plan.products.rounds;
                // SAFETY: `steps` are the tensors of the slice, and are borrowed.
                let measured = rounds.map(|_| unsafe { slices.run(&slice, bytes, &mut queue) });
                let speeds: Vec<f64> =
                    measured.map(|round| Ok(round?.tflops * 1e3)).collect::<anyhow::Result<_>>()?;
                let Spread { median, width } = Spread::of(&speeds);
                let shape = shape.extents();
                println!(
                    "{}",
                    json!({"benchmark": name, "shape": shape, "gb_per_s": median, "spread": width})
                );
            }
        }
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cache_is_right_on_the_simulator() {
        let plan = Plan { check_only: true, ..Plan::default() };
        assert_eq!(check(&Device::simulator(), &plan).unwrap(), [true; SMALL.len() * CONTESTANTS.len()]);
    }

    #[test]
    fn a_shape_has_four_extents() {
        assert_eq!(Shape::parse("1x32x8x8192").unwrap(), SHAPES[0]);
        assert_eq!(CONTESTANTS[0].bytes(SHAPES[0]), 33_554_432);
        assert!(Shape::parse("1x32x8").is_err() && Shape::parse("1x0x8x64").is_err());
    }
}
