//! Batches whose matrices are picked by indices on the device, compared with plain Rust, on the
//! simulator or on the device that `TMA_DEVICE` names.
#![cfg(feature = "llvm")]

mod exact;

use exact::{Element, integers};
use tma_kernels::gemm::full::with_options;
use tma_kernels::gemm::{
    Activation, Choice, Division, Epilogue, GemmError, GemmOptions, Indices, Product, Tile, gemm_picked,
};
use tma_runtime::prelude::*;

/// The elements of C before the launch.
const BEFORE: f32 = 8.0;

/// The numbers of matrices of A, B and C, their extents, and the picked ones.
struct Case<'a> {
    counts: [usize; 3],
    mnk: [usize; 3],
    picked: [Option<&'a [u32]>; 3],
    transposed: [bool; 2],
    choice: Option<Choice>,
}

impl Case<'_> {
    /// Multiplies with beta = 2, and compares every element of C.
    fn check<AB: Element + Product<C>, C: Element>(&self, device: &Device) -> Result<(), GemmError> {
        let &Case { counts: [of_a, of_b, of_c], mnk: [m, n, k], picked, transposed, choice } = self;
        let (a, b) = (integers::<AB>(1, of_a * m * k), integers::<AB>(2, of_b * n * k));
        let products = picked[0].or(picked[1]).or(picked[2]).map_or(of_c, <[u32]>::len);
        let pick = |which: usize, product: usize| picked[which].map_or(product, |all| all[product] as usize);
        let mut wanted = vec![BEFORE; of_c * m * n];
        for product in 0..products {
            let (a, b) = (&a[pick(0, product) * m * k..], &b[pick(1, product) * n * k..]);
            let c = &mut wanted[pick(2, product) * m * n..][..m * n];
            for (place, c) in c.iter_mut().enumerate() {
                let (i, j) = (place / n, place % n);
                let of_a = |x: usize| if transposed[0] { x * m + i } else { i * k + x };
                let of_b = |x: usize| if transposed[1] { j * k + x } else { x * n + j };
                let sum: f32 = (0..k).map(|x| a[of_a(x)].value() * b[of_b(x)].value()).sum();
                *c = (sum + 2.0 * BEFORE).max(0.0);
            }
        }
        let wanted: Vec<C> = wanted.into_iter().map(C::of).collect();

        let shape = |count, rows, columns, turned| {
            if turned { [count, columns, rows] } else { [count, rows, columns] }
        };
        let a = device.tensor(&a, shape(of_a, m, k, transposed[0]))?;
        let b = device.tensor(&b, shape(of_b, k, n, transposed[1]))?;
        let mut c = device.tensor(&vec![C::of(BEFORE); of_c * m * n], [of_c, m, n])?;
        let mut tensors = vec![];
        for picked in picked {
            tensors.push(picked.map(|picked| device.tensor(picked, [picked.len()])).transpose()?);
        }
        let view = |which: usize| tensors[which].as_ref().map(|tensor| tensor.view());
        let indices = Indices { a: view(0), b: view(1), c: view(2) };
        let [transpose_a, transpose_b] = transposed;
        let options = GemmOptions {
            transpose_a,
            transpose_b,
            beta: 2.0,
            activation: Activation::Relu,
            choice,
            ..GemmOptions::default()
        };
        gemm_picked(device, &a, &b, &mut c, indices, options)?;
        let found = c.to_vec()?;
        if let Some(i) = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted) {
            let (matrix, row, column) = (i / (m * n), i / n % m, i % n);
            panic!(
                "{choice:?}: matrix {matrix} row {row} column {column} is {:?}, not {:?}",
                found[i], wanted[i]
            );
        }
        Ok(())
    }
}

const NT: [bool; 2] = [false, true];

#[test]
fn matrices_are_picked_by_every_tile_and_split() -> Result<(), GemmError> {
    let device = Device::open()?;
    for tile in [Tile::T128x256Cluster2x1, Tile::T128x128Cluster2x1, Tile::T64x64] {
        for division in [Division::Whole, Division::Parts(2), Division::Even] {
            let case = Case {
                counts: [3, 2, 6],
                mnk: [70, 136, 136],
                picked: [Some(&[2, 0, 0, 1]), Some(&[1, 1, 0, 0]), Some(&[5, 0, 3, 2])],
                transposed: NT,
                choice: Some(Choice { tile, division }),
            };
            case.check::<bf16, bf16>(&device)?;
        }
    }
    Ok(())
}

/// Each of the three by itself, in every layout, and other element types.
#[test]
fn operands_without_indices_are_used_in_order() -> Result<(), GemmError> {
    let device = Device::open()?;
    let index: &[u32] = &[3, 1];
    for which in 0..3 {
        for transposed in [NT, [false, false], [true, false], [true, true]] {
            let mut case =
                Case { counts: [2; 3], mnk: [72, 40, 24], picked: [None; 3], transposed, choice: None };
            case.counts[which] = 4;
            case.picked[which] = Some(index);
            case.check::<f16, f16>(&device)?;
        }
    }
    let case = Case {
        counts: [1, 3, 3],
        mnk: [40, 48, 64],
        picked: [Some(&[0, 0, 0]), None, None],
        transposed: NT,
        choice: None,
    };
    case.check::<bf16, f32>(&device)?;
    case.check::<e4m3, bf16>(&device)?;
    case.check::<tf32, f32>(&device)
}

#[test]
fn without_elements_there_is_nothing_to_do_and_without_k_nothing_is_added() -> Result<(), GemmError> {
    let device = Device::open()?;
    let none: &[u32] = &[];
    for (mnk, picked) in [
        ([8, 8, 8], [Some(none); 3]),
        ([0, 8, 8], [Some(&[1, 0][..]); 3]),
        ([8, 16, 0], [Some(&[1, 0][..]), Some(&[2, 2][..]), Some(&[0, 2][..])]),
    ] {
        let case = Case { counts: [2, 3, 3], mnk, picked, transposed: NT, choice: None };
        case.check::<bf16, bf16>(&device)?;
    }
    Ok(())
}

#[test]
fn invalid_arguments_are_rejected() -> Result<(), GemmError> {
    let device = Device::open()?;
    let (a, b) = (device.zeros::<bf16, 3>([2, 16, 32])?, device.zeros::<bf16, 3>([3, 32, 8])?);
    let mut c = device.zeros::<bf16, 3>([2, 16, 8])?;
    let three = device.tensor(&[0_u32, 1, 1], [3])?;
    let two = device.tensor(&[0_u32, 2], [2])?;
    let mut refused = |indices, options| match gemm_picked(&device, &a, &b, &mut c, indices, options) {
        Ok(()) => panic!("multiplied"),
        Err(error) => (error.code(), error.to_string()),
    };
    for indices in [Indices::default(), Indices { a: Some(three.view()), ..Indices::default() }] {
        let (code, text) = refused(indices, GemmOptions::default());
        assert_eq!(code, "TMA0561");
        assert!(text.contains("[2, 3, 2]") || text.contains("[3, 3, 2]"), "{text}");
    }
    let indices = Indices { b: Some(two.view()), ..Indices::default() };
    let epilogue = Some(Epilogue::of(&with_options::full::INSTANCES));
    assert_eq!(refused(indices, GemmOptions { epilogue, ..GemmOptions::default() }).0, "TMA0547");
    assert_eq!(refused(indices, GemmOptions { transpose_b: true, ..GemmOptions::default() }).0, "TMA0546");
    gemm_picked(&device, &a, &b, &mut c, indices, GemmOptions::default())
}

/// Data that the host never reads is checked on the device. A GPU would reject all later calls.
#[test]
fn an_index_beyond_the_matrices_stops_the_kernel() -> Result<(), GemmError> {
    let device = Device::simulator();
    let (a, b) = (device.zeros::<bf16, 3>([2, 16, 32])?, device.zeros::<bf16, 3>([2, 32, 8])?);
    let beyond = device.tensor(&[1_u32, 2], [2])?;
    let at = Some(beyond.view());
    let none = Indices::default();
    for indices in [Indices { a: at, ..none }, Indices { b: at, ..none }, Indices { c: at, ..none }] {
        let mut c = device.zeros::<bf16, 3>([2, 16, 8])?;
        let result = gemm_picked(&device, &a, &b, &mut c, indices, GemmOptions::default());
        let error = result.and_then(|()| c.to_vec().map(drop).map_err(GemmError::from)).expect_err("beyond");
        assert_eq!(error.code(), "TMA0545", "{error}");
        assert!(error.to_string().contains("batch index out of bounds"), "{error}");
    }
    Ok(())
}
