//! The types of memory on all ranks of a team.

use syn::GenericArgument;

use crate::diag::mistake::Types;
use crate::ir::{PeerMemory, Span, Type};
use crate::parse::cx::Cx;

impl Cx<'_> {
    /// Resolves `Peers<Global<T>>` or `Peers<TensorMap<X>>`.
    pub(super) fn peers_type(&mut self, generics: &[&GenericArgument], segment: &syn::PathSegment) -> Type {
        match self.peer_memory(generics) {
            Some(Type::Global(element)) => Type::Peers(PeerMemory::Global(element)),
            Some(Type::TensorMap(tile)) => Type::Peers(PeerMemory::TensorMap(tile)),
            Some(Type::Error) | None => Type::Error,
            Some(other) => {
                self.error(Types::Peers(self.infer.partial(&other)), Span::of(segment));
                Type::Error
            }
        }
    }

    /// Resolves `Peer<Global<T>>`.
    pub(super) fn peer_type(&mut self, generics: &[&GenericArgument], segment: &syn::PathSegment) -> Type {
        match self.peer_memory(generics) {
            Some(Type::Global(element)) => Type::Peer(element),
            Some(Type::Error) | None => Type::Error,
            Some(other) => {
                self.error(Types::Peer(self.infer.partial(&other)), Span::of(segment));
                Type::Error
            }
        }
    }

    fn peer_memory(&mut self, generics: &[&GenericArgument]) -> Option<Type> {
        let [memory] = *generics else { return None };
        self.type_argument(memory)
    }
}
