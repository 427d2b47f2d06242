//! Batches of separate tensors, compared with plain Rust, on the simulator or on the device that
//! `TMA_DEVICE` names.
#![cfg(feature = "llvm")]

mod exact;

use exact::{Element, integers};
use tma_kernels::gemm::{GemmError, GemmOptions, Matrices, MatricesMut, gemm_array};
use tma_runtime::prelude::*;

fn product(a: &[bf16], b: &[bf16], [m, n, k]: [usize; 3]) -> Vec<bf16> {
    let element = |i: usize, j: usize| (0..k).map(|x| a[i * k + x].value() * b[x * n + j].value()).sum();
    (0..m * n).map(|at| Element::of(element(at / n, at % n))).collect()
}

#[test]
fn tensors_are_multiplied_wherever_they_are() -> Result<(), GemmError> {
    let device = Device::open()?;
    let [m, n, k] = [72, 136, 88];
    let (mut a, mut b, mut c, mut gaps) = (vec![], vec![], vec![], vec![]);
    for matrix in 0..5_u32 {
        a.push(device.tensor(&integers::<bf16>(matrix, m * k), [m, k])?);
        gaps.push(device.zeros::<f32, 1>([100 * matrix as usize + 1])?);
        b.push(device.tensor(&integers::<bf16>(matrix + 5, k * n), [k, n])?);
        // The launch writes only a part of each tensor of C.
        c.push(device.filled_bytes::<bf16, 2>([m + 1, n + 8], 0xff)?);
    }
    // In another order, with the first matrix of A twice.
    let of_a = [4_u32, 0, 3, 0, 1];
    let from = Matrices::new(&device, &of_a.map(|at| a[at as usize].view()))?;
    let by = Matrices::new(&device, &b.iter().map(|b| b.view()).collect::<Vec<_>>())?;
    assert_eq!((from.len(), by.is_empty()), (5, false));
    let parts = c.iter_mut().map(|c| c.view_mut().slice([0..m, 0..n]));
    let mut to = MatricesMut::new(&device, parts.collect::<Result<_, _>>()?)?;
    gemm_array(&device, &from, &by, &mut to, GemmOptions::default())?;
    for (matrix, c) in (0_u32..).zip(&c) {
        let wanted =
            product(&integers(of_a[matrix as usize], m * k), &integers(matrix + 5, k * n), [m, n, k]);
        for (row, found) in c.to_vec()?.chunks(n + 8).enumerate() {
            let (inside, outside) = found.split_at(if row < m { n } else { 0 });
            assert_eq!(inside, &wanted[(row * n).min(m * n)..][..inside.len()], "row {row} of {matrix}");
            assert!(outside.iter().all(|x| x.to_bits() == 0xffff), "beyond row {row} of {matrix}");
        }
    }
    Ok(())
}

#[test]
fn without_elements_there_is_nothing_to_do_and_without_k_nothing_is_added() -> Result<(), GemmError> {
    let device = Device::open()?;
    let none = Matrices::<bf16>::new(&device, &[])?;
    let mut of_none = MatricesMut::<bf16>::new(&device, vec![])?;
    gemm_array(&device, &none, &none, &mut of_none, GemmOptions::default())?;
    let (a, b) = (device.zeros::<bf16, 2>([16, 0])?, device.zeros::<bf16, 2>([0, 8])?);
    let mut c = [device.filled_bytes::<bf16, 2>([16, 8], 0xff)?, device.filled_bytes([16, 8], 0xff)?];
    let (a, b) = (Matrices::new(&device, &[a.view(); 2])?, Matrices::new(&device, &[b.view(); 2])?);
    let mut to = MatricesMut::new(&device, c.iter_mut().map(|c| c.view_mut()).collect())?;
    gemm_array(&device, &a, &b, &mut to, GemmOptions::default())?;
    for c in &c {
        assert!(c.to_vec()?.iter().all(|x| x.to_f32() == 0.0));
    }
    Ok(())
}

#[test]
fn invalid_arguments_are_rejected() -> Result<(), GemmError> {
    let device = Device::open()?;
    let (a, b) = (device.zeros::<bf16, 2>([16, 32])?, device.zeros::<bf16, 2>([32, 8])?);
    let error = Matrices::new(&device, &[a.view(), b.view()]).expect_err("two shapes");
    assert_eq!(error.code(), "TMA0565");
    assert!(error.to_string().contains("matrix 1 differs from matrix 0"), "{error}");
    let other = Device::simulator();
    let elsewhere = other.zeros::<bf16, 2>([16, 32])?;
    let error = Matrices::new(&device, &[a.view(), elsewhere.view()]).expect_err("two devices");
    assert!(error.to_string().contains("matrix 1 is on another device"), "{error}");

    let (one, two) = (Matrices::new(&device, &[a.view()])?, Matrices::new(&device, &[b.view(); 2])?);
    let mut c = device.zeros::<bf16, 2>([16, 8])?;
    let mut to = MatricesMut::new(&device, vec![c.view_mut()])?;
    let error = gemm_array(&device, &one, &two, &mut to, GemmOptions::default()).expect_err("two of B");
    assert_eq!(error.code(), "TMA0561");
    let one_of_a = gemm_array(&device, &one, &one, &mut to, GemmOptions::default()).expect_err("no B");
    assert_eq!(one_of_a.code(), "TMA0546");
    Ok(())
}
