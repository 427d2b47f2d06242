//! Statuses of the CUDA driver.

use std::fmt;

/// A status of the CUDA driver, with the driver's name and description of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverStatus {
    /// The value of the enum `CUresult`.
    pub code: i32,
    /// The name, such as `CUDA_ERROR_OUT_OF_MEMORY`. Empty if the driver does not know the status,
    /// or if there is no driver.
    pub name: String,
    /// The driver's description, or the loader's if there is no driver.
    pub description: String,
}

impl fmt::Display for DriverStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name.as_str(), self.description.as_str()) {
            ("", "") => write!(f, "CUDA error {}", self.code),
            ("", description) => f.write_str(description),
            (name, description) => write!(f, "{name} ({}: {description})", self.code),
        }
    }
}

impl DriverStatus {
    /// Returns whether a kernel stopped with a fault, after which every call on the context fails.
    ///
    /// Source: CUDA driver API, `CUresult`: the statuses after which the context cannot be used and
    /// the process must be relaunched.
    pub fn is_fault(&self) -> bool {
        matches!(self.code, 700 | 702 | 710 | 714..=719)
    }

    /// Returns the usual cause of a status in kernels written with this crate, as the end of a
    /// sentence.
    pub(crate) fn hint(&self) -> &'static str {
        match self.code {
            700 => "; the kernel accessed unallocated memory, or a view outlived its memory",
            701 => "; a block of this kernel needs more registers or threads than the device has per block",
            710 => "; an `assert!` in the kernel failed (see its message above)",
            // Observed on an H200: the copy engine's response to a bad coordinate.
            715 => {
                "; a tensor copy started at an innermost coordinate that is not a multiple of 16 bytes, or a \
                 store at a negative coordinate"
            }
            716 => "; the kernel made a misaligned memory access",
            719 => {
                "; the kernel reached `trap()`, failed an `assert!`, or accessed a `Global` or shared memory out \
                 of bounds"
            }
            _ => "",
        }
    }
}

/// Kernel names as part of a sentence.
pub(crate) struct KernelNames<'a>(pub(crate) &'a [&'static str]);

impl fmt::Display for KernelNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("none of this crate"),
            names => f.write_str(&names.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_statuses_are_explained() {
        let text = |name: &str, description: &str| {
            DriverStatus { code: 303, name: name.to_owned(), description: description.to_owned() }.to_string()
        };
        assert_eq!(text("", ""), "CUDA error 303");
        assert_eq!(text("", "libcuda.so.1: no such file"), "libcuda.so.1: no such file");
        assert_eq!(text("CUDA_ERROR_X", "words"), "CUDA_ERROR_X (303: words)");
    }
}
