//! Each finding as a flipped pair: a correct sequence of calls, in which nothing is found under 64
//! seeds, and the same sequence without one step, in which the finding is made under each of 32
//! seeds.

mod barriers;
mod bounds;
mod clusters;
mod copies;
mod loads;
mod mbarriers;
mod outside;
mod overruns;
mod pipeline;
mod recorded;
mod refills;
mod stores;
mod threads;

use std::sync::Arc;

use tma_model::sync::Arrival;

use super::*;
use crate::report::{FindingKind, Findings};
use crate::tensor_map::{self, DataType, Fill, Interleave, Mode, Swizzle, TensorMap};

/// Threads of a block.
const THREADS: u32 = 64;
/// The addresses of the mbarriers in these tests.
const FULL: u64 = 8192;
const EMPTY: u64 = 8200;
/// Bytes of the tile of [`Lab::map`]: 16 rows of 16 `f32`.
const TILE: u32 = 1024;

/// A machine, and global memory with a 64×64 tensor of `f32` numbered from 0.
struct Lab {
    machine: Machine,
    global: Arc<GlobalMemory>,
    tensor: u64,
    line: u32,
}

/// Returns a thread of block 0.
const fn thread_id(thread: u32) -> ThreadId {
    ThreadId::new(0, thread)
}

fn all() -> impl Iterator<Item = ThreadId> {
    (0..THREADS).map(thread_id)
}

fn matrix(address: u64) -> TensorMap {
    TensorMap {
        element: DataType::F32,
        address,
        extents: vec![64, 64],
        byte_strides: vec![256],
        mode: Mode::Tiled { box_extents: vec![16, 16] },
        element_strides: vec![1, 1],
        interleave: Interleave::None,
        swizzle: Swizzle::None,
        fill: Fill::Zeros,
    }
}

impl Lab {
    fn new(seed: u64, blocks: u32) -> Self {
        Self::with(seed, blocks, Checks::ALL, matrix)
    }

    fn with(seed: u64, blocks: u32, checks: Checks, map: fn(u64) -> TensorMap) -> Self {
        let mut global = GlobalMemory::default();
        let tensor = global.allocate(64 * 64 * 4, false).unwrap();
        let values: Vec<u8> = (0..64 * 64).flat_map(|value| (value as f32).to_le_bytes()).collect();
        global.write(tensor, &values).unwrap();
        let global = Arc::new(global);
        let mut machine = Machine::new(&MachineConfig {
            thread_registers: None,
            blocks: (0..blocks).map(|x| [x, 0, 0]).collect(),
            threads: THREADS,
            shared: 0..16384,
            seed,
            checks,
            global: Arc::clone(&global),
            copies: true,
            used_immediately: None,
            cluster: 0,
            clusters: 1,
            ranks: 1,
            grid: None,
            names: Arc::new([]),
            lines: Arc::new([]),
        });
        machine.map_number(&tensor_map::encode(&map(tensor)));
        Self { machine, global, tensor, line: 0 }
    }

    fn site(&mut self) -> Site {
        self.line += 1;
        Site { ptx_line: self.line, source: None }
    }

    fn read(&mut self, thread: ThreadId, at: u64) -> f32 {
        let (mut bytes, site) = ([0; 4], self.site());
        let _ = self.machine.load(
            Actor { thread, site },
            Pointer::new(Space::Shared, at),
            &mut bytes,
            Order::Weak,
        );
        f32::from_le_bytes(bytes)
    }

    fn write(&mut self, thread: ThreadId, at: u64, value: f32) {
        let site = self.site();
        let _ = self.machine.store(
            Actor { thread, site },
            Pointer::new(Space::Shared, at),
            &value.to_le_bytes(),
            Order::Weak,
        );
    }

    /// Writes the tile at `at` with all threads.
    fn fill(&mut self, at: u64) {
        for word in 0..u64::from(TILE) / 4 {
            self.write(thread_id((word % u64::from(THREADS)) as u32), at + word * 4, word as f32);
        }
    }

    /// `bar.sync 0` of block 0.
    fn sync(&mut self) {
        let site = self.site();
        let with =
            BarrierUse { id: BarrierId(0), threads: None, arrive_only: false, aligned: true, vote: false };
        for thread in all() {
            let _ = self.machine.barrier(Actor { thread, site }, with);
        }
        for thread in all().take(THREADS as usize - 1) {
            assert_eq!(self.machine.barrier(Actor { thread, site }, with), Ok(Poll::Ready));
        }
    }

    fn fence(&mut self, thread: ThreadId, kind: Fence) {
        self.machine.fence(thread, kind);
    }

    fn init(&mut self, thread: ThreadId, at: u64, count: u32) {
        let site = self.site();
        let _ = self.machine.mbarrier_init(Actor { thread, site }, Pointer::new(Space::Shared, at), count);
    }

    /// Makes an mbarrier of count 1, initialised by thread 0 and visible to all threads.
    fn barrier(&mut self) {
        self.init(thread_id(0), FULL, 1);
        self.fence(thread_id(0), Fence::MbarrierInit);
        self.sync();
    }

    fn arrive(&mut self, thread: ThreadId, at: u64, expect_tx: Option<u32>) {
        let site = self.site();
        let _ = self.machine.mbarrier_arrive(
            Actor { thread, site },
            Pointer::new(Space::Shared, at),
            Arrive { arrival: Arrival { expect_tx, ..Arrival::ONE }, ..Arrive::ONE },
        );
    }

    /// Waits like a loop around `try_wait`. Returns false on a deadlock, which is recorded.
    fn wait(&mut self, thread: ThreadId, at: u64, parity: bool) -> bool {
        let (site, phase) = (self.site(), Phase::Parity(parity));
        loop {
            self.machine.advance();
            match self.machine.mbarrier_try_wait(
                Actor { thread, site },
                Pointer::new(Space::Shared, at),
                PhaseWait { phase, semantics: Semantics::ACQUIRE },
            ) {
                Ok(TryWait::Complete) => return true,
                Ok(TryWait::TimedOut) => {}
                Ok(TryWait::Blocked) => {
                    let event = WaitingFor::Mbarrier { pointer: Pointer::shared(at), phase };
                    if !self.machine.let_time_pass() {
                        let _stop = self.machine.deadlocked(&[Waiting { thread, event, site }], &[]);
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
    }

    /// Returns a copy by the map, which is at `descriptor` in global memory or in the parameters.
    fn named(&self, descriptor: Option<u64>, at: [i32; 5], action: TensorAction) -> TensorCopy {
        TensorCopy { map: MapId(0), descriptor, at, rank: 2, im2col: false, offsets: [0; 3], action }
    }

    fn copy(&mut self, thread: ThreadId, at: [i32; 5], action: TensorAction) -> Result<(), Stop> {
        let (site, copy) = (self.site(), self.named(None, at, action));
        self.machine.tensor_copy(Actor { thread, site }, &copy)
    }

    fn load(&mut self, thread: ThreadId, tile: u64) {
        let action = TensorAction::Load { space: Space::Shared, tile, barrier: FULL, multicast: None };
        let _ = self.copy(thread, [16, 16, 0, 0, 0], action);
    }

    fn store(&mut self, thread: ThreadId, tile: u64) {
        let _ = self.copy(thread, [0; 5], TensorAction::Store { tile });
    }

    fn commit(&mut self, thread: ThreadId) {
        self.machine.bulk_commit(thread);
    }

    fn wait_groups(&mut self, thread: ThreadId, pending: u32, read: bool) {
        self.line += 1;
        while self.machine.bulk_wait(thread, pending, read) == Poll::Blocked {
            assert!(self.machine.let_time_pass());
        }
    }

    fn end(mut self) -> Findings {
        let site = self.site();
        for block in 0..self.machine.shape.blocks {
            for thread in 0..THREADS {
                self.machine.exit(Actor { thread: ThreadId::new(block, thread), site });
            }
        }
        self.machine.finish()
    }
}

/// Runs `steps` correctly (`true`) and with one step left out (`false`).
fn flipped_in(blocks: u32, kind: FindingKind, steps: impl Fn(&mut Lab, bool)) {
    let run = |seed, correct| {
        let mut lab = Lab::new(seed, blocks);
        steps(&mut lab, correct);
        lab.end()
    };
    for seed in 0..64 {
        let findings = run(seed, true);
        assert!(
            findings.is_empty(),
            "seed {seed} of the correct one:\n{}",
            findings.render(&Default::default())
        );
    }
    for seed in 0..32 {
        let findings = run(seed, false);
        let found = findings.iter().any(|finding| finding.kind == kind);
        assert!(found, "seed {seed}: no {kind:?} but\n{}", findings.render(&Default::default()));
    }
}

fn flipped(kind: FindingKind, steps: impl Fn(&mut Lab, bool)) {
    flipped_in(1, kind, steps);
}
