//! The whole grid, and the grids before and after it.

use super::{ir, means, refused};

#[test]
fn grids_synchronise_at_a_counter() {
    means("sync_grid(out);", "sync.grid p1");
    means("let counter = out; if n > 1 { sync_grid(counter); }", "if (p0 > 1u32)\n  sync.grid p1");
}

#[test]
fn grids_tell_the_next_and_wait_for_those_before() {
    means(
        "grid_dependency_launch(); grid_dependency_wait();",
        "grid_dependency.launch\ngrid_dependency.wait",
    );
}

#[test]
fn device_functions_take_the_counter_along() {
    let text = ir("#[tma_module] mod m {\n\
                   #[tma_device] fn meet(counter: Global<u32>) { sync_grid(counter); }\n\
                   #[tma_kernel(threads = 32)] fn k(n: u32, counter: Global<u32>) { meet(counter); }\n}");
    assert!(text.contains("sync.grid p1"), "{text}");
    assert!(text.contains("param p1 counter: Global<u32> written"), "{text}");
}

#[test]
fn counters_are_slices_of_u32() {
    let refusal = |call: &str| {
        refused(&format!("#[tma_kernel(threads = 32)] fn k(n: u32, sums: Global<f32>) {{ {call} }}"))
    };
    for (call, wanted) in [
        ("sync_grid(sums);", "TMA0102"),
        ("sync_grid(n);", "TMA0102"),
        ("sync_grid();", "TMA0104"),
        ("grid_dependency_wait(n);", "TMA0104"),
    ] {
        let text = refusal(call);
        assert!(text.starts_with(wanted), "{call}: {text}");
    }
}
