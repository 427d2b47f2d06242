//! Plain accesses that name their path through the caches.

use super::{body, has, has_not};

#[test]
fn accesses_carry_a_policy() {
    let text = body(
        "x: Global<f32>, h: Global<f16>, b: Global<u8>, d: Global<f64>, o: Global<f32>",
        "let p = l2_evict_first(1.0);
         o.hint(p).set(0, x.hint(p).get(1));
         o.hint(p).set_vec(4, x.hint(p).get_vec::<4>(8));
         h.hint(p).set(0, h.hint(p).get(1));
         h.hint(p).set_vec(8, h.hint(p).get_vec::<8>(16));
         b.hint(p).set(0, b.hint(p).get(1));
         b.hint(p).set_vec(2, b.hint(p).get_vec::<2>(4));
         d.hint(p).set_vec(2, d.hint(p).get_vec::<2>(4));",
    );
    let wanted = [
        "ld.global.L2::cache_hint.b32 ",
        "st.global.L2::cache_hint.b32 ",
        "ld.global.L2::cache_hint.v4.b32 ",
        "st.global.L2::cache_hint.v4.b32 ",
        "ld.global.L2::cache_hint.b16 ",
        "st.global.L2::cache_hint.b16 ",
        "ld.global.L2::cache_hint.b8 ",
        "st.global.L2::cache_hint.b8 ",
        "ld.global.L2::cache_hint.v2.b64 ",
        "st.global.L2::cache_hint.v2.b64 ",
    ];
    has(&text, &wanted);
    assert_eq!(text.matches("createpolicy").count(), 1, "{text}");
}

#[test]
fn loads_take_the_non_coherent_path() {
    let text = body(
        "x: Global<f32>, h: Global<f16>, o: Global<f32>, halves: Global<f16>",
        "let p = l2_evict_last(1.0);
         o.set(0, x.get_nc(1) + x.hint(p).get_nc(2));
         o.set_vec(4, x.get_vec_nc::<4>(8));
         halves.set_vec(0, h.hint(p).get_vec_nc::<4>(4));",
    );
    let wanted = [
        "ld.global.nc.b32 ",
        "ld.global.nc.L2::cache_hint.b32 ",
        "ld.global.nc.v4.b32 ",
        "ld.global.nc.L2::cache_hint.v2.b32 ",
        "st.global.v4.b32",
    ];
    has(&text, &wanted);
}

/// A plain load of memory that nothing writes may be merged with another, and become an invariant
/// load. A non-coherent one is repeated after the wait, and none is before it.
#[test]
fn non_coherent_loads_stay_after_a_wait_for_another_grid() {
    let text = body(
        "x: Global<f32>, o: Global<f32>",
        "let before = x.get_nc(0);
         grid_dependency_wait();
         o.set(0, before + x.get_nc(0));",
    );
    let (before, after) = text.split_once("griddepcontrol.wait").expect("a wait");
    for part in [before, after] {
        assert_eq!(part.matches("ld.global.nc").count(), 1, "{text}");
    }
}

#[test]
fn plain_accesses_name_no_path() {
    let text = body("x: Global<f32>, o: Global<f32>", "o.set(0, x.get(0));");
    has_not(&text, &["cache_hint", "createpolicy"]);
}
