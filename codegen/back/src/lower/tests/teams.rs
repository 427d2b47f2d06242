//! Memory of the ranks of a team, in parameters.

use super::{body, has, has_not, ptx};

#[test]
fn a_team_kernel_has_tables_and_two_numbers() {
    let text = body(
        "x: Peers<Global<f32>>, m: Peers<TensorMap<Tile<f32, Shape2<8, 8>>>>, n: u16",
        "x.of(rank()).set(0, ranks() as f32);",
    );
    let params = [
        ".param .align 8 .b8 kernel_param_0[64]",
        ".param .u64 kernel_param_1",
        ".param .align 64 .b8 kernel_param_2[1024]",
        ".param .u16 kernel_param_3",
        ".param .u32 kernel_param_4",
        ".param .u32 kernel_param_5",
    ];
    let mut rest = text.as_str();
    for line in params {
        let at = rest.find(line).unwrap_or_else(|| panic!("no `{line}` in order in\n{text}"));
        rest = &rest[at + line.len()..];
    }
}

/// An index at run time makes no copy of the parameter.
#[test]
fn addresses_are_loaded_by_rank() {
    let text = body(
        "x: Peers<Global<f32>>, y: Peers<Global<f32>>, n: u32",
        "x.of(n).set(lane_idx(), y.of(n + 1).get(lane_idx()) + y.own().get(lane_idx()));",
    );
    has(&text, &["and.b32", "ld.param.b64 \t%rd", "ld.global.b32", "st.global.b32"]);
    has_not(&text, &[".local", "cvta.param", "ld.b64"]);
}

#[test]
fn maps_are_read_in_parameter_memory() {
    let text = ptx("#[tma_kernel(threads = 32)]
         pub fn kernel(m: Peers<TensorMap<Tile<f32, Shape2<8, 8>>>>, n: u32) {
             let t: Tile<f32, Shape2<8, 8>> = shared();
             let full: Barrier = shared();
             if thread_idx().x == 0 {
                 full.init(1);
                 fence_barrier_init();
                 full.arrive_expect_tx(t.bytes());
                 m.of(n).load(t, [0, 0], full);
                 full.wait(0);
                 m.own().reduce_add([0, 8], t);
                 bulk_commit_group();
                 bulk_wait_group_read::<0>();
             }
         }");
    has(&text, &["cvta.param.u64", "and.b32", ", 896;", "cp.reduce.async.bulk.tensor.2d.global"]);
    has_not(&text, &[".local"]);
}

#[test]
fn accesses_to_a_rank_have_system_scope() {
    let text = body(
        "x: Peers<Global<u32>>, f: Peers<Global<f32>>",
        "x.of(1).store(0, x.of(2).load(0, Order::Acquire, Scope::System), Order::Release, Scope::System);
         x.of(1).fetch_max(0, 3, Order::Relaxed, Scope::System);
         f.of(1).add_vec(0, [1.0f32; 4], Order::Relaxed, Scope::System);",
    );
    has(
        &text,
        &[
            "ld.acquire.sys.global.b32",
            "st.release.sys.global.b32",
            "atom.relaxed.sys.global.max.u32",
            "red.relaxed.sys.global.add.v4.f32",
        ],
    );
}

/// The check is that of the rank. This rank needs none.
#[test]
fn a_checked_kernel_tests_ranks() {
    let text = |access: &str| {
        ptx(&format!(
            "#[tma_kernel(threads = 32, checked)]\npub fn kernel(m: Peers<Global<f32>>, n: u32) {{ {access} }}"
        ))
    };
    let asserts = |text: &str| text.matches("call.uni __assertfail").count();
    assert!(asserts(&text("m.of(n).set(0, 1.0);")) > asserts(&text("m.own().set(0, 1.0);")));
}
