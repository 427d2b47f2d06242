//! Gradients of tables of embeddings.

use tma_kernels::model::{
    EmbeddingBackwardOptions, GradientWorkspace, ModelError, embedding, embedding_backward,
};
use tma_runtime::prelude::*;

use crate::rows::{Element, Layout, check, numbers};

/// A table, and the rows of tokens.
#[derive(Clone, Copy, Debug)]
struct Case {
    vocabulary: usize,
    columns: usize,
    /// The columns between rows.
    apart: usize,
    scale: f32,
}

fn differentiates<T: Element, G: Element>(case: Case, tokens: &[u32]) -> Result<(), ModelError> {
    let Case { vocabulary, columns, apart, scale } = case;
    let device = Device::simulator();
    let [of_dy, of_table] =
        [tokens.len(), vocabulary].map(|rows| Layout { shape: [1, rows, columns], apart });
    let dy = numbers::<T>(1, tokens.len() * columns, 2.0);
    let old = numbers::<G>(2, vocabulary * columns, 2.0);
    let rows = of_dy.tensor(&device, &dy)?;
    let rows = rows.view().with_strides([tokens.len(), columns], [columns + apart, 1])?;
    // Every second of them.
    let stored: Vec<u32> = tokens.iter().flat_map(|token| [*token, 1]).collect();
    let stored = device.tensor(&stored, [tokens.len(), 2])?;
    let stored = stored.view().with_strides([tokens.len()], [2])?;
    let mut workspace = GradientWorkspace::for_embedding(&device, [tokens.len(), columns])?;
    let mut found: Vec<Vec<G>> = vec![];
    for run in 0..2 {
        let mut table = of_table.tensor(&device, &old)?;
        let view = table.view_mut().with_strides([vocabulary, columns], [columns + apart, 1])?;
        let options = EmbeddingBackwardOptions { scale, workspace: (run == 0).then_some(&mut workspace) };
        embedding_backward(&device, rows, stored, view, options)?;
        found.push(of_table.rows_of(&table)?);
    }
    assert!(found[0] == found[1], "other bits the second time");
    let mut wanted: Vec<[f64; 2]> = old.iter().map(|x| [x.value(), x.value().abs()]).collect();
    for (token, dy) in tokens.iter().zip(dy.chunks(columns)) {
        let of_token = wanted.chunks_mut(columns).nth(*token as usize);
        for (sum, dy) in of_token.into_iter().flatten().zip(dy) {
            let term = f64::from(scale) * dy.value();
            *sum = [sum[0] + term, sum[1] + term.abs()];
        }
    }
    for (token, (found, wanted)) in found[0].chunks(columns).zip(wanted.chunks(columns)).enumerate() {
        let occurs = tokens.contains(&(token as u32));
        for (column, (found, [wanted, size])) in found.iter().zip(wanted).enumerate() {
            match occurs {
                true => check(*found, *wanted, 0.0, size * 2f64.powi(-20)),
                false => assert_eq!(*found, old[token * columns + column], "token {token} has changed"),
            }
        }
    }
    Ok(())
}

/// Returns so many tokens, of which every fourth is the same, and some are beyond the vocabulary.
fn mixed(count: usize, vocabulary: usize) -> Vec<u32> {
    let token = |(i, x): (usize, &f32)| match i % 4 {
        0 => 5,
        _ => (x * vocabulary as f32 * 1.1) as u32,
    };
    numbers::<f32>(7, count, 1.0)
        .iter()
        .map(|x| x.abs())
        .collect::<Vec<_>>()
        .iter()
        .enumerate()
        .map(token)
        .collect()
}

#[test]
fn every_type_and_layout() -> Result<(), ModelError> {
    let tokens = [6_u32, 9, 0, 3, 6, 7, u32::MAX, 6, 0];
    for (columns, apart) in [(128, 0), (101, 0), (64, 8), (4104, 0), (8, 1), (1, 0)] {
        let case = Case { vocabulary: 7, columns, apart, scale: 1.0 };
        differentiates::<bf16, f32>(case, &tokens)?;
        differentiates::<bf16, bf16>(Case { scale: 11.3137, ..case }, &tokens)?;
        differentiates::<f16, f32>(case, &tokens)?;
        differentiates::<f32, f32>(Case { scale: 0.5, ..case }, &tokens)?;
    }
    for (columns, apart) in [(72, 0), (33, 3)] {
        let case = Case { vocabulary: 7, columns, apart, scale: 0.3 };
        differentiates::<f16, f16>(case, &tokens)?;
        differentiates::<f16, bf16>(case, &tokens)?;
        differentiates::<bf16, f16>(case, &tokens)?;
        differentiates::<f32, f16>(case, &tokens)?;
        differentiates::<f32, bf16>(case, &tokens)?;
    }
    Ok(())
}

/// Tokens of several blocks and chunks, of one token alone, and of none that the vocabulary has.
#[test]
fn many_tokens() -> Result<(), ModelError> {
    let case = |vocabulary, columns| Case { vocabulary, columns, apart: 0, scale: 1.0 };
    for count in [31, 32, 33, 64, 65, 1100] {
        differentiates::<f32, f32>(case(40, 8), &mixed(count, 40))?;
        differentiates::<bf16, f32>(case(3000, 8), &mixed(count, 3000))?;
    }
    differentiates::<bf16, bf16>(case(300, 19), &mixed(700, 300))?;
    differentiates::<f32, f32>(case(1, 4), &[0; 100])?;
    differentiates::<f32, f32>(case(70_000, 4), &[69_999; 600])?;
    differentiates::<f32, f32>(case(2, 4), &[2; 70])?;
    // All are of one block, which has more than one for each thread.
    let same_bits: Vec<u32> = (0..2200).map(|i| i * 7919 % 300 * 8).collect();
    differentiates::<f32, f32>(case(2400, 4), &same_bits)?;
    let alternating: Vec<u32> = (0..640).map(|i| i % 3).collect();
    differentiates::<f32, f32>(case(3, 4), &alternating)
}

/// The rows of a token are added in the order of positions.
#[test]
fn sums_have_the_order_of_positions() -> Result<(), ModelError> {
    let device = Device::simulator();
    let tokens: Vec<u32> = (0..600).map(|i| (i * 7 % 60) as u32).collect();
    let dy = numbers::<f32>(3, 600 * 4, 1.0);
    let of_dy = device.tensor(&dy, [600, 4])?;
    let mut table = device.zeros::<f32, 2>([60, 4])?;
    let of_tokens = device.tensor(&tokens, [600])?;
    embedding_backward(&device, &of_dy, &of_tokens, &mut table, EmbeddingBackwardOptions::default())?;
    // Tokens with less than a chunk of positions have two sums at most.
    let mut exact = 0;
    for (token, found) in table.to_vec()?.chunks(4).enumerate() {
        let rows = tokens.iter().zip(dy.chunks(4)).filter(|(other, _)| **other == token as u32);
        let wanted = rows.fold([0.0_f32; 4], |sum, (_, dy)| [0, 1, 2, 3].map(|i| sum[i] + dy[i]));
        exact += usize::from(wanted == found);
    }
    // Those that 18 boundaries of chunks divide may have other roundings.
    assert!(exact >= 60 - 18, "{exact} of 60 tokens");
    Ok(())
}

/// The gradient is the transposed function: <dy, embedding(table)> = <gradient(dy), table>.
#[test]
fn the_gradient_is_the_adjoint() -> Result<(), ModelError> {
    let device = Device::simulator();
    let (count, vocabulary, columns) = (90, 11, 8);
    let tokens = device.tensor(&mixed(count, vocabulary), [count])?;
    let table = numbers::<f32>(4, vocabulary * columns, 1.0);
    let dy = numbers::<f32>(5, count * columns, 1.0);
    let mut y = device.zeros::<f32, 2>([count, columns])?;
    embedding(&device, &device.tensor(&table, [vocabulary, columns])?, &tokens, &mut y, 3.0)?;
    let mut dtable = device.zeros::<f32, 2>([vocabulary, columns])?;
    let options = EmbeddingBackwardOptions { scale: 3.0, workspace: None };
    embedding_backward(&device, &device.tensor(&dy, [count, columns])?, &tokens, &mut dtable, options)?;
    let product =
        |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum() };
    let [a, b] = [product(&dy, &y.to_vec()?), product(&dtable.to_vec()?, &table)];
    assert!((a - b).abs() < 1e-4 && a.abs() > 0.1, "{a} and {b}");
    Ok(())
}

#[test]
fn nothing_to_add() -> Result<(), ModelError> {
    let device = Device::simulator();
    for [vocabulary, count, columns] in [[0, 3, 64], [5, 0, 64], [5, 3, 0]] {
        let (dy, tokens) = (device.zeros::<bf16, 2>([count, columns])?, device.zeros([count])?);
        let mut table = device.zeros::<f32, 2>([vocabulary, columns])?;
        embedding_backward(&device, &dy, &tokens, &mut table, EmbeddingBackwardOptions::default())?;
        assert!(table.to_vec()?.iter().all(|x| *x == 0.0));
    }
    let tokens = device.zeros([3])?;
    let mut table = device.zeros::<f32, 2>([4, 64])?;
    for shape in [[3, 32], [4, 64]] {
        let dy = device.zeros::<bf16, 2>(shape)?;
        let error =
            embedding_backward(&device, &dy, &tokens, &mut table, EmbeddingBackwardOptions::default());
        assert_eq!(error.expect_err("other extents").code(), "TMA0575");
    }
    let mut turned = device.zeros::<f32, 2>([64, 4])?;
    let (dy, turned) = (device.zeros::<bf16, 2>([3, 64])?, turned.view_mut().permute([1, 0])?);
    let error = embedding_backward(&device, &dy, &tokens, turned, EmbeddingBackwardOptions::default());
    assert_eq!(error.expect_err("columns are not adjacent").code(), "TMA0576");
    Ok(())
}
