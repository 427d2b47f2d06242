//! What an access costs, with the checks on order and without.

use std::time::Instant;

use super::*;

/// Nanoseconds of one of many stores and loads of a word, by all threads, with a barrier between.
fn nanoseconds(checks: Checks) -> f64 {
    const ROUNDS: u32 = if cfg!(debug_assertions) { 50 } else { 2000 };
    let mut lab = Lab::with(0, 1, checks, matrix);
    let site = lab.site();
    let start = Instant::now();
    for _ in 0..ROUNDS {
        for word in 0..16u32 {
            for who in all() {
                let at = u64::from(word * THREADS + who.thread.0) * 4;
                let _ = lab.machine.store(
                    Actor { who, site },
                    Pointer::new(Space::Shared, at),
                    &word.to_le_bytes(),
                    Order::Weak,
                );
            }
        }
        lab.sync();
        for word in 0..16u32 {
            for who in all() {
                let at = u64::from(word * THREADS + (who.thread.0 ^ 1)) * 4;
                let _ = lab.machine.load(
                    Actor { who, site },
                    Pointer::new(Space::Shared, at),
                    &mut [0; 4],
                    Order::Weak,
                );
            }
        }
        lab.sync();
    }
    let time = start.elapsed();
    assert!(lab.end().is_empty());
    time.as_secs_f64() * 1e9 / f64::from(ROUNDS * 32 * THREADS)
}

#[test]
fn checks_cost_a_small_factor() {
    let (with, without) = (nanoseconds(Checks::ALL), nanoseconds(Checks::NONE));
    eprintln!("an access to shared memory: {with:.1} ns with checks, {without:.1} ns without");
    assert!(with < 20_000.0, "{with} ns is not the cost of one access, but of something that grows");
}
