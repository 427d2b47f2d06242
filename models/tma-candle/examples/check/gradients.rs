//! The gradients of each operation, beside those that candle computes in F32 on the CPU.

use candle_core::{DType, Device, Result, Tensor, bail};

use crate::cases::Case;
use crate::reference::{Random, distance};

/// Returns the greatest distance of a gradient from candle's, relative to the greatest number of
/// that.
///
/// The loss is a sum with random factors of all elements, so that no gradient is the same in all.
pub(crate) fn greatest_distance(case: &Case, device: &Device, dtype: DType) -> Result<f32> {
    let mut random = Random::of_variables(device, dtype);
    let (found, wanted) = (case.run)(&mut random)?;
    let variables = random.take_variables();
    let ([factors], [of_factors]) = random.pairs([found.dims()])?;
    let sum = |y: &Tensor, factors: &Tensor| (y * factors)?.to_dtype(DType::F32)?.sum_all()?.backward();
    let (found, wanted) = (sum(&found, &factors)?, sum(&wanted, &of_factors)?);
    let mut distances = vec![];
    for (i, [ours, reference]) in variables.iter().enumerate() {
        let (Some(found), Some(wanted)) = (found.get(ours), wanted.get(reference)) else {
            bail!("variable {i} has no gradient")
        };
        if found.dims() != wanted.dims() || found.dtype() != dtype {
            bail!("the gradient of variable {i} is {:?} of {:?}", found.dims(), found.dtype())
        }
        // Without its sign, a NaN is the greatest number.
        distances.push(distance(found, wanted)?.abs());
    }
    match distances.into_iter().max_by(f32::total_cmp) {
        Some(greatest) => Ok(greatest),
        None => bail!("{} has no variables", case.name),
    }
}
