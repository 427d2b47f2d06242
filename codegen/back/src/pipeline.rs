//! The stages of the compiler that host and device code share.

use tma_front::check::{self, CheckedKernel, check, layout};
use tma_front::diag::mistake::Limits;
use tma_front::diag::{Diagnostics, Sink};
use tma_front::ir::Kernel;
use tma_front::limits::INSTANCES_OPERATIONS;
use tma_front::parse::item::{KernelItem, ModuleItems};
use tma_front::parse::names::{self, WordUse};
use tma_front::parse::{self, InstanceAttr, Parsed};
use tma_front::quick::QuickSet;
use tma_protocol::{Budget, Verdict, judge, outline, with_missing_step};

use crate::{dump, hash};

/// A kernel item, processed as far as its errors allow.
#[derive(Debug)]
pub(crate) struct Front {
    /// The hash in the name of its PTX file.
    pub(crate) hash: u64,
    /// The result for each instance.
    pub(crate) instances: Vec<Instance>,
    /// The instances as the attribute declares them.
    pub(crate) named: Vec<InstanceAttr>,
    /// The generics that the attribute computes from others.
    pub(crate) computed: Vec<String>,
    /// The errors and warnings of all instances.
    pub(crate) diagnostics: Diagnostics,
    /// The built-in names that the kernel uses.
    pub(crate) words: Vec<WordUse>,
}

/// One instance of a kernel.
#[derive(Debug)]
pub(crate) enum Instance {
    /// An instance without errors.
    Checked(Box<CheckedKernel>),
    /// An instance that was accepted before and is not checked again, with the bytes of its shared
    /// memory.
    Known(Box<Kernel>, u32),
    /// An instance with errors. Its signature still serves to check its launches.
    Refused(Box<Kernel>),
}

impl Instance {
    /// Returns the kernel, with or without errors.
    pub(crate) fn kernel(&self) -> &Kernel {
        match self {
            Self::Checked(checked) => checked.kernel(),
            Self::Known(kernel, _) | Self::Refused(kernel) => kernel,
        }
    }
}

/// The checks to perform on a kernel.
#[derive(Clone, Copy)]
pub(crate) enum Rules<'a> {
    /// The rules for single statements. The kernel may be incomplete.
    Statements,
    /// In addition, the check of the barrier protocol.
    Protocol,
    /// Like `Protocol`, unless this function returns that the protocol of the instance, of a kernel
    /// with this hash, is known to be correct.
    ProtocolUnless(&'a dyn Fn(&Kernel, u64) -> bool),
    /// Like `Protocol`, unless this function returns that every instance, of a kernel with this
    /// hash, is known to break no rule at all.
    Unless(&'a dyn Fn(&Kernel, u64) -> bool),
}

/// Parses and checks a kernel. Each stage reports all its errors, and a kernel with errors does not
/// reach the next stage.
pub(crate) fn front(item: &KernelItem, shared: &ModuleItems, rules: Rules<'_>) -> Front {
    let hash = hash::kernel(item, shared);
    let mut sink = Sink::default();
    let Parsed { kernels, instances: named, computed, words } = parse::parse(item, shared, &mut sink);
    sink.enter(None);
    names::judge_imports(&words, shared, &mut sink);
    let sound = sink.is_empty();
    let (mut right, mut operations) = (QuickSet::default(), 0);
    // Instances share a limit: all of them are known, or all are checked.
    let are_known = match rules {
        Rules::Unless(is_known) => sound && kernels.iter().all(|kernel| is_known(kernel, hash)),
        Rules::Statements | Rules::Protocol | Rules::ProtocolUnless(_) => false,
    };
    let instances = kernels.into_iter().map(|kernel| {
        dump::ir(&kernel);
        if operations > INSTANCES_OPERATIONS {
            return Instance::Refused(Box::new(kernel));
        }
        if are_known {
            let bytes = layout::lay_out(&kernel, &mut sink).bytes();
            return Instance::Known(Box::new(kernel), bytes);
        }
        sink.enter(kernel.instance.as_deref());
        match if sound { check(kernel, &mut sink) } else { Err(Box::new(kernel)) } {
            Ok(checked) if is_too_much(&checked, &mut operations) => {
                sink.enter(None);
                let kernel = checked.into_kernel();
                sink.error(Limits::InstancesSize { kernel: kernel.name.clone(), operations }, kernel.span);
                Instance::Refused(Box::new(kernel))
            }
            Ok(checked) if is_judged(&checked, hash, rules) => keeps_protocol(checked, &mut right, &mut sink),
            Ok(checked) => Instance::Checked(checked),
            Err(kernel) => Instance::Refused(kernel),
        }
    });
    let instances: Vec<_> = instances.collect();
    sink.enter(None);
    check::warn(&checked(&instances), &mut sink);
    Front { hash, instances, named, computed, diagnostics: sink.into_diagnostics(), words }
}

/// Counts an instance's operations, and returns whether the sum exceeds the limit for all instances
/// of a kernel.
fn is_too_much(checked: &CheckedKernel, operations: &mut u64) -> bool {
    *operations = operations.saturating_add(checked.operations());
    *operations > INSTANCES_OPERATIONS
}

/// Whether to check the protocol of a kernel with this hash.
fn is_judged(checked: &CheckedKernel, hash: u64, rules: Rules<'_>) -> bool {
    let is_wanted = match rules {
        Rules::Statements => false,
        Rules::Protocol | Rules::Unless(_) => true,
        Rules::ProtocolUnless(is_known) => !is_known(checked.kernel(), hash),
    };
    is_wanted && checked.kernel().trusted.is_none()
}

/// Checks the protocol of a kernel and reports an error in it. Skips the check if the outline is in
/// `right`.
fn keeps_protocol(checked: Box<CheckedKernel>, right: &mut QuickSet<String>, sink: &mut Sink) -> Instance {
    let outline = outline(checked.kernel());
    if right.contains(&outline) {
        return Instance::Checked(checked);
    }
    let Verdict::Broken(diagnostic) = judge(&checked, Budget::MACRO).verdict else {
        right.insert(outline);
        return Instance::Checked(checked);
    };
    sink.push(*with_missing_step(&checked, diagnostic, Budget::MACRO));
    Instance::Refused(Box::new(checked.into_kernel()))
}

/// Returns the instances, or none if any of them was rejected or not checked.
fn checked(instances: &[Instance]) -> Vec<&CheckedKernel> {
    let checked = instances.iter().map(|instance| match instance {
        Instance::Checked(checked) => Some(&**checked),
        Instance::Known(..) | Instance::Refused(_) => None,
    });
    checked.collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma_front::parse::item::file;

    /// No thread arrives.
    const STUCK: &str = "
        #[tma_kernel(threads = 32)]
        fn stuck() {
            let bar: Barrier = shared();
            if thread_idx().x == 0 {
                bar.init(1);
                fence_barrier_init();
            }
            sync_threads();
            bar.wait(0);
        }";

    fn errors(rules: Rules<'_>) -> usize {
        let (item, shared) = file::kernels_in(STUCK, &crate::templates::LEFT).pop().expect("the kernel");
        front(&item, &shared, rules).diagnostics.errors.len()
    }

    #[test]
    fn a_known_kernel_has_the_shared_memory_of_a_checked_one() {
        let text =
            STUCK.replace("let bar", "let row: SharedArray<u32, 64> = shared(); row.set(0, 1); let bar");
        let (item, shared) = file::kernels_in(&text, &crate::templates::LEFT).pop().expect("the kernel");
        let first = |rules| front(&item, &shared, rules).instances.remove(0);
        let Instance::Checked(checked) = first(Rules::Statements) else { panic!("it breaks no rule") };
        assert!(checked.layout().bytes() >= 256);
        let known = first(Rules::Unless(&|_, _| true));
        assert!(matches!(known, Instance::Known(_, bytes) if bytes == checked.layout().bytes()), "{known:?}");
    }

    #[test]
    fn a_protocol_is_judged_unless_it_was_before() {
        assert_eq!(errors(Rules::Protocol), 1);
        assert_eq!(errors(Rules::ProtocolUnless(&|_, _| false)), 1);
        assert_eq!(errors(Rules::ProtocolUnless(&|kernel, _| kernel.name == "stuck")), 0);
        assert_eq!(errors(Rules::Statements), 0);
        assert_eq!(errors(Rules::Unless(&|_, _| false)), 1);
        assert_eq!(errors(Rules::Unless(&|kernel, _| kernel.name == "stuck")), 0);
    }
}
