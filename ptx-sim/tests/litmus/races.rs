//! Races of clusters that nothing orders, and scopes of atomic operations.

use super::{Place, run};
use ptx_sim::FindingKind::{Race, ScopeTooNarrow};

#[test]
fn plain_writes_of_different_values_race() {
    for place in [Place::Apart, Place::Cluster, Place::Block] {
        run(place, &["st.global.u32 [%x], 1;", "st.global.u32 [%x], 2;"]).always_found(Race);
        run(place, &["st.global.u32 [%x], 1;", "ld.global.u32 %a, [%x];"]).always_found(Race);
        // Also in a kernel with strong accesses elsewhere.
        let strong = "red.global.add.u32 [%z], 1;";
        let second = format!("st.global.u32 [%x], 2; {strong}");
        run(place, &["st.global.u32 [%x], 1;", &second]).always_found(Race);
    }
}

#[test]
fn neighbours_and_equal_values_do_not() {
    for strong in ["", "red.global.add.u32 [%z], 1;"] {
        for place in [Place::Apart, Place::Cluster, Place::Block] {
            let store = |at: &str| {
                format!("{strong} mov.b32 %r3, 7; cvt.u16.u32 %h1, %r3; st.global.u16 [%x+{at}], %h1;")
            };
            let store = |at: &str| format!("{{ .reg .b16 %h1; {} }}", store(at));
            run(place, &[&store("0"), &store("2")]).clean();
            run(place, &[&store("0"), &store("0")]).clean();
            run(place, &["ld.global.u32 %a, [%x];", &format!("{strong} ld.global.u32 %a, [%x];")]).clean();
        }
    }
}

#[test]
fn atomic_operations_of_a_block_count_within_it() {
    let add = |scope: &str| format!("atom.relaxed.{scope}.global.add.u32 %a, [%x], 1;");
    for (place, scope) in
        [(Place::Apart, "gpu"), (Place::Cluster, "cluster"), (Place::Block, "cta"), (Place::Apart, "sys")]
    {
        run(place, &[&add(scope), &add(scope)]).clean().never(&[&[0], &[0]]);
    }
    for (place, scope) in [(Place::Apart, "cta"), (Place::Cluster, "cta"), (Place::Apart, "cluster")] {
        run(place, &[&add(scope), &add(scope)]).always_found(ScopeTooNarrow);
    }
    run(Place::Apart, &[&add("gpu"), "st.global.u32 [%x], 5;"]).always_found(Race);
}

/// PTX ISA, "Causality Order": a write that a read observes comes before what follows the read, as
/// far as accesses to the same address are concerned.
#[test]
fn a_thread_may_write_weakly_what_it_has_read_strongly() {
    let reset = |order: &str, scope: &str| {
        format!(
            "wait: ld.{order}.{scope}.global.u32 %a, [%x]; setp.ne.u32 %p2, %a, 1; @%p2 bra wait; \
             st.global.u32 [%x], 0;"
        )
    };
    for order in ["relaxed", "acquire"] {
        for store in ["relaxed", "release"] {
            let set = format!("st.{store}.gpu.global.u32 [%x], 1;");
            run(Place::Apart, &[&set, &reset(order, "gpu")]).clean();
            run(Place::Block, &[&set, &reset(order, "gpu")]).clean();
        }
    }
    // Not where the scope of the read leaves out who wrote, nor what it wrote elsewhere.
    run(Place::Apart, &["st.relaxed.gpu.global.u32 [%x], 1;", &reset("relaxed", "cta")]).always_found(Race);
    let then = "ld.relaxed.gpu.global.u32 %a, [%x]; setp.eq.u32 %p2, %a, 1; @%p2 ld.global.u32 %b, [%y];";
    run(Place::Apart, &["st.global.u32 [%y], 1; st.relaxed.gpu.global.u32 [%x], 1;", then]).found(Race);
}

/// A vector consists of scalars (PTX ISA, "Vector Data-types"), each with a write of its own.
#[test]
fn a_thread_may_write_a_vector_whose_elements_it_has_read() {
    let set = "st.relaxed.gpu.global.u32 [%x], 1; st.relaxed.gpu.global.u32 [%x+4], 1;";
    let wait = |at: &str, name: &str| {
        format!("{name}: ld.relaxed.gpu.global.u32 %a, [{at}]; setp.ne.u32 %p2, %a, 1; @%p2 bra {name};")
    };
    let (first, second) = (wait("%x", "first"), wait("%x+4", "second"));
    let reset = "st.global.v2.u32 [%x], {%b, %b};";
    run(Place::Apart, &[set, &format!("{first} {second} {reset}")]).clean();
    for wait in [first, second] {
        run(Place::Apart, &[set, &format!("{wait} {reset}")]).found(Race);
    }
}

#[test]
fn so_may_a_thread_in_shared_memory() {
    // The first thread writes a zero, and says so.
    let set =
        "st.shared.u32 [tile], 0; st.release.cta.global.u32 [%y], 1; st.relaxed.cta.shared.u32 [tile], 1;";
    let begin = "begin: ld.acquire.cta.global.u32 %b, [%y]; setp.eq.u32 %p2, %b, 0; @%p2 bra begin;";
    let wait = |order: &str| {
        format!(
            "{begin} wait: ld.{order}.cta.shared.u32 %a, [tile]; setp.ne.u32 %p2, %a, 1; @%p2 bra wait; \
             st.shared.u32 [tile], 0;"
        )
    };
    for order in ["relaxed", "acquire"] {
        run(Place::Block, &[set, &wait(order)]).clean();
    }
    run(Place::Block, &[set, &format!("{begin} st.shared.u32 [tile], 2;")]).found(Race);
}
