//! The ordering that the completion of a phase establishes. Each rule is tested with its opposite.

use tma_model::sync::{Acquirer, Component, Epoch, Issue, PhaseOrder, Scope, View, Wait};

/// The component of the mbarrier itself.
const MBARRIER: Component = Component::new(9);

fn view(agent: u32) -> View {
    View::new(Component::new(agent), true)
}

fn wait(order: &mut PhaseOrder<u32>, view: &mut View, scope: Scope) {
    let step = view.epoch();
    Acquirer::default().acquire(view, order.completed(scope));
    order.note_wait(Wait { step, site: 7 });
}

#[test]
fn whoever_sees_a_phase_complete_follows_its_arrivals() {
    for arrives in [true, false] {
        let (mut order, mut producer, mut consumer) = (PhaseOrder::<u32>::default(), view(0), view(1));
        let written = producer.epoch();
        if arrives {
            order.arrivals(true, Scope::Block).release(&mut producer);
        }
        order.complete(Epoch::new(MBARRIER, 1));
        wait(&mut order, &mut consumer, Scope::Block);
        assert_eq!(consumer.follows(written), arrives);
        assert!(consumer.follows(Epoch::new(MBARRIER, 1)), "it knows of the phase itself");
        assert!(!consumer.follows(producer.epoch()) || !arrives, "and not of what follows the arrival");
    }
}

#[test]
fn another_blocks_writes_are_seen_within_the_scope_of_the_cluster_alone() {
    for (arrival, wait_scope, seen) in [
        (Scope::Cluster, Scope::Cluster, true),
        (Scope::Cluster, Scope::Block, false),
        (Scope::Block, Scope::Cluster, false),
        (Scope::Block, Scope::Block, false),
    ] {
        let (mut order, mut producer, mut consumer) = (PhaseOrder::<u32>::default(), view(0), view(1));
        let written = producer.epoch();
        order.arrivals(false, arrival).release(&mut producer);
        order.complete(Epoch::new(MBARRIER, 1));
        wait(&mut order, &mut consumer, wait_scope);
        assert_eq!(consumer.follows(written), seen, "{arrival:?}, {wait_scope:?}");
        assert!(consumer.knows_complete(written), "that it is over is told in any case");
    }
}

#[test]
fn a_wait_is_overrun_unless_the_next_completion_knows_of_it() {
    for arrives in [true, false] {
        let (mut order, mut waiter) = (PhaseOrder::default(), view(0));
        order.complete(Epoch::new(MBARRIER, 1));
        wait(&mut order, &mut waiter, Scope::Block);
        if arrives {
            order.arrivals(true, Scope::Block).release(&mut waiter);
        }
        order.complete(Epoch::new(MBARRIER, 2));
        assert_eq!(order.take_overrun().map(|wait| wait.site), (!arrives).then_some(7));
        assert_eq!(order.take_overrun(), None, "told once");
    }
}

#[test]
fn a_copy_orders_earlier_waits_but_no_memory() {
    let (mut order, mut waiter, mut reader) = (PhaseOrder::default(), view(0), view(1));
    order.complete(Epoch::new(MBARRIER, 1));
    let step = waiter.epoch();
    wait(&mut order, &mut waiter, Scope::Block);
    order.note_issue(&Issue::of(&waiter, step.count()));
    order.complete(Epoch::new(MBARRIER, 2));
    assert_eq!(order.take_overrun(), None);
    wait(&mut order, &mut reader, Scope::Block);
    assert!(!reader.knows_complete(step) && reader.knows().past().knows(step));
}
