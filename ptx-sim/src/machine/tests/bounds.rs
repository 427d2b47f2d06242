//! Bounds and alignment in every state space, and allocation of global memory.

use super::*;

fn access(lab: &mut Lab, space: Space, address: u64, store: bool) {
    let site = lab.site();
    let _ = lab.machine.store(
        Actor { thread: thread_id(0), site },
        Pointer::new(space, address),
        &[0; 4],
        Order::Weak,
    );
    if !store {
        let _ = lab.machine.load(
            Actor { thread: thread_id(0), site },
            Pointer::new(space, address),
            &mut [0; 4],
            Order::Weak,
        );
    }
}

#[test]
fn accesses_are_inside() {
    for store in [false, true] {
        flipped(FindingKind::OutOfBounds, |lab, inside| {
            access(lab, Space::Shared, if inside { 16380 } else { 16384 }, store);
        });
        flipped(FindingKind::OutOfBounds, |lab, inside| {
            let last = lab.tensor + 64 * 64 * 4 - 4;
            access(lab, Space::Global, if inside { last } else { last + 4 }, store);
        });
        flipped(FindingKind::OutOfBounds, |lab, inside| {
            access(lab, Space::Global, if inside { lab.tensor } else { lab.tensor - 4 }, store);
        });
        flipped(FindingKind::OutOfBounds, |lab, inside| {
            let at = address::map_to_rank(16, u32::from(!inside));
            access(lab, Space::SharedCluster, at.into(), store);
        });
        flipped(FindingKind::OutOfBounds, |lab, inside| {
            access(lab, Space::Generic, if inside { address::SHARED_WINDOW + 16 } else { 16 }, store);
        });
    }
}

#[test]
fn accesses_are_aligned() {
    flipped(FindingKind::Misaligned, |lab, aligned| {
        access(lab, Space::Shared, 8 + u64::from(!aligned), false);
    });
    flipped(FindingKind::Misaligned, |lab, aligned| {
        access(lab, Space::Global, lab.tensor + if aligned { 4 } else { 2 }, false);
    });
    flipped(FindingKind::Misaligned, |lab, aligned| {
        let site = lab.site();
        let at = lab.tensor + if aligned { 16 } else { 8 };
        let _ = lab.machine.store(
            Actor { thread: thread_id(0), site },
            Pointer::new(Space::Global, at),
            &[0; 16],
            Order::Weak,
        );
    });
}

#[test]
fn spaces_are_views_of_the_same_bytes() {
    let mut lab = Lab::new(0, 1);
    lab.write(thread_id(0), 16, 5.0);
    let (mut bytes, site) = ([0; 4], lab.site());
    let generic = address::SHARED_WINDOW + u64::from(address::map_to_rank(16, 0));
    lab.machine
        .load(
            Actor { thread: thread_id(0), site },
            Pointer::new(Space::Generic, generic),
            &mut bytes,
            Order::Weak,
        )
        .unwrap();
    assert_eq!(f32::from_le_bytes(bytes), 5.0);
    assert_eq!(address::rank_of(address::map_to_rank(16, 3)), BlockRank(3));
    assert_eq!(address::rank_of(16), BlockRank(0));
}

#[test]
fn global_memory_tracks_written_bytes() {
    let mut global = GlobalMemory::default();
    let tracked = global.allocate(100, true).unwrap();
    global.write(tracked + 3, &[7; 70]).unwrap();
    assert!(global.is_written(tracked + 3, 70));
    assert!(!global.is_written(tracked + 2, 2) && !global.is_written(tracked + 72, 2));
    let mut bytes = [0; 100];
    global.read(tracked, &mut bytes).unwrap();
    assert!(bytes.iter().enumerate().all(|(at, &byte)| byte == if (3..73).contains(&at) { 7 } else { 0 }));
    assert_eq!(global.update(tracked + 6, 2, &mut |old| old + 1), Ok(0x0707));
    global.read(tracked, &mut bytes).unwrap();
    assert_eq!(bytes[5..9], [7, 8, 7, 7]);
    assert!(global.read(tracked + 99, &mut [0; 2]).is_err());
    assert!(global.free(tracked) && !global.free(tracked));
    assert_eq!(global.read(tracked, &mut [0]), Err(GlobalFault::OutOfBounds { near: None }));
}

#[test]
fn global_memory_is_written_before_it_is_read() {
    for with_copy in [false, true] {
        flipped(FindingKind::Uninitialised, |lab, written| {
            let mut global = GlobalMemory::default();
            let tensor = global.allocate(64 * 64 * 4, true).unwrap();
            if written {
                global.write(tensor, &[0; 64 * 64 * 4]).unwrap();
            }
            lab.machine.memory.global = Arc::new(global);
            let site = lab.site();
            if with_copy {
                lab.barrier();
                lab.arrive(thread_id(0), FULL, Some(TILE));
                lab.load(thread_id(0), 0);
                lab.wait(thread_id(0), FULL, false);
            } else {
                lab.machine
                    .load(
                        Actor { thread: thread_id(0), site },
                        Pointer::new(Space::Global, tensor),
                        &mut [0; 4],
                        Order::Weak,
                    )
                    .unwrap();
            }
        });
    }
}

#[test]
fn allocations_beyond_host_memory_fail() {
    let mut global = GlobalMemory::default();
    let kept = global.allocate(1 << 20, false).unwrap();
    for bytes in [1 << 33, 1 << 40, 1 << 60, u64::MAX] {
        assert_eq!(global.allocate(bytes, true), None, "{bytes}");
    }
    assert!(global.free(kept) && !global.free(kept));
}

#[test]
fn freed_addresses_are_reused_last() {
    let mut global = GlobalMemory::default();
    let kept = global.allocate(16, false).unwrap();
    let first = global.allocate(16, false).unwrap();
    assert!(global.free(first));
    let next = global.allocate(16, false).unwrap();
    assert_ne!(next, first);
    for _ in 0..40_000 {
        let address = global.allocate(16, false).unwrap();
        assert!(address != kept && address != next && global.free(address));
    }
    // Once every slot is in use, allocation fails.
    let all = (0..).map_while(|_| global.allocate(0, false)).count();
    assert!(all > 30_000 && global.allocate(0, false).is_none());
}
