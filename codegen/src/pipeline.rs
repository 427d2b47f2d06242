//! The way of a kernel through the compiler, up to the point where host and device part.

use crate::check::protocol::{Budget, Verdict, judge, outline, with_missing_step};
use crate::check::{self, CheckedKernel, check};
use crate::diag::mistake::Limits;
use crate::diag::{Diagnostics, Sink};
use crate::ir::Kernel;
use crate::limits::INSTANCES_OPERATIONS;
use crate::parse::item::{KernelItem, ModuleItems};
use crate::parse::names::{self, WordUse};
use crate::parse::{InstanceAttr, Parsed};
use crate::quick::QuickSet;
use crate::{dump, hash, parse};

/// A kernel item taken as far as its errors allow.
#[derive(Debug)]
pub(crate) struct Front {
    /// The hash that names its PTX.
    pub(crate) hash: u64,
    /// What became of each instance.
    pub(crate) instances: Vec<Instance>,
    /// The instances as the attribute names them.
    pub(crate) named: Vec<InstanceAttr>,
    /// What is wrong with any of them, and what could be better.
    pub(crate) diagnostics: Diagnostics,
    /// What was taken for words of the vocabulary.
    pub(crate) words: Vec<WordUse>,
}

/// One instance of a kernel.
#[derive(Debug)]
pub(crate) enum Instance {
    /// It broke no rule.
    Checked(Box<CheckedKernel>),
    /// Only its signature is of use, to spare the user errors where it is launched.
    Refused(Box<Kernel>),
}

impl Instance {
    /// The kernel, whatever was found of it.
    pub(crate) fn kernel(&self) -> &Kernel {
        match self {
            Self::Checked(checked) => checked.kernel(),
            Self::Refused(kernel) => kernel,
        }
    }
}

/// How far a kernel is taken.
#[derive(Clone, Copy)]
pub(crate) enum Rules<'a> {
    /// By the rules for each of its statements: it may be a part of something.
    Statements,
    /// Its protocol of barriers is judged as well.
    Protocol,
    /// So it is, unless this says that the protocol of the instance, of a kernel with this hash, was
    /// judged before and is right.
    ProtocolUnless(&'a dyn Fn(&Kernel, u64) -> bool),
}

/// Parses and checks a kernel. Each stage tells all its errors; no kernel with one goes on to the
/// next.
pub(crate) fn front(item: &KernelItem, shared: &ModuleItems, rules: Rules<'_>) -> Front {
    let hash = hash::kernel(item, shared);
    let mut sink = Sink::default();
    let Parsed { kernels, instances: named, words } = parse::parse(item, shared, &mut sink);
    sink.enter(None);
    names::judge_imports(&words, shared, &mut sink);
    let sound = sink.is_empty();
    let (mut right, mut operations) = (QuickSet::default(), 0);
    let instances = kernels.into_iter().map(|kernel| {
        dump::ir(&kernel);
        if operations > INSTANCES_OPERATIONS {
            return Instance::Refused(Box::new(kernel));
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
    check::unused(&checked(&instances), &mut sink);
    Front { hash, instances, named, diagnostics: sink.into_diagnostics(), words }
}

/// Whether an instance makes a kernel larger than all of its instances may be; counts its
/// operations.
fn is_too_much(checked: &CheckedKernel, operations: &mut u64) -> bool {
    *operations = operations.saturating_add(checked.operations());
    *operations > INSTANCES_OPERATIONS
}

/// Whether the protocol of a kernel with this hash is to be judged.
fn is_judged(checked: &CheckedKernel, hash: u64, rules: Rules<'_>) -> bool {
    let is_wanted = match rules {
        Rules::Statements => false,
        Rules::Protocol => true,
        Rules::ProtocolUnless(is_known) => !is_known(checked.kernel(), hash),
    };
    is_wanted && checked.kernel().trusted.is_none()
}

/// The kernel, unless its protocol is broken, which is reported. That of instances with one of the
/// outlines in `right` is not.
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

/// The instances, if none of them was refused.
fn checked(instances: &[Instance]) -> Vec<&CheckedKernel> {
    let checked = instances.iter().map(|instance| match instance {
        Instance::Checked(checked) => Some(&**checked),
        Instance::Refused(_) => None,
    });
    checked.collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::item::file;

    /// Nobody arrives.
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
        let (item, shared) = file::kernels_in(STUCK, &crate::library::left).pop().expect("the kernel");
        front(&item, &shared, rules).diagnostics.errors.len()
    }

    #[test]
    fn a_protocol_is_judged_unless_it_was_before() {
        assert_eq!(errors(Rules::Protocol), 1);
        assert_eq!(errors(Rules::ProtocolUnless(&|_, _| false)), 1);
        assert_eq!(errors(Rules::ProtocolUnless(&|kernel, _| kernel.name == "stuck")), 0);
        assert_eq!(errors(Rules::Statements), 0);
    }
}
