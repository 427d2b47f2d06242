//! The tensors of the ranks of a team, joined to one argument.

use super::{Argument, RankAddresses, Value};
use crate::layout::{DeviceId, Layout};
use crate::map::options::MapSource;

/// The first rank whose tensor differs from that of rank 0 in more than its address and device.
pub(crate) struct Unlike(pub(crate) usize);

impl Argument {
    /// Joins the tensors of all ranks, in order, to the argument of a `Peers` parameter. Returns
    /// `None` if there is none.
    pub(crate) fn of_ranks(parts: &[Self]) -> Result<Option<Self>, Unlike> {
        let Some(first) = parts.first().filter(|first| first.layout().is_some()) else { return Ok(None) };
        if let Some(unlike) = parts.iter().position(|part| !first.like(part)) {
            return Err(Unlike(unlike));
        }
        let addresses: Vec<u64> =
            parts.iter().filter_map(|part| part.layout().map(Layout::address)).collect();
        let addresses: RankAddresses = std::array::from_fn(|rank| addresses[rank.min(addresses.len() - 1)]);
        let value = match first.value {
            Value::Map(source) => Value::PeerMaps { source, addresses },
            Value::Global { layout, address: _, len } => Value::PeerGlobals { layout, addresses, len },
            Value::PeerMaps { .. } | Value::PeerGlobals { .. } | Value::Nothing(_) | Value::Scalar { .. } => {
                return Ok(None);
            }
        };
        Ok(Some(Self { value, mutable: parts.iter().all(|part| part.mutable) }))
    }

    /// Returns the device of the tensor, if the argument is one.
    pub(crate) fn device(&self) -> Option<DeviceId> {
        self.layout().map(Layout::device)
    }

    fn layout(&self) -> Option<&Layout> {
        match &self.value {
            Value::Map(source) => Some(&source.layout),
            Value::Global { layout, .. } => Some(layout),
            Value::PeerMaps { .. } | Value::PeerGlobals { .. } | Value::Nothing(_) | Value::Scalar { .. } => {
                None
            }
        }
    }

    /// Whether two tensors differ at most in address and device.
    fn like(&self, other: &Self) -> bool {
        let same = |one: &Layout, other: &Layout| {
            (one.element(), one.shape(), one.strides()) == (other.element(), other.shape(), other.strides())
        };
        match (&self.value, &other.value) {
            (Value::Map(one), Value::Map(other)) => {
                let MapSource { layout, options } = one;
                same(layout, &other.layout) && *options == other.options
            }
            (Value::Global { layout, .. }, Value::Global { layout: other, .. }) => same(layout, other),
            (
                Value::Map(_)
                | Value::Global { .. }
                | Value::PeerMaps { .. }
                | Value::PeerGlobals { .. }
                | Value::Nothing(_)
                | Value::Scalar { .. },
                _,
            ) => false,
        }
    }
}
