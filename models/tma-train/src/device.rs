//! The device of a run, and its greatest rate of operations.

use tma_runtime::{Device, Error};

use crate::error::TrainError;

/// Returns the device of a name: `sim`, `3` or `cuda:3`. `None` stands for the first GPU, or the
/// device that the environment variable `TMA_DEVICE` names.
///
/// # Errors
///
/// [`TrainError::Option`], [`TrainError::NoGpu`] and [`TrainError::Device`].
pub fn open(name: Option<&str>) -> Result<Device, TrainError> {
    match name {
        None if std::env::var("TMA_DEVICE").is_ok_and(|name| !name.trim().is_empty()) => Ok(Device::open()?),
        None => Device::cuda(0).map_err(|error| match error {
            Error::NoBackend | Error::NoDriver { .. } | Error::NoDevice { .. } => {
                TrainError::NoGpu { reason: Box::new(error) }
            }
            other => other.into(),
        }),
        Some("sim") => Ok(Device::simulator()),
        Some(name) => {
            let number = name.strip_prefix("cuda:").unwrap_or(name).parse().map_err(|_| TrainError::Option {
                name: "device",
                found: name.into(),
                wanted: "give sim, or the number of a GPU, as 0 or cuda:0".into(),
            });
            open_gpu(number?)
        }
    }
}

#[cfg(feature = "cuda")]
fn open_gpu(number: u32) -> Result<Device, TrainError> {
    Ok(Device::cuda(number)?)
}

#[cfg(not(feature = "cuda"))]
fn open_gpu(number: u32) -> Result<Device, TrainError> {
    Err(TrainError::Option {
        name: "device",
        found: number.to_string(),
        wanted: "this program was built without GPUs: build it with --features cuda".into(),
    })
}

/// Returns the dense `bf16` operations a second that NVIDIA states for a GPU of this name, if it is
/// an H100 or H200 in an SXM module. Those on cards have lower limits of power.
pub fn peak(name: &str) -> Option<f64> {
    let is_sxm = ["NVIDIA H100", "NVIDIA H200"].iter().any(|prefix| name.starts_with(prefix));
    let is_card = ["PCIe", "NVL"].iter().any(|part| name.contains(part));
    (is_sxm && !is_card).then_some(989e12)
}
