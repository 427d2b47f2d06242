//! Keys and values of all layers, in pages.

use tma_runtime::prelude::*;

use crate::ModelError;
use crate::config::Config;

/// Rows of a page.
pub const PAGE_ROWS: usize = 64;

/// The keys and values of a layer: pages × heads × rows × depth.
#[derive(Debug)]
pub(crate) struct LayerCache {
    pub(crate) keys: DeviceTensor<bf16, 4>,
    pub(crate) values: DeviceTensor<bf16, 4>,
}

/// The keys and values of all layers. A page number stands for a page in each layer.
#[derive(Debug)]
pub struct Cache {
    pub(crate) layers: Vec<LayerCache>,
    pages: usize,
}

impl Cache {
    /// Allocates so many pages, each for [`PAGE_ROWS`] tokens.
    ///
    /// # Errors
    ///
    /// Errors of the device, such as [`OutOfMemory`](tma_runtime::Error::OutOfMemory).
    pub fn new(device: &Device, config: &Config, pages: usize) -> Result<Self, ModelError> {
        let shape = [pages, config.key_heads, PAGE_ROWS, config.depth];
        let layer = || Ok(LayerCache { keys: device.zeros(shape)?, values: device.zeros(shape)? });
        Ok(Self { layers: (0..config.layers()).map(|_| layer()).collect::<Result<_, ModelError>>()?, pages })
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Returns the bytes that a page takes in all layers.
    pub fn bytes_of_page(config: &Config) -> u64 {
        let elements = 2 * config.layers() * config.key_heads * PAGE_ROWS * config.depth;
        (elements * size_of::<bf16>()) as u64
    }
}

/// The pages that no sequence has.
#[derive(Debug)]
pub(crate) struct FreePages(Vec<u32>);

impl FreePages {
    /// Returns all pages.
    pub(crate) fn all(pages: usize) -> Self {
        Self((0..pages as u32).rev().collect())
    }

    /// Takes so many pages, or none if there are fewer.
    pub(crate) fn take(&mut self, count: usize) -> Option<Vec<u32>> {
        let rest = self.0.len().checked_sub(count)?;
        Some(self.0.split_off(rest))
    }

    /// Returns the number of pages.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Takes pages back.
    pub(crate) fn give_back(&mut self, pages: Vec<u32>) {
        self.0.extend(pages);
    }
}
