//! Deadlocks: what each group waits for, and what is missing.

use tma_front::ir::{Group, Stmt, StmtKind, Synchronization, Wait};

use super::barriers::MbarrierAddr;
use super::code::Op;
use super::finding::{Detail, Party, Rule, ThreadAct, Violation};
use super::memory::Site;
use super::run::{Run, Stop};
use super::state::Agent;
use super::value::Value;

/// The most other parties that a message names.
const MAX_OTHERS: usize = 3;

/// Returns the reason why no group can continue.
pub(super) fn explain(run: &mut Run<'_, '_>) -> Stop {
    let traps = |agent: &Agent| {
        let is_trap = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Trap);
        !agent.is_done && matches!(run.input.code.step(agent.at).op, Op::Do(stmt) if is_trap(stmt))
    };
    if run.state.agents.iter().any(traps) {
        return Stop::Discarded;
    }
    let mut waits = vec![];
    for agent in 0..run.state.agents.len() {
        if run.state.agents[agent].is_done {
            continue;
        }
        run.state.current = agent;
        if let Op::Do(stmt) = run.input.code.step(run.state.agents[agent].at).op {
            waits.push((run.site(stmt.id), detail(run, stmt), does(stmt)));
        }
    }
    let unbalanced = waits
        .iter()
        .find(|(_, detail, _)| matches!(detail, Detail::Barrier { state, .. } if state.pending == 0));
    let found = match unbalanced {
        Some((site, detail, does)) => bytes(run, *site, *does, detail.clone()),
        None => {
            let at_barrier =
                |(_, detail, _): &&(Site, Detail, ThreadAct)| matches!(detail, Detail::Barrier { .. });
            let first = waits.iter().find(at_barrier).or(waits.first());
            let Some((site, detail, does)) = first.cloned() else { return Stop::Discarded };
            let mut others: Vec<Party> = vec![];
            for (other, _, does) in &waits {
                let is_new =
                    other.stmt != site.stmt && others.iter().all(|known| known.site.stmt != other.stmt);
                if is_new && others.len() < MAX_OTHERS {
                    others.push(Party { site: *other, does: *does });
                }
            }
            others.extend(run.returned(None));
            if does == ThreadAct::WaitForGrid {
                others.extend(ended(run));
            }
            Violation { rule: Rule::Deadlock, at: Party { site, does }, others, detail }
        }
    };
    Stop::Violation(Box::new(found))
}

/// Returns the groups of threads that have reached the end of the kernel.
fn ended(run: &Run<'_, '_>) -> Vec<Party> {
    let returned: Vec<usize> = run.state.history.returned().map(|site| site.agent).collect();
    let all = run.state.agents.iter().enumerate();
    all.filter(|(agent, state)| state.is_done && !returned.contains(agent))
        .map(|(agent, _)| Party {
            site: Site { agent, stmt: run.last_stmt(), iteration: None },
            does: ThreadAct::EndElsewhere,
        })
        .collect()
}

/// Reports a phase that has all its arrivals and waits for bytes.
fn bytes(run: &mut Run<'_, '_>, waits: Site, does: ThreadAct, detail: Detail) -> Violation {
    let Detail::Barrier { block, at, state } = detail else {
        return Violation { rule: Rule::Deadlock, at: Party { site: waits, does }, others: vec![], detail };
    };
    if let Some((site, missing)) = run.missing_slices(MbarrierAddr { block, at }) {
        let detail = Detail::Slices { at, state, missing };
        let others = vec![Party { site: waits, does }];
        return Violation {
            rule: Rule::Bytes,
            at: Party { site, does: ThreadAct::LoadSlice },
            others,
            detail,
        };
    }
    let known = run.mbarrier(MbarrierAddr { block, at }).map(|mbarrier| (mbarrier.announced, mbarrier.load));
    let (announced, load) = known.unwrap_or((None, None));
    let mut others = vec![Party { site: waits, does }];
    others.extend(load.map(|(_, site)| Party { site, does: ThreadAct::IssueCopy }));
    let at = match announced {
        Some(site) => Party { site, does: ThreadAct::Announce },
        None => others.remove(0),
    };
    Violation { rule: Rule::Bytes, at, others, detail }
}

/// Returns the mbarrier that a group waits for, and its counts, if it waits for one.
fn detail(run: &mut Run<'_, '_>, stmt: &Stmt) -> Detail {
    if let StmtKind::Barrier { barrier, .. } = &stmt.kind
        && let Value::Address(addr) = run.value(barrier)
        && let (Some(block), Some(at)) = (addr.block.uniform(), addr.at.uniform())
    {
        return run.barrier_detail(MbarrierAddr { block, at });
    }
    Detail::Nothing
}

fn does(stmt: &Stmt) -> ThreadAct {
    let facts = stmt.facts();
    let Synchronization::Waits(wait) = facts.synchronization else { return ThreadAct::Wait };
    match wait {
        Wait::Phase => ThreadAct::WaitForBarrier,
        Wait::Token => ThreadAct::WaitForToken,
        Wait::Lanes => ThreadAct::WaitForLanes,
        Wait::Registers => ThreadAct::WaitForRegisters,
        Wait::Multiplications => ThreadAct::WaitForMultiplication,
        Wait::BulkGroups => ThreadAct::Wait,
        Wait::Threads => match facts.group {
            Some(Group::Block) => ThreadAct::WaitInThreads,
            Some(Group::Warp) => ThreadAct::WaitInWarp,
            Some(Group::Warpgroup) => ThreadAct::WaitInWarpgroup,
            Some(Group::Cluster) => ThreadAct::WaitForCluster,
            Some(Group::Named) => ThreadAct::WaitInNamed,
            Some(Group::Grid) => ThreadAct::WaitForGrid,
            Some(Group::TeamOf(_)) | None => ThreadAct::Wait,
        },
    }
}
