//! From syntax to IR: names are resolved, types inferred, device functions inlined, constants evaluated.
//!
//! The language is a part of Rust, and a kernel's body is type-checked by rustc as well. What is inferred
//! here must therefore be what rustc infers; where a program is refused here that rustc takes, the error
//! says which form kernels do not have and what to write instead.

mod array;
pub(crate) mod attr;
mod call;
mod cluster;
mod compound;
mod condition;
mod constant;
mod control;
mod cx;
pub(crate) mod depth;
mod device;
mod expr;
pub(crate) mod file;
mod fold;
mod format;
mod infer;
pub(crate) mod item;
mod literal;
mod method;
mod order;
mod pipeline;
mod release;
mod rule;
mod scalar;
mod settle;
mod signature;
mod stmt;
mod suggest;
mod types;
mod wording;

use attr::InstanceAttr;
use cx::Cx;
use item::{KernelItem, Shared};

use crate::diag::{Code, Sink};
use crate::ir::{Kernel, Span};

/// Every instance of a kernel; of one with errors at least the signature is right, which its launcher is made of.
pub(crate) fn parse(item: &KernelItem, shared: &Shared, sink: &mut Sink) -> Vec<Kernel> {
    let attr = attr::parse(item.attr.clone(), sink);
    signature::judge(&item.function, &attr.instances, sink);
    if attr.instances.is_empty() {
        return parse_instance(item, shared, &attr, None, sink).into_iter().collect();
    }
    let parse_one = |instance| parse_instance(item, shared, &attr, Some(instance), sink);
    attr.instances.iter().filter_map(parse_one).collect()
}

fn parse_instance(
    item: &KernelItem,
    shared: &Shared,
    attr: &attr::KernelAttr,
    instance: Option<&InstanceAttr>,
    sink: &mut Sink,
) -> Option<Kernel> {
    let function = &item.function;
    let mut cx = Cx::new(shared, sink, &function.sig.ident.to_string());
    if !cx.bind_instance(function, instance) {
        return None;
    }
    let launch = cx.launch_bounds(function, attr);
    (cx.threads, cx.cluster) = (launch.threads, launch.cluster);
    cx.bind_params(function);
    let (mut body, value) = cx.block(|cx| cx.block_value(&function.block));
    if !cx.infer.unify(&value.ty, &crate::ir::Type::Unit, value.span) {
        cx.error(Code::Signature, value.span, "a kernel returns nothing")
            .help("end the last expression with `;`, and write results to global memory");
    }
    let (mut parts, sink) = cx.finish();
    settle::settle(&mut parts, &mut body, sink);
    release::fence_reads(&parts.rings, &mut body);
    Some(Kernel {
        name: function.sig.ident.to_string(),
        instance: instance.map(|instance| instance.name.to_string()),
        arguments: parts.arguments,
        launch,
        checked: attr.checked,
        params: parts.params,
        locals: parts.locals,
        shared: parts.shared,
        variables: parts.variables,
        body,
        span: Span::of(&function.sig.ident),
    })
}
