//! Tensors of a team: one of the same shape on each rank.

use crate::device::team::Team;
use crate::error::{Error, TeamError};
use crate::scalar::Scalar;
use crate::tensor::DeviceTensor;
use crate::tensor::view::{TensorView, TensorViewMut};

/// A tensor on each rank of a [`Team`], all of them of `N` dimensions, of one shape, and with
/// elements of `T`. Each rank has its own contents.
///
/// A launch on the team takes it for a tensor of each rank, or for the tensors of all ranks, which
/// the kernel then reads or writes from each of them.
#[derive(Debug)]
pub struct SymmetricTensor<T, const N: usize> {
    team: Team,
    /// The tensor of each rank.
    ranks: Vec<DeviceTensor<T, N>>,
    shape: [usize; N],
}

impl Team {
    /// Creates a tensor of zeros on each rank.
    ///
    /// # Errors
    ///
    /// The errors of [`Device::zeros`](crate::Device::zeros).
    pub fn zeros<T: Scalar, const N: usize>(
        &self,
        shape: [usize; N],
    ) -> Result<SymmetricTensor<T, N>, Error> {
        self.filled_bytes(shape, 0)
    }

    /// Creates a tensor on each rank, with every byte set to `byte`.
    ///
    /// # Errors
    ///
    /// The errors of [`Device::zeros`](crate::Device::zeros).
    pub fn filled_bytes<T: Scalar, const N: usize>(
        &self,
        shape: [usize; N],
        byte: u8,
    ) -> Result<SymmetricTensor<T, N>, Error> {
        let ranks = self.devices().map(|device| device.filled_bytes(shape, byte));
        Ok(SymmetricTensor { team: self.clone(), ranks: ranks.collect::<Result<_, _>>()?, shape })
    }

    /// Copies host slices into new tensors of `shape`, outermost extent first: one slice for each
    /// rank, in order.
    ///
    /// ```
    /// use tma_runtime::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// let team = Team::simulator(2)?;
    /// let x = team.tensors(&[[1.0f32, 2.0], [3.0, 4.0]], [2])?;
    /// assert_eq!(x.rank(1)?.to_vec()?, [3.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`TeamError::Count`] if there is not one slice for each rank, and the errors of
    /// [`Device::tensor`](crate::Device::tensor).
    pub fn tensors<T: Scalar, const N: usize>(
        &self,
        host: &[impl AsRef<[T]>],
        shape: [usize; N],
    ) -> Result<SymmetricTensor<T, N>, Error> {
        if host.len() != self.ranks() {
            return Err(TeamError::Count { what: "slices", found: host.len(), ranks: self.ranks() }.into());
        }
        let ranks = self.devices().zip(host).map(|(device, host)| device.tensor(host.as_ref(), shape));
        Ok(SymmetricTensor { team: self.clone(), ranks: ranks.collect::<Result<_, _>>()?, shape })
    }
}

impl<T: Scalar, const N: usize> SymmetricTensor<T, N> {
    /// Returns the team.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Returns the extents of each rank's tensor in elements, outermost first.
    pub fn shape(&self) -> [usize; N] {
        self.shape
    }

    /// Returns the tensor of a rank.
    ///
    /// # Errors
    ///
    /// [`TeamError::NoRank`].
    pub fn rank(&self, rank: usize) -> Result<&DeviceTensor<T, N>, Error> {
        self.ranks.get(rank).ok_or_else(|| TeamError::NoRank { rank, ranks: self.ranks.len() }.into())
    }

    /// Returns the tensor of a rank, to overwrite it or to launch on its device alone.
    ///
    /// # Errors
    ///
    /// [`TeamError::NoRank`].
    pub fn rank_mut(&mut self, rank: usize) -> Result<&mut DeviceTensor<T, N>, Error> {
        let ranks = self.ranks.len();
        self.ranks.get_mut(rank).ok_or_else(|| TeamError::NoRank { rank, ranks }.into())
    }

    /// Returns the tensors of all ranks, in order.
    pub fn tensors(&self) -> &[DeviceTensor<T, N>] {
        &self.ranks
    }

    /// Returns an immutable view of each rank's tensor, in order.
    pub fn views(&self) -> impl ExactSizeIterator<Item = TensorView<'_, T, N>> {
        self.ranks.iter().map(DeviceTensor::view)
    }

    /// Returns a mutable view of each rank's tensor, in order.
    pub fn views_mut(&mut self) -> impl ExactSizeIterator<Item = TensorViewMut<'_, T, N>> {
        self.ranks.iter_mut().map(DeviceTensor::view_mut)
    }

    /// Copies the tensors of all ranks to the host, in row-major order, once everything that may
    /// write them has run.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceTensor::to_vec`].
    pub fn to_vecs(&self) -> Result<Vec<Vec<T>>, Error> {
        self.ranks.iter().map(DeviceTensor::to_vec).collect()
    }

    /// Sets every byte of all tensors to `byte`, once everything that may access them has run.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceTensor::fill_bytes`].
    pub fn fill_bytes(&mut self, byte: u8) -> Result<(), Error> {
        self.ranks.iter_mut().try_for_each(|tensor| tensor.fill_bytes(byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T, Error>) -> Option<&'static str> {
        result.err().map(|error| error.code())
    }

    #[test]
    fn ranks_have_tensors_of_their_own() -> Result<(), Error> {
        let team = Team::simulator(3)?;
        let mut all = team.tensors(&[vec![1u32, 2], vec![3, 4], vec![5, 6]], [1, 2])?;
        assert_eq!(all.to_vecs()?, [[1, 2], [3, 4], [5, 6]]);
        all.rank_mut(1)?.copy_from(&[7, 8])?;
        assert_eq!(all.to_vecs()?, [[1, 2], [7, 8], [5, 6]]);
        assert!(all.views().zip(all.tensors()).all(|(view, tensor)| view.as_ptr() == tensor.as_ptr()));
        assert_eq!(all.views_mut().map(|view| view.shape()).collect::<Vec<_>>(), [[1, 2]; 3]);
        all.fill_bytes(0)?;
        assert_eq!(all.to_vecs()?, [[0; 2]; 3]);
        assert_eq!((all.shape(), all.team().ranks()), ([1, 2], 3));
        assert_eq!(team.filled_bytes::<u8, 1>([1], 9)?.to_vecs()?, [[9]; 3]);
        Ok(())
    }

    #[test]
    fn tma0636_there_is_a_slice_for_each_rank() {
        let team = Team::simulator(2).expect("a team");
        assert_eq!(code(team.tensors(&[[1u32]], [1])), Some("TMA0636"));
        assert_eq!(code(team.tensors(&[[1u32]; 3], [1])), Some("TMA0636"));
        assert_eq!(code(team.tensors(&[vec![1u32], vec![]], [1])), Some("TMA0512"));
        let mut tensors = team.tensors(&[[1u32]; 2], [1]).expect("two tensors");
        assert_eq!((code(tensors.rank(2)), code(tensors.rank_mut(2))), (Some("TMA0636"), Some("TMA0636")));
    }
}
