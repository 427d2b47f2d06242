//! Checks that the cost of an access does not grow with the number of earlier accesses: one more
//! iteration of a kernel allocates as much after ten iterations as after a thousand.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ptx_sim::{Checks, GlobalMemory, LaunchConfig, Module, launch};

/// The system's allocator with a counter per thread, since the test harness has threads of its own.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size() as u64);
        // SAFETY: the caller fulfils the contract of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the bytes allocated while each thread of a block of 64 writes a word and reads its
/// neighbour's, in `rounds` iterations with a barrier after each access.
fn allocated(rounds: u32, checks: Checks) -> u64 {
    let module = Module::load(&format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {{
            .reg .pred %p; .reg .b32 %r<9>;
            .shared .align 4 .b8 words[256];
            mov.u32 %r1, %tid.x;
            shl.b32 %r2, %r1, 2;
            xor.b32 %r3, %r2, 4;
            mov.u32 %r4, words;
            add.u32 %r2, %r2, %r4;
            add.u32 %r3, %r3, %r4;
            mov.u32 %r5, 0;
         AGAIN:
            st.shared.u32 [%r2], %r5;
            bar.sync 0;
            ld.shared.u32 %r6, [%r3];
            bar.sync 0;
            add.u32 %r5, %r5, 1;
            setp.lt.u32 %p, %r5, {rounds};
            @%p bra AGAIN;
            ret;
         }}"
    ))
    .expect("it loads");
    let config = LaunchConfig { block: [64, 1, 1], host_threads: 1, checks, ..LaunchConfig::default() };
    let before = ALLOCATED.get();
    let report = launch(&module, &mut GlobalMemory::default(), "k", &config, &[]).expect("it starts");
    assert!(report.findings.is_empty(), "{}", report.findings.render(&module.sources(|_| None)));
    ALLOCATED.get() - before
}

#[test]
fn a_round_costs_the_same_late_as_early() {
    // One-time allocations do not belong to any iteration.
    allocated(1, Checks::ALL);
    for checks in [Checks::NONE, Checks::ALL] {
        let [ten, hundred, thousand] = [10, 100, 1000].map(|rounds| allocated(rounds, checks));
        assert!(ten > 0, "another thread simulates");
        let (early, late) = ((hundred - ten) / 90, (thousand - hundred) / 900);
        println!("{checks:?}: {ten} bytes for ten rounds, then {early} and {late} a round");
        assert!(late <= early + 64, "{late} bytes a round after a hundred of {early}");
    }
}
