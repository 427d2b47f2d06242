//! From syntax to IR: resolves names, infers types, inlines device functions and evaluates
//! constants.
//!
//! The language is a subset of Rust, and rustc type-checks a kernel's body as well. The types
//! inferred here must therefore be those that rustc infers. If a program that rustc accepts is
//! rejected here, the error names the unsupported form and what to write instead.

mod aggregate;
mod arguments;
mod array;
mod call;
mod cluster;
mod compound;
mod constant;
mod control;
mod cx;
mod device;
mod expr;
mod for_loop;
mod format;
mod instances;
pub mod item;
mod literal;
mod method;
pub mod names;
mod number;
mod order;
mod ptx;
mod release;
mod shared;
mod signature;
mod span;
mod stmt;
mod types;
mod warp;

pub use instances::{InstanceAttr, snake};

use cx::Cx;
use item::attr;
use item::{KernelItem, ModuleItems};
use names::WordUse;

use crate::diag::Sink;
use crate::diag::mistake::Signature;
use crate::infer::settle::{self, Typed};
use crate::ir::{Kernel, Span, visit};

/// Parses every instance of a kernel. A kernel with errors still has a correct signature, from
/// which its launcher is generated.
pub fn parse(item: &KernelItem, shared: &ModuleItems, sink: &mut Sink) -> Parsed {
    let attr = attr::parse(item.attr.clone(), sink);
    signature::judge(&item.function, sink);
    let mut parsed = Parsed::default();
    let Some(instances) = instances::expand(&item.function, &attr.instances, sink) else { return parsed };
    signature::judge_instances(&item.function, &instances, sink);
    if instances.is_empty() {
        parse_instance(item, shared, &attr, None, sink, &mut parsed);
    }
    for instance in &instances {
        parse_instance(item, shared, &attr, Some(instance), sink, &mut parsed);
    }
    parsed.instances = instances;
    parsed.computed =
        instances::computed(&attr.instances).map(|computed| computed.generic.to_string()).collect();
    parsed
}

/// The parsed instances of a kernel item.
#[derive(Debug, Default)]
pub struct Parsed {
    /// One kernel for each instance.
    pub kernels: Vec<Kernel>,
    /// The instances as the attribute declares them.
    pub instances: Vec<InstanceAttr>,
    /// The generics that the attribute computes from others.
    pub computed: Vec<String>,
    /// The built-in names that any instance uses.
    pub words: Vec<WordUse>,
}

fn parse_instance(
    item: &KernelItem,
    shared: &ModuleItems,
    attr: &attr::KernelAttr,
    instance: Option<&InstanceAttr>,
    sink: &mut Sink,
    parsed: &mut Parsed,
) {
    let function = &item.function;
    let instance_name = instance.map(|instance| instance.name.to_string());
    sink.enter(instance_name.as_deref());
    let mut cx = Cx::new(shared, sink, function);
    if !cx.bind_instance(function, instance) {
        return;
    }
    let launch = cx.launch_bounds(function, attr);
    (cx.instance.threads, cx.instance.cluster) = (launch.threads, launch.cluster);
    let (mut body, value) = cx.block(|cx| {
        cx.bind_params(function);
        cx.block_value(&function.block)
    });
    if !cx.infer.unify(&value.ty, &crate::ir::Type::Unit, value.span) {
        cx.error(Signature::Tail, value.span);
    }
    cx.declared.join_own();
    let (mut parts, sink) = cx.finish();
    let (locals, variables) = (&mut parts.locals, &mut parts.variables);
    settle::settle(parts.infer, Typed { locals, variables, body: &mut body }, sink);
    release::fence_reads(&parts.pipelines, &mut body);
    visit::number(&mut body);
    for word in parts.words.drain(..) {
        names::note(&mut parsed.words, word);
    }
    parsed.kernels.push(Kernel {
        name: function.sig.ident.to_string(),
        instance: instance_name,
        arguments: parts.arguments,
        launch,
        checked: attr.checked,
        trusted: attr.trusted.clone(),
        local_arrays: attr.local_arrays,
        params: parts.params,
        locals: parts.locals,
        shared: parts.shared,
        pipelines: parts.pipelines,
        calls: parts.calls,
        variables: parts.variables,
        body,
        span: Span::of(&function.sig.ident),
    });
}
