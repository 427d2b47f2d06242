//! Copies that the copy engine refuses, and the destination of a copy's bytes.

use super::*;

const LOAD: TensorAction =
    TensorAction::Load { space: Space::Shared, tile: 0, barrier: FULL, multicast: None };
const STORE: TensorAction = TensorAction::Store { tile: 0 };

/// Starts a copy at `at` after everything that it requires, and waits for it.
fn copied(lab: &mut Lab, at: [i32; 5], action: TensorAction) {
    lab.fill(0);
    lab.barrier();
    all().for_each(|thread| lab.fence(thread, Fence::ProxyAsync(FencedMemory::All)));
    lab.sync();
    let done = lab.copy(thread_id(0), at, action).is_ok();
    if matches!(action, TensorAction::Load { .. }) && done {
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.wait(thread_id(0), FULL, false);
    }
    lab.commit(thread_id(0));
    lab.wait_groups(thread_id(0), 0, false);
}

#[test]
fn the_innermost_coordinate_is_a_multiple_of_16_bytes() {
    for action in [LOAD, STORE] {
        flipped(FindingKind::IllegalCopy, |lab, multiple| {
            copied(lab, [if multiple { 4 } else { 3 }, 0, 0, 0, 0], action);
        });
    }
}

#[test]
fn stores_do_not_start_before_the_tensor() {
    flipped(FindingKind::IllegalCopy, |lab, inside| {
        copied(lab, [if inside { 0 } else { -4 }, 0, 0, 0, 0], STORE);
    });
    flipped(FindingKind::IllegalCopy, |lab, inside| {
        copied(lab, [0, if inside { 0 } else { -1 }, 0, 0, 0], STORE);
    });
}

#[test]
fn tiles_are_aligned() {
    flipped(FindingKind::Misaligned, |lab, aligned| {
        let tile = if aligned { 0 } else { 64 };
        copied(lab, [0; 5], TensorAction::Store { tile });
    });
}

#[test]
fn tiles_are_inside_of_shared_memory() {
    flipped(FindingKind::OutOfBounds, |lab, inside| {
        copied(lab, [0; 5], TensorAction::Store { tile: if inside { 0 } else { 16384 - 512 } });
    });
}

#[test]
fn a_load_from_before_the_tensor_brings_zeros() {
    let mut lab = Lab::new(3, 1);
    copied(&mut lab, [-4, -1, 0, 0, 0], LOAD);
    assert_eq!([lab.read(thread_id(0), 0), lab.read(thread_id(0), 20)], [0.0, 0.0], "row -1");
    assert_eq!(
        [lab.read(thread_id(0), 76), lab.read(thread_id(0), 80), lab.read(thread_id(0), 84)],
        [0.0, 0.0, 1.0]
    );
    assert!(lab.end().is_empty());
}

#[test]
fn a_store_past_the_end_is_clipped() {
    let mut lab = Lab::new(3, 1);
    copied(&mut lab, [60, 60, 0, 0, 0], STORE);
    let mut row = [0; 16];
    lab.global.read(lab.tensor + 63 * 256 + 240, &mut row).unwrap();
    let values: Vec<f32> =
        row.chunks(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    assert_eq!(values, [48.0, 49.0, 50.0, 51.0]);
    assert!(lab.end().is_empty());
}

#[test]
fn a_store_writes_whole_units() {
    let narrow = |address| TensorMap { extents: vec![5, 64], ..matrix(address) };
    let mut lab = Lab::with(0, 1, Checks::ALL, narrow);
    copied(&mut lab, [0; 5], STORE);
    let mut row = [0; 36];
    lab.global.read(lab.tensor, &mut row).unwrap();
    let value = |at: usize| f32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
    assert_eq!([value(16), value(28), value(32)], [4.0, 7.0, 8.0]);
    lab.global.read(lab.tensor + 256, &mut row).unwrap();
    let after = f32::from_le_bytes([row[32], row[33], row[34], row[35]]);
    assert_eq!(after, 64.0 + 8.0, "the unit after the last that starts in the tensor is left alone");
}

#[test]
fn a_reduction_adds() {
    let mut lab = Lab::new(7, 1);
    copied(&mut lab, [0; 5], TensorAction::Reduce { tile: 0, with: Reduction::Add });
    let mut word = [0; 4];
    lab.global.read(lab.tensor + 256 + 8, &mut word).unwrap();
    assert_eq!(f32::from_le_bytes(word), 66.0 + 18.0);
    assert!(lab.end().is_empty());
}

#[test]
fn bytes_in_a_line_are_brought_and_stored() {
    let mut lab = Lab::new(5, 1);
    lab.barrier();
    lab.arrive(thread_id(0), FULL, Some(64));
    let site = lab.site();
    let action = BulkAction::Load {
        global: lab.tensor + 32,
        space: Space::Shared,
        to: 256,
        barrier: FULL,
        multicast: None,
    };
    lab.machine.bulk_copy(Actor { thread: thread_id(0), site }, &BulkCopy { bytes: 64, action }).unwrap();
    assert!(lab.wait(thread_id(0), FULL, false));
    assert_eq!(lab.read(thread_id(0), 256 + 60), 23.0);
    let action = BulkAction::Store { from: 256, global: lab.tensor, reduce: None };
    lab.machine.bulk_copy(Actor { thread: thread_id(0), site }, &BulkCopy { bytes: 64, action }).unwrap();
    lab.commit(thread_id(0));
    lab.wait_groups(thread_id(0), 0, false);
    let mut word = [0; 4];
    lab.global.read(lab.tensor + 60, &mut word).unwrap();
    assert_eq!(f32::from_le_bytes(word), 23.0);
    assert!(lab.end().is_empty());
}

#[test]
fn copies_are_multiples_of_units() {
    flipped(FindingKind::IllegalCopy, |lab, whole| {
        let site = lab.site();
        let action = BulkAction::Prefetch { global: lab.tensor };
        let _ = lab.machine.bulk_copy(
            Actor { thread: thread_id(0), site },
            &BulkCopy { bytes: if whole { 32 } else { 24 }, action },
        );
    });
}
