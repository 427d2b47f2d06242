//! Random tensors, and attention in F32.

use candle_core::{D, DType, Device, Result, Tensor, Var};

/// A source of tensors of one type on one device.
pub(crate) struct Random {
    device: Device,
    dtype: DType,
    state: u64,
    /// The variables of both, if tensors are variables.
    variables: Option<Vec<[Var; 2]>>,
}

impl Random {
    /// Makes a source, which always produces the same numbers.
    pub(crate) fn new(device: &Device, dtype: DType) -> Self {
        Self { device: device.clone(), dtype, state: 42, variables: None }
    }

    /// Makes a source of the same numbers, whose tensors are variables.
    pub(crate) fn of_variables(device: &Device, dtype: DType) -> Self {
        Self { variables: Some(vec![]), ..Self::new(device, dtype) }
    }

    /// Returns the variables so far, each with that of the reference. Later tensors are none.
    pub(crate) fn take_variables(&mut self) -> Vec<[Var; 2]> {
        self.variables.take().unwrap_or_default()
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Returns tensors of these shapes, and the same numbers in F32 on the CPU.
    pub(crate) fn pairs<const N: usize>(
        &mut self,
        shapes: [&[usize]; N],
    ) -> Result<([Tensor; N], [Tensor; N])> {
        let (mut ours, mut references) = (vec![], vec![]);
        for shape in shapes {
            let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| self.number()).collect();
            let rounded = Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(self.dtype)?;
            let mut pair = [rounded.copy()?.to_device(&self.device)?, rounded.to_dtype(DType::F32)?];
            if let Some(variables) = &mut self.variables {
                let both = [Var::from_tensor(&pair[0])?, Var::from_tensor(&pair[1])?];
                pair = both.each_ref().map(|variable| variable.as_tensor().clone());
                variables.push(both);
            }
            let [our, reference] = pair;
            ours.push(our);
            references.push(reference);
        }
        let counted = |_| candle_core::Error::msg("the number of tensors");
        Ok((ours.try_into().map_err(counted)?, references.try_into().map_err(counted)?))
    }

    /// Returns a number between -2 and 2.
    fn number(&mut self) -> f32 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 40) as f32 / f32::from(1_u16 << 14) / 256.0 - 2.0
    }
}

/// Returns a tensor in F32 on the CPU.
pub(crate) fn on_cpu(tensor: &Tensor) -> Result<Tensor> {
    tensor.to_device(&Device::Cpu)?.to_dtype(DType::F32)
}

/// Returns the greatest distance of a result from the reference, relative to the greatest number of
/// the reference.
pub(crate) fn distance(found: &Tensor, wanted: &Tensor) -> Result<f32> {
    let (found, wanted) = (on_cpu(found)?.flatten_all()?, on_cpu(wanted)?.flatten_all()?);
    let (found, wanted) = (found.to_vec1::<f32>()?, wanted.to_vec1::<f32>()?);
    let greatest = wanted.iter().fold(0.0_f32, |greatest, x| greatest.max(x.abs()));
    // A NaN is no number that `max` would keep.
    let distances = found.iter().zip(&wanted).map(|(x, y)| if x == y { 0.0 } else { (x - y).abs() });
    Ok(distances.fold(0.0, |all, one| if one > all || one.is_nan() { one } else { all }) / greatest)
}

/// Returns cosines and sines, positions × columns or sequences × positions × columns.
pub(crate) fn angles(shape: &[usize]) -> Result<(Tensor, Tensor)> {
    let columns = shape.last().copied().unwrap_or(1);
    let angles: Vec<f32> = (0..shape.iter().product())
        .map(|i: usize| (i / columns) as f32 * 100_f32.powf(-((i % columns) as f32) / columns as f32))
        .collect();
    let angles = Tensor::from_vec(angles, shape, &Device::Cpu)?;
    Ok((angles.cos()?, angles.sin()?))
}

/// Returns what `candle_nn::rotary_emb::rope_thd` does, whose operation has no gradient.
pub(crate) fn rope_thd(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let heads_first = |x: &Tensor| x.transpose(1, 2)?.contiguous();
    if cos.rank() == 2 {
        return heads_first(&candle_nn::rotary_emb::rope_slow(&heads_first(x)?, cos, sin)?);
    }
    let sequences = (0..x.dim(0)?).map(|i| rope_thd(&x.narrow(0, i, 1)?, &cos.get(i)?, &sin.get(i)?));
    Tensor::cat(&sequences.collect::<Result<Vec<_>>>()?, 0)
}

/// Returns attention of queries, keys and values, batch × sequence × heads × depth, with a window.
pub(crate) fn attention(
    tensors: &[Tensor; 3],
    scale: f64,
    window: [Option<usize>; 2],
    slopes: Option<&[f64]>,
) -> Result<Tensor> {
    let ([q, k, v], [left, right]) = (tensors, window);
    let ((batch, queries, heads, depth), (_, keys, of_keys, _)) = (q.dims4()?, k.dims4()?);
    let shared = |tensor: &Tensor| {
        let all = (batch, keys, of_keys, heads / of_keys, depth);
        tensor.unsqueeze(3)?.expand(all)?.reshape((batch, keys, heads, depth))?.transpose(1, 2)?.contiguous()
    };
    let scores = q.transpose(1, 2)?.contiguous()?.matmul(&shared(k)?.t()?)?;
    let mut added = vec![];
    for head in 0..heads {
        for (i, j) in (0..queries).flat_map(|i| (0..keys).map(move |j| (i + keys - queries, j))) {
            let is_seen = left.is_none_or(|left| j + left >= i) && right.is_none_or(|right| j <= i + right);
            let slope = slopes.map_or(0.0, |slopes| slopes[head]);
            added.push(if is_seen { -(slope * i.abs_diff(j) as f64) as f32 } else { f32::NEG_INFINITY });
        }
    }
    let added = Tensor::from_vec(added, (heads, queries, keys), &Device::Cpu)?;
    let weights = candle_nn::ops::softmax(&(scores * scale)?.broadcast_add(&added)?, D::Minus1)?;
    weights.matmul(&shared(v)?)?.transpose(1, 2)
}
