//! Races between unordered clusters, and scopes of atomic operations.

use super::{Placement, run};
use ptx_sim::FindingKind::{Race, ScopeTooNarrow};

#[test]
fn plain_writes_of_different_values_race() {
    for placement in [Placement::SeparateClusters, Placement::Cluster, Placement::Block] {
        run(placement, &["st.global.u32 [%x], 1;", "st.global.u32 [%x], 2;"]).always_found(Race);
        run(placement, &["st.global.u32 [%x], 1;", "ld.global.u32 %a, [%x];"]).always_found(Race);
        // The same holds in a kernel with strong accesses elsewhere.
        let strong = "red.global.add.u32 [%z], 1;";
        let second = format!("st.global.u32 [%x], 2; {strong}");
        run(placement, &["st.global.u32 [%x], 1;", &second]).always_found(Race);
    }
}

#[test]
fn neighbours_and_equal_values_do_not() {
    for strong in ["", "red.global.add.u32 [%z], 1;"] {
        for placement in [Placement::SeparateClusters, Placement::Cluster, Placement::Block] {
            let store = |at: &str| {
                format!("{strong} mov.b32 %r3, 7; cvt.u16.u32 %h1, %r3; st.global.u16 [%x+{at}], %h1;")
            };
            let store = |at: &str| format!("{{ .reg .b16 %h1; {} }}", store(at));
            run(placement, &[&store("0"), &store("2")]).clean();
            run(placement, &[&store("0"), &store("0")]).clean();
            run(placement, &["ld.global.u32 %a, [%x];", &format!("{strong} ld.global.u32 %a, [%x];")])
                .clean();
        }
    }
}

#[test]
fn atomic_operations_of_a_block_count_within_it() {
    let add = |scope: &str| format!("atom.relaxed.{scope}.global.add.u32 %a, [%x], 1;");
    for (placement, scope) in [
        (Placement::SeparateClusters, "gpu"),
        (Placement::Cluster, "cluster"),
        (Placement::Block, "cta"),
        (Placement::SeparateClusters, "sys"),
    ] {
        run(placement, &[&add(scope), &add(scope)]).clean().never(&[&[0], &[0]]);
    }
    for (placement, scope) in [
        (Placement::SeparateClusters, "cta"),
        (Placement::Cluster, "cta"),
        (Placement::SeparateClusters, "cluster"),
    ] {
        run(placement, &[&add(scope), &add(scope)]).always_found(ScopeTooNarrow);
    }
    run(Placement::SeparateClusters, &[&add("gpu"), "st.global.u32 [%x], 5;"]).always_found(Race);
}

/// Before the last store there may be one that a narrow scope excludes.
#[test]
fn a_narrow_scope_leaves_out_whoever_has_stored_before() {
    let own = "continue: atom.relaxed.gpu.global.cas.b32 %a, [%y], 1, 2; setp.ne.u32 %p2, %a, 1; @%p2 bra continue;\n\
               st.relaxed.cta.global.u32 [%z], 1;";
    let reader = |scope: &str| {
        format!(
            "wait: ld.relaxed.cta.global.u32 %a, [%z]; setp.ne.u32 %p2, %a, 1; @%p2 bra wait;\n\
             ld.relaxed.{scope}.global.u32 %b, [%y];"
        )
    };
    let add = "atom.relaxed.gpu.global.add.u32 %a, [%y], 1;";
    run(Placement::Pairs, &[add, "", own, &reader("gpu")]).clean();
    run(Placement::Pairs, &[add, "", own, &reader("cta")]).found(ScopeTooNarrow).always_found(ScopeTooNarrow);
}

/// PTX ISA, "Limitations on Mixed-size Data-races".
#[test]
fn strong_accesses_of_two_sizes_race() {
    let store = "mov.u64 %d3, 5; st.relaxed.gpu.global.u64 [%x], %d3;";
    for placement in [Placement::SeparateClusters, Placement::Cluster, Placement::Block] {
        let mixed = run(placement, &[store, "ld.relaxed.gpu.global.u32 %a, [%x+4];"]);
        mixed.found(Race).always_found(Race);
        assert!(mixed.text.contains("strong operations of 8 and of 4 bytes"), "{}", mixed.text);
        for other in ["red.relaxed.gpu.global.add.u32 [%x], 1;", "st.relaxed.gpu.global.u32 [%x], 5;"] {
            run(placement, &[store, other]).found(Race).always_found(Race);
        }
        run(placement, &[store, "ld.relaxed.gpu.global.u64 %d3, [%x];"]).clean();
        // If they are ordered, there is no race.
        let first = format!("{store} st.release.gpu.global.u32 [%y], 1;");
        let second = "wait: ld.acquire.gpu.global.u32 %b, [%y]; setp.eq.u32 %p2, %b, 0; @%p2 bra wait;\n\
                      ld.relaxed.gpu.global.u32 %a, [%x]; atom.relaxed.gpu.global.add.u32 %c, [%x], 1;";
        run(placement, &[&first, second]).clean().sometimes(&[&[], &[5, 1, 5]]);
    }
}

/// "Vector Data-types" and "Packed Data-types": an access is as many scalars as it has elements.
#[test]
fn elements_of_strong_vectors_have_sizes_of_their_own() {
    let store = "mov.u32 %r3, 1; st.relaxed.gpu.global.v2.u32 [%x], {%r3, %r3};";
    run(Placement::SeparateClusters, &[store, "ld.relaxed.gpu.global.u32 %a, [%x+4];"]).clean();
    run(Placement::SeparateClusters, &[store, "ld.relaxed.gpu.global.v2.u32 {%a, %b}, [%x];"])
        .clean()
        .sometimes(&[&[], &[0, 1]])
        .sometimes(&[&[], &[1, 1]]);
    run(Placement::SeparateClusters, &[store, "ld.relaxed.gpu.global.u64 %d3, [%x];"]).always_found(Race);
    let add = "mov.b32 %r3, 0; red.relaxed.gpu.global.add.noftz.f16x2 [%x], %r3;";
    let half = "{ .reg .b16 %h1; mov.b16 %h1, 0; red.relaxed.gpu.global.add.noftz.f16 [%x+2], %h1; }";
    run(Placement::SeparateClusters, &[add, half]).clean();
    run(Placement::SeparateClusters, &[add, "ld.relaxed.gpu.global.u32 %a, [%x];"]).clean();
    run(Placement::SeparateClusters, &[add, "ld.relaxed.gpu.global.u64 %d3, [%x];"]).always_found(Race);
}

#[test]
fn so_do_they_in_shared_memory() {
    let store = "mov.u64 %d3, 5; st.relaxed.cta.shared.u64 [tile], %d3;";
    let mixed = run(Placement::Block, &[store, "st.relaxed.cta.shared.u32 [tile+4], 0;"]);
    mixed.found(Race).always_found(Race);
    assert!(mixed.text.contains("strong operations of 8 and of 4 bytes"), "{}", mixed.text);
    let same = "mov.u64 %d3, 6; st.relaxed.cta.shared.u64 [tile], %d3; atom.relaxed.cta.shared.add.u64 %d3, [tile], %d3;";
    run(Placement::Block, &[store, same]).clean();
    let order = "atom.release.cta.shared.add.u64 %d3, [tile], %d3;";
    let first = format!("{store} {order} st.release.cta.global.u32 [%y], 1;");
    let second = "wait: ld.acquire.cta.global.u32 %b, [%y]; setp.eq.u32 %p2, %b, 0; @%p2 bra wait;\n\
                  ld.relaxed.cta.shared.u32 %a, [tile];";
    run(Placement::Block, &[&first, second]).clean().sometimes(&[&[], &[10]]);
}

/// PTX ISA, "Causality Order": for accesses to the same address, a write that a read observes
/// precedes everything after the read.
#[test]
fn a_strong_read_allows_a_later_weak_write() {
    let reset = |order: &str, scope: &str| {
        format!(
            "wait: ld.{order}.{scope}.global.u32 %a, [%x]; setp.ne.u32 %p2, %a, 1; @%p2 bra wait; \
             st.global.u32 [%x], 0;"
        )
    };
    for order in ["relaxed", "acquire"] {
        for store in ["relaxed", "release"] {
            let set = format!("st.{store}.gpu.global.u32 [%x], 1;");
            run(Placement::SeparateClusters, &[&set, &reset(order, "gpu")]).clean();
            run(Placement::Block, &[&set, &reset(order, "gpu")]).clean();
        }
    }
    // This does not hold if the scope of the read excludes the writer, nor for the writer's writes
    // to other addresses.
    run(Placement::SeparateClusters, &["st.relaxed.gpu.global.u32 [%x], 1;", &reset("relaxed", "cta")])
        .always_found(Race);
    let then = "ld.relaxed.gpu.global.u32 %a, [%x]; setp.eq.u32 %p2, %a, 1; @%p2 ld.global.u32 %b, [%y];";
    run(Placement::SeparateClusters, &["st.global.u32 [%y], 1; st.relaxed.gpu.global.u32 [%x], 1;", then])
        .found(Race);
}

/// A vector consists of scalars (PTX ISA, "Vector Data-types"), each written separately.
#[test]
fn a_thread_may_write_a_vector_whose_elements_it_has_read() {
    // A release between the two writes makes them different steps of their thread.
    let set = "st.relaxed.gpu.global.u32 [%x], 1; st.release.gpu.global.u32 [%z], 1; st.relaxed.gpu.global.u32 [%x+4], 1;";
    let wait = |at: &str, name: &str| {
        format!("{name}: ld.relaxed.gpu.global.u32 %a, [{at}]; setp.ne.u32 %p2, %a, 1; @%p2 bra {name};")
    };
    let (first, second) = (wait("%x", "first"), wait("%x+4", "second"));
    let reset = "st.global.v2.u32 [%x], {%b, %b};";
    run(Placement::SeparateClusters, &[set, &format!("{first} {second} {reset}")]).clean();
    for wait in [first, second] {
        run(Placement::SeparateClusters, &[set, &format!("{wait} {reset}")]).found(Race);
    }
}

#[test]
fn so_may_a_thread_in_shared_memory() {
    // The first thread writes a zero, and then signals that.
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
        run(Placement::Block, &[set, &wait(order)]).clean();
    }
    run(Placement::Block, &[set, &format!("{begin} st.shared.u32 [tile], 2;")]).found(Race);
}
