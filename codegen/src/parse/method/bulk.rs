//! Bulk copies: methods of slices of global memory that move many elements at once.

use super::Args;
use crate::diag::Code;
use crate::ir::{
    BulkCopy, CopyKind, Expr, Multicast, ParamId, ReduceOp, RemoteCopy, Scalar, SharedRange, Span, StmtKind,
    Type,
};
use crate::parse::cx::Cx;
use crate::parse::stmt::unit;

impl Cx<'_> {
    /// The method `bulk_` and `name`; none if there is no such method.
    pub(super) fn bulk_method(
        &mut self,
        global: ParamId,
        hint: Option<Expr>,
        element: Scalar,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        let parts = match name {
            "load" => self.exactly("bulk_load", args, span).and_then(|[array, at, count, index, barrier]| {
                self.bulk_load(element, [array, at, count, index, barrier], None)
            }),
            "load_multicast" => self
                .exactly("bulk_load_multicast", args, span)
                .filter(|[_, _, _, _, _, mask]| self.expect(mask, &Scalar::U16.into()))
                .and_then(|[array, at, count, index, barrier, mask]| {
                    self.bulk_load(element, [array, at, count, index, barrier], Some(mask))
                }),
            "store" => self
                .bulk_out("bulk_store", element, args, span)
                .map(|(index, count, from)| (index, count, CopyKind::Store { from })),
            "prefetch" => self
                .exactly("bulk_prefetch", args, span)
                .filter(|[index, count]| self.expect_global_index(index) & self.expect_count(count))
                .map(|[index, count]| (index, count, CopyKind::Prefetch)),
            _ => {
                let with = name.strip_prefix("reduce_")?;
                let op = ReduceOp::ALL.into_iter().find(|op| op.name() == with)?;
                self.bulk_reduce(op, element, args, span)
            }
        };
        if let Some((index, count, kind)) = parts {
            let param = &mut self.params[global.0 as usize];
            param.written |= kind.writes();
            // A prefetch is a hint: it rounds the address down by itself.
            param.copied |= kind.shared().is_some();
            self.emit(StmtKind::BulkCopy(Box::new(BulkCopy { global, index, count, hint, kind })), span);
        }
        Some(unit(span))
    }

    fn bulk_load(
        &mut self,
        element: Scalar,
        [array, at, count, index, barrier]: [Expr; 5],
        mask: Option<Expr>,
    ) -> Option<(Expr, Expr, CopyKind<SharedRange>)> {
        let fits = self.expect_sequence(&array, element)
            & self.expect_count(&at)
            & self.expect_count(&count)
            & self.expect_global_index(&index)
            & self.expect(&barrier, &Type::Barrier);
        let (to, multicast) = (SharedRange { array, at }, mask.map(|mask| Multicast::Mask(Box::new(mask))));
        fits.then_some((index, count, CopyKind::Load { to, barrier, multicast }))
    }

    /// Copies of shared memory to another block's: `bulk_copy_to` and `bulk_reduce_.._to`. None if there is no such method.
    pub(super) fn bulk_remote(&mut self, from: Expr, name: &str, args: &Args, span: Span) -> Option<Expr> {
        let op = match name.strip_prefix("bulk_reduce_").and_then(|name| name.strip_suffix("_to")) {
            Some(with) => Some(ReduceOp::ALL.into_iter().find(|op| op.name() == with)?),
            None if name == "bulk_copy_to" => None,
            None => return None,
        };
        let Some([to, at, count, barrier]) = self.exactly(name, args, span) else {
            return Some(Expr::error(span));
        };
        let element = match &from.ty {
            Type::Tile(tile) => tile.element,
            Type::SharedArray(element, _) => *element,
            _ => return None,
        };
        let fits = self.expect_sequence(&from, element)
            & self.expect_remote_sequence(&to, element)
            & self.expect_count(&at)
            & self.expect_count(&count)
            & self.expect(&barrier, &Type::Remote(Box::new(Type::Barrier)));
        if fits && op.is_none_or(|op| self.expect_reduction(op, name, element, ReduceOp::takes_remote, span))
        {
            let copy = RemoteCopy { op, from, to, at, count, barrier };
            self.emit(StmtKind::RemoteCopy(Box::new(copy)), span);
        }
        Some(unit(span))
    }

    /// Another block's shared memory whose elements lie one after the other.
    fn expect_remote_sequence(&mut self, to: &Expr, element: Scalar) -> bool {
        match self.resolve(&to.ty) {
            Type::Remote(thing) => {
                let thing = Expr { ty: *thing, ..to.clone() };
                self.expect_sequence(&thing, element)
            }
            Type::Error => true,
            other => {
                let message =
                    format!("this is {}, but another block's memory is wanted", self.infer.name(&other));
                self.error(Code::TypeMismatch, to.span, message).help("write `remote(array, rank)`");
                false
            }
        }
    }

    fn expect_reduction(
        &mut self,
        op: ReduceOp,
        name: &str,
        element: Scalar,
        reduces: fn(ReduceOp, Scalar) -> bool,
        span: Span,
    ) -> bool {
        if reduces(op, element) {
            return true;
        }
        let message = format!("the copy engine has no `{name}` of elements of type `{element}`");
        let fitting = Scalar::ALL.into_iter().filter(|&element| reduces(op, element));
        let fitting: Vec<_> = fitting.map(Scalar::name).collect();
        self.error(Code::ReduceElement, span, message).help(format!("it is for {}", fitting.join(", ")));
        false
    }

    fn bulk_reduce(
        &mut self,
        op: ReduceOp,
        element: Scalar,
        args: &Args,
        span: Span,
    ) -> Option<(Expr, Expr, CopyKind<SharedRange>)> {
        let name = format!("bulk_reduce_{}", op.name());
        let (index, count, from) = self.bulk_out(&name, element, args, span)?;
        if !self.expect_reduction(op, &name, element, ReduceOp::takes_bulk, span) {
            return None;
        }
        Some((index, count, CopyKind::Reduce { op, from }))
    }

    /// The arguments of what goes from shared to global memory: index, count, and the elements.
    fn bulk_out(
        &mut self,
        name: &str,
        element: Scalar,
        args: &Args,
        span: Span,
    ) -> Option<(Expr, Expr, SharedRange)> {
        let [index, array, at, count] = self.exactly(name, args, span)?;
        let fits = self.expect_global_index(&index)
            & self.expect_sequence(&array, element)
            & self.expect_count(&at)
            & self.expect_count(&count);
        fits.then_some((index, count, SharedRange { array, at }))
    }

    fn expect_count(&mut self, count: &Expr) -> bool {
        self.expect(count, &Scalar::U32.into())
    }

    /// Shared memory whose elements lie one after the other.
    fn expect_sequence(&mut self, array: &Expr, element: Scalar) -> bool {
        let ty = self.resolve(&array.ty);
        if ty == Type::Error || ty.sequence().is_some_and(|(found, _)| found == element) {
            return true;
        }
        let message = format!("a bulk copy does not go from or to {} here", self.infer.name(&ty));
        let help = match &ty {
            Type::Tile(tile) if tile.element == element => {
                "a swizzled tile does not have its elements one after the other: leave the swizzle out, or copy by a \
                 tensor map"
                    .to_owned()
            }
            _ => format!("the shared memory is a `SharedArray<{element}, N>`, or a `Tile` of `{element}`"),
        };
        self.error(Code::TypeMismatch, array.span, message).help(help);
        false
    }
}
