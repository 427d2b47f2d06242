//! A build for GPUs alone: `cargo test -p tma-runtime --no-default-features --test no_simulator`.
#![cfg(not(feature = "ptx-sim"))]

use std::process::Command;

use tma_runtime::Device;

/// Opens the device that `TMA_DEVICE` selects, in a process of its own.
fn opened(device: &str) -> String {
    let this = std::env::current_exe().expect("the test runs");
    let mut child = Command::new(this);
    child.args(["--exact", "the_device_is_opened", "--nocapture"]).env("TMA_DEVICE", device);
    let output = child.output().expect("the test can be run again");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_device_is_opened() {
    let opened = Device::open().map(|device| device.name().to_owned()).map_err(|error| error.to_string());
    println!("opened: {opened:?}");
}

#[test]
fn tma0906_the_simulator_is_refused_and_the_feature_named() {
    let said = opened("sim");
    assert!(said.contains("opened: Err(\"TMA0906: ") && said.contains("feature `ptx-sim`"), "{said}");
}

/// Without the feature `cuda` there is no device to open, and the error is that of the GPU.
#[cfg(not(feature = "cuda"))]
#[test]
fn without_any_backend_the_missing_gpu_is_named() {
    for device in ["", "cuda"] {
        let said = opened(device);
        assert!(said.contains("opened: Err(\"TMA0603: "), "{said}");
    }
}
