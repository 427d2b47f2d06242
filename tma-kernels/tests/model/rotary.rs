//! Rotary embeddings.

use tma_kernels::cached::{AttentionElement, RotaryLayout};
use tma_kernels::model::{
    ModelError, RotaryAngles, RotaryScaling, rotary, rotary_backward, rotary_backward_in_place,
    rotary_in_place, rotary_tables,
};
use tma_runtime::prelude::*;

use crate::rows::{Element, check, numbers};

const BASE: f64 = 100.0;

/// Tokens with heads within longer rows, of which the first columns are rotated.
#[derive(Clone, Copy, Debug)]
struct Case {
    heads: usize,
    depth: usize,
    rotated: usize,
    layout: RotaryLayout,
    in_place: bool,
    backward: bool,
}

/// The positions of tokens, of which the tables have the first 40.
const POSITIONS: [u32; 6] = [0, 39, 7, 40, 3, u32::MAX];
const KNOWN: u32 = 40;

fn rotates<T: Element + AttentionElement>(case: Case) -> Result<(), ModelError> {
    let Case { heads, depth, rotated, layout, in_place, backward } = case;
    let device = Device::simulator();
    let tokens = POSITIONS.len();
    let stored = [tokens, heads + 2, depth];
    let x = numbers::<T>(1, tokens * (heads + 2) * depth, 2.0);
    let mut of_x = device.tensor(&x, stored)?;
    let (cos, sin) = rotary_tables(0..KNOWN, rotated, BASE, RotaryScaling::None);
    let shape = [KNOWN as usize, rotated / 2];
    let (of_cos, of_sin) = (device.tensor(&cos, shape)?, device.tensor(&sin, shape)?);
    let angles = RotaryAngles { cos: of_cos.view(), sin: of_sin.view(), layout };
    let positions = device.tensor(&POSITIONS, [tokens])?;
    let mut out = device.filled_bytes::<T, 3>([tokens, heads, depth], 0xff)?;
    let (shape, strides) = ([tokens, heads, depth], [(heads + 2) * depth, depth, 1]);
    let found = if in_place {
        let all = of_x.view_mut().with_strides(shape, strides)?;
        match backward {
            true => rotary_backward_in_place(&device, all, &positions, angles)?,
            false => rotary_in_place(&device, all, &positions, angles)?,
        }
        let all = of_x.to_vec()?;
        for (before, after) in x.chunks((heads + 2) * depth).zip(all.chunks((heads + 2) * depth)) {
            assert!(before[heads * depth..] == after[heads * depth..], "other heads have changed");
        }
        all.chunks((heads + 2) * depth).flat_map(|row| row[..heads * depth].to_vec()).collect()
    } else {
        let all = of_x.view().with_strides(shape, strides)?;
        match backward {
            true => rotary_backward(&device, all, &positions, &mut out, angles)?,
            false => rotary(&device, all, &positions, &mut out, angles)?,
        }
        out.to_vec()?
    };
    for (token, position) in POSITIONS.into_iter().enumerate() {
        for head in 0..heads {
            let x = &x[(token * (heads + 2) + head) * depth..][..depth];
            let found: &[T] = &found[(token * heads + head) * depth..][..depth];
            if position >= KNOWN {
                assert!(if in_place { found == x } else { found.iter().all(|y| y.value().is_nan()) });
                continue;
            }
            assert!(found[rotated..] == x[rotated..], "columns that are not rotated have changed");
            for pair in 0..rotated / 2 {
                let [first, second] = match layout {
                    RotaryLayout::Halves => [pair, pair + rotated / 2],
                    RotaryLayout::Pairs => [2 * pair, 2 * pair + 1],
                };
                let angle = f64::from(position) * BASE.powf(-2.0 * pair as f64 / rotated as f64);
                let angle = if backward { -angle } else { angle }; // the transposed rotation
                let (a, b) = (x[first].value(), x[second].value());
                let error = (a.abs() + b.abs()) * 2f64.powi(-22);
                check(found[first], a * angle.cos() - b * angle.sin(), 0.0, error);
                check(found[second], b * angle.cos() + a * angle.sin(), 0.0, error);
            }
        }
    }
    Ok(())
}

#[test]
fn heads_of_both_layouts() -> Result<(), ModelError> {
    for layout in [RotaryLayout::Halves, RotaryLayout::Pairs] {
        for [in_place, backward] in [[false, false], [true, false], [false, true], [true, true]] {
            rotates::<bf16>(Case { heads: 3, depth: 128, rotated: 128, layout, in_place, backward })?;
            rotates::<f16>(Case { heads: 2, depth: 72, rotated: 32, layout, in_place, backward })?;
        }
    }
    let layout = RotaryLayout::Pairs;
    rotates::<f16>(Case { heads: 5, depth: 64, rotated: 24, layout, in_place: true, backward: false })
}

#[test]
fn nothing_to_rotate() -> Result<(), ModelError> {
    let device = Device::simulator();
    let (cos, positions) = (device.zeros::<f32, 2>([4, 8])?, device.zeros::<u32, 1>([0])?);
    let angles = RotaryAngles { cos: cos.view(), sin: cos.view(), layout: RotaryLayout::Halves };
    rotary_in_place(&device, &mut device.zeros::<bf16, 3>([0, 4, 16])?, &positions, angles)
}

#[test]
fn arguments_that_do_not_fit_are_errors() -> Result<(), Error> {
    let device = Device::simulator();
    let x = device.zeros::<bf16, 3>([2, 4, 32])?;
    let code = |shape: [usize; 3], tokens: usize, rotated: usize, layout: RotaryLayout| {
        let mut out = device.zeros::<bf16, 3>(shape)?;
        let cos = device.zeros::<f32, 2>([8, rotated / 2])?;
        let angles = RotaryAngles { cos: cos.view(), sin: cos.view(), layout };
        let positions = device.zeros::<u32, 1>([tokens])?;
        let result = rotary(&device, &x, &positions, &mut out, angles);
        Ok::<_, Error>(result.map_or_else(|error| error.code(), |()| "none"))
    };
    assert_eq!(code([2, 4, 32], 2, 32, RotaryLayout::Halves)?, "none");
    assert_eq!(code([2, 4, 32], 2, 24, RotaryLayout::Pairs)?, "none");
    assert_eq!(code([2, 4, 16], 2, 16, RotaryLayout::Halves)?, "TMA0575");
    assert_eq!(code([2, 4, 32], 3, 32, RotaryLayout::Halves)?, "TMA0575");
    assert_eq!(code([2, 4, 32], 2, 24, RotaryLayout::Halves)?, "TMA0578");
    assert_eq!(code([2, 4, 32], 2, 48, RotaryLayout::Halves)?, "TMA0578");

    let cos = device.zeros::<f32, 2>([8, 8])?;
    let angles = RotaryAngles { cos: cos.view(), sin: cos.view(), layout: RotaryLayout::Halves };
    let positions = device.zeros::<u32, 1>([2])?;
    let mut packed = device.zeros::<bf16, 2>([2, 100])?;
    let apart = packed.view_mut().with_strides([2, 2, 16], [100, 16, 1])?;
    let error = rotary_in_place(&device, apart, &positions, angles).expect_err("rows are not aligned");
    assert_eq!(error.code(), "TMA0576");
    let mut odd = device.zeros::<bf16, 3>([2, 1, 20])?;
    let error = rotary_in_place(&device, &mut odd, &positions, angles).expect_err("an odd depth");
    assert_eq!(error.code(), "TMA0578");
    Ok(())
}
