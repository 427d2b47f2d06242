//! The exchange with cust, as far as it needs no GPU: the program links and starts, and reports
//! what is missing. `cargo test -p tma-runtime --features cust --test exchange`.
#![cfg(all(feature = "cust", feature = "ptx-sim"))]

use tma_runtime::prelude::*;

#[track_caller]
fn code<T>(result: Result<T, Error>) -> Option<&'static str> {
    result.err().map(|error| error.code())
}

/// Passes with and without a driver, and with and without a GPU.
#[test]
fn a_missing_driver_is_an_error_with_a_code() {
    match Device::cuda(0) {
        Ok(device) => assert!(device.to_cust().is_ok()),
        Err(error) => assert!(["TMA0601", "TMA0602"].contains(&error.code()), "{error}"),
    }
    assert!(Device::open().is_ok(), "without a GPU there is the simulator");
}

#[test]
fn tma0564_cust_has_no_part_in_the_simulator() {
    let device = Device::simulator();
    assert_eq!(code(device.to_cust()), Some("TMA0564"));
    let tensor = device.zeros::<f32, 1>([4]).expect("a tensor");
    assert_eq!(code(tensor.into_cust::<u32>()), Some("TMA0564"));
    let stream = device.stream().expect("a stream");
    assert!(stream.as_cust().is_none());
}
