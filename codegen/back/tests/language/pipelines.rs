//! Phases and pipelines: the statements that they expand to.

use super::{means, module};

/// A pipeline of two stages with two tiles, 64 and 256 bytes.
const RING: &str = "let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();";

#[test]
fn a_phase_is_a_parity() {
    means(
        "let b: Barrier = shared(); let mut phase = Phase::new(); b.wait_next(&mut phase); out.set(0, phase.parity()); phase.flip();",
        "v0 = 0u32\nbarrier.wait s0 v0\nv0 = (v0 ^ 1u32)\nglobal.set p1 0i32 v0\nv0 = (v0 ^ 1u32)",
    );
    means(
        "let mut a = Phase::opposite(); let b = Phase::new(); out.set(a.parity(), { a = b; 1 });",
        "v0 = 1u32\nv1 = 0u32\nv2 = v0\nv0 = v1\nglobal.set p1 v2 1u32",
    );
}

#[test]
fn a_pipeline_is_stages_of_tiles_and_barriers() {
    means(
        &format!("{RING} ring.init(n); out.set(0, ring.len()); ring.invalidate();"),
        "l0: for v0 in 0u32..2u32 step 1usize\n  barrier.init s2[v0] 1u32\n  barrier.init s3[v0] p0\n\
         global.set p1 0i32 2u32\n\
         l1: for v1 in 0u32..2u32 step 1usize\n  barrier.invalidate s2[v1]\n  barrier.invalidate s3[v1]",
    );
}

#[test]
fn a_producer_waits_announces_and_goes_on() {
    means(
        &format!(
            "{RING} let mut p = ring.producer(); let slot = p.acquire(); map.load(slot.1, [0, 8], slot.barrier());"
        ),
        "v0 = 0u32\nv1 = 1u32\nv2 = v0\nbarrier.wait s3[v2] v1\n\
         v0 = (v0 + 1u32)\nif (v0 == 2u32)\n  v0 = 0u32\n  v1 = (v1 ^ 1u32)\n\
         barrier.arrive_expect_tx s2[v2] 320u32\nv3 = v2\ntma.load p2 [0i32, 8i32] s1[v3] s2[v3]",
    );
    means(
        &format!(
            "{RING} let mut p = ring.producer(); let empty = p.wait(); out.set(0, empty.stage()); let slot = empty.announce();"
        ),
        "v0 = 0u32\nv1 = 1u32\nv2 = v0\nbarrier.wait s3[v2] v1\n\
         v0 = (v0 + 1u32)\nif (v0 == 2u32)\n  v0 = 0u32\n  v1 = (v1 ^ 1u32)\n\
         v3 = v2\nglobal.set p1 0i32 v3\nbarrier.arrive_expect_tx s2[v3] 320u32\nv4 = v3",
    );
    means(
        &format!("{RING} let p = ring.producer(); if p.ready() {{}} p.drain();"),
        "v0 = 0u32\nv1 = 1u32\nv2 = barrier.test_wait s3[v0] v1\nif v2\nv3 = v0\nv4 = v1\n\
         l0: for v5 in 0u32..2u32 step 1usize\n  barrier.wait s3[v3] v4\n  v3 = (v3 + 1u32)\n  if (v3 == 2u32)\n    v3 = 0u32\n    v4 = (v4 ^ 1u32)",
    );
}

#[test]
fn a_consumer_waits_and_its_slot_is_released() {
    means(
        &format!(
            "{RING} let mut c = ring.consumer(); let slot = c.wait(); let x = slot.0.get([1, n]); slot.release();"
        ),
        "v0 = 0u32\nv1 = 0u32\nv2 = v0\nbarrier.wait s2[v2] v1\n\
         v0 = (v0 + 1u32)\nif (v0 == 2u32)\n  v0 = 0u32\n  v1 = (v1 ^ 1u32)\n\
         v3 = v2\nv4 = tile.get s0[v3] [1u32, p0]\nv5 = v4\nfence.proxy_async own\nbarrier.arrive s3[v3]",
    );
}

/// Returns for each release of a body, in order, whether it begins with a fence. The empty barriers
/// of `RING` are `s3`, of a second ring `s7`.
fn releases(body: &str) -> Vec<bool> {
    let items = "type A = Tile<f32, Shape2<2, 8>>; type B = Tile<f32, Shape2<8, 8>>;\n\
                 #[tma_device] fn first(slot: FullSlot<(A, B)>) -> f32 { let x = slot.0.get([0, 0]); slot.release(); x }\n\
                 #[tma_device] fn element(tile: B) -> f32 { tile.get([0, 0]) }\n\
                 #[tma_device] fn give(slot: FullSlot<(A, B)>) { slot.release() }";
    let text = module(items, &format!("{RING} {body}"));
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let is_release = |line: &str| line.contains("barrier.arrive s3") || line.contains("barrier.arrive s7");
    let places = (0..lines.len()).filter(|&at| is_release(lines[at]));
    places.map(|at| at > 0 && lines[at - 1] == "fence.proxy_async own").collect()
}

#[test]
fn a_release_begins_with_a_fence_where_threads_have_read() {
    let consumer = "let mut c = ring.consumer(); let slot = c.wait();";
    for (body, want) in [
        // Reads of either tile; in a loop; in a device function, or by one; through a variable.
        ("slot.1.get([0, 0]); slot.release();", true),
        ("for i in 0..8 { out.set(i as u32, slot.1.get([i, 0]) as u32); } slot.release();", true),
        ("first(slot);", true),
        ("element(slot.1); slot.release();", true),
        ("print_tile(slot.1); slot.release();", true),
        ("let tile = slot.1; element(tile); give(slot);", true),
        ("let mut kept = slot; kept.1.get([0, 0]); if n > 1 { kept.release(); kept = c.wait(); }", true),
        // A store reads through the other proxy, and a write has its fence at the store.
        ("map.store([0, 0], slot.1); slot.release();", false),
        ("slot.1.set([0, 0], 1.0); slot.release();", false),
        ("slot.release();", false),
        // A read that never executes.
        ("if false { slot.1.get([0, 0]); } slot.release();", false),
    ] {
        assert_eq!(releases(&format!("{consumer} {body}")), [want], "{body}");
    }
}

#[test]
fn each_slot_is_fenced_for_its_own_readers() {
    let two =
        "let mut a = ring.consumer(); let mut b = ring.consumer(); let one = a.wait(); let other = b.wait();";
    for (body, want) in [
        (
            "one.1.get([0, 0]); map.store([0, 0], other.1); one.release(); other.release();",
            &[true, false][..],
        ),
        // A release of another slot than the one that was read.
        ("one.1.get([0, 0]); other.release();", &[true]),
        ("if n > 0 { one.release(); } else { other.1.get([0, 0]); other.release(); }", &[false, true]),
    ] {
        assert_eq!(releases(&format!("{two} {body}")), want, "{body}");
    }
    // Slots of one consumer. If one variable keeps slots of two, each is released for both.
    let one_state = "let mut c = ring.consumer(); let one = c.wait(); let other = c.wait();";
    for (body, want) in [
        ("one.1.get([0, 0]); map.store([0, 0], other.1); one.release(); other.release();", [true, false]),
        ("other.1.get([0, 0]); let kept = other; one.release(); kept.release();", [false, true]),
        (
            "let mut kept = one; kept.1.get([0, 0]); kept.release(); kept = other; kept.release();",
            [true, true],
        ),
    ] {
        assert_eq!(releases(&format!("{one_state} {body}")), want, "{body}");
    }
    let other_ring = "let more: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared(); \
                      let mut a = ring.consumer(); let mut b = more.consumer(); let one = a.wait(); let other = b.wait();";
    let body = format!("{other_ring} other.0.get([0, 0]); one.release(); other.release();");
    assert_eq!(releases(&body), [false, true]);
}

#[test]
fn one_stage_has_only_a_parity() {
    means(
        "let ring: Pipeline<(Tile<f32, Shape2<8, 8>>,), 1> = shared(); let mut c = ring.consumer(); c.wait().release();",
        "v0 = 0u32\nv1 = 0u32\nv2 = v0\nbarrier.wait s1[v2] v1\nv1 = (v1 ^ 1u32)\nbarrier.arrive s2[v2]",
    );
}

#[test]
fn a_slot_is_kept_in_a_variable() {
    means(
        "let ring: Pipeline<(Tile<f32, Shape2<8, 8>>,), 1> = shared(); let mut c = ring.consumer(); let mut old = c.wait(); \
         old.release(); old = c.wait(); out.set(0, old.stage());",
        "v0 = 0u32\nv1 = 0u32\nv2 = v0\nbarrier.wait s1[v2] v1\nv1 = (v1 ^ 1u32)\nv3 = v2\nbarrier.arrive s2[v3]\n\
         v4 = v0\nbarrier.wait s1[v4] v1\nv1 = (v1 ^ 1u32)\nv3 = v4\nglobal.set p1 0i32 v3",
    );
}

#[test]
fn device_functions_take_states_and_pipelines() {
    let items = "type A = Tile<f32, Shape2<8, 8>>;\n\
                 #[tma_device] fn twice(c: &mut Consumer<(A,), 1>) { once(c); once(&mut *c) }\n\
                 #[tma_device] fn once(c: &mut Consumer<(A,), 1>) { give(c.wait()) }\n\
                 #[tma_device] fn give(slot: FullSlot<(A,)>) { slot.release() }\n\
                 #[tma_device] fn flip(phase: &mut Phase) { phase.flip(); *phase = Phase::new(); }\n\
                 #[tma_device] fn start(ring: Pipeline<(A,), 1>) { ring.init(1) }";
    let body = "let ring: Pipeline<(A,), 1> = shared(); start(ring); let mut c = ring.consumer(); twice(&mut c); \
                let mut phase = Phase::new(); flip(&mut phase);";
    let text = module(items, body);
    let count = |part: &str| text.matches(part).count();
    assert_eq!(
        (count("barrier.init"), count("barrier.wait s1"), count("barrier.arrive s2")),
        (2, 2, 2),
        "{text}"
    );
    let parity = |line: &&str| line.contains("= (v") && line.contains("^ 1u32)");
    let flipped: Vec<_> = text.lines().filter(parity).collect();
    assert_eq!(flipped.len(), 3, "{text}");
    assert_eq!(flipped[0], flipped[1], "both waits change the caller's state:\n{text}");
}
