//! A ring of two stages: thread 0 loads, all threads read, and each stage is released before it is
//! loaded again.

use super::*;

/// The mistake in the ring.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    ProducerDoesNotWait,
    ConsumersDoNotWait,
    OneDoesNotRelease,
    OneDoesNotFence,
    OneParityForAll,
    NoInitFence,
}

const TILES: u32 = 7;

const fn full(stage: u32) -> u64 {
    8192 + stage as u64 * 16
}

const fn empty(stage: u32) -> u64 {
    full(stage) + 8
}

/// Runs the ring, with the producer one tile ahead of the consumers.
fn ring(lab: &mut Lab, wrong: Wrong) {
    for stage in 0..2 {
        lab.init(thread_id(0), full(stage), 1);
        lab.init(
            thread_id(0),
            empty(stage),
            if wrong == Wrong::OneDoesNotRelease { THREADS - 1 } else { THREADS },
        );
    }
    if wrong != Wrong::NoInitFence {
        lab.fence(thread_id(0), Fence::MbarrierInit);
    }
    lab.sync();
    for step in 0..=TILES {
        if step < TILES {
            produce(lab, step, wrong);
        }
        if let Some(tile) = step.checked_sub(1) {
            all().for_each(|thread| consume(lab, thread, tile, wrong));
        }
    }
}

fn produce(lab: &mut Lab, tile: u32, wrong: Wrong) {
    let (stage, parity) = (tile % 2, tile / 2 % 2 == 1);
    if wrong != Wrong::ProducerDoesNotWait {
        lab.wait(thread_id(0), empty(stage), !parity);
    }
    lab.arrive(thread_id(0), full(stage), Some(TILE));
    let (space, location) = (Space::Shared, u64::from(stage * TILE));
    let action = TensorAction::Load { space, tile: location, barrier: full(stage), multicast: None };
    lab.copy(thread_id(0), [0, tile as i32, 0, 0, 0], action).unwrap();
}

fn consume(lab: &mut Lab, thread: ThreadId, tile: u32, wrong: Wrong) {
    let (stage, parity) = (tile % 2, tile / 2 % 2 == 1);
    if wrong != Wrong::ConsumersDoNotWait {
        lab.wait(thread, full(stage), parity && wrong != Wrong::OneParityForAll);
    }
    let value = lab.read(thread, u64::from(stage * TILE));
    assert!(wrong != Wrong::Nothing || value == (tile * 64) as f32);
    if wrong != Wrong::OneDoesNotFence || thread.index.0 != 5 {
        lab.fence(thread, Fence::ProxyAsync(FencedMemory::Shared(Scope::Block)));
    }
    if wrong != Wrong::OneDoesNotRelease || thread.index.0 != 11 {
        lab.arrive(thread, empty(stage), None);
    }
}

#[test]
fn a_ring_needs_each_of_its_steps() {
    let pairs = [
        (Wrong::ProducerDoesNotWait, FindingKind::RefillBeforeRelease),
        (Wrong::ConsumersDoNotWait, FindingKind::ReadBeforeWait),
        (Wrong::OneDoesNotRelease, FindingKind::RefillBeforeRelease),
        (Wrong::OneDoesNotFence, FindingKind::UnfencedRefill),
        (Wrong::OneParityForAll, FindingKind::ReadBeforeWait),
        (Wrong::NoInitFence, FindingKind::BarrierNotVisible),
    ];
    for (wrong, kind) in pairs {
        flipped(kind, |lab, correct| ring(lab, if correct { Wrong::Nothing } else { wrong }));
    }
}
