//! The convolution kernel.

use tma_runtime::tma_module;

/// A convolution as a GEMM whose A is never written to memory: it has a row for each pixel of the
/// output, a column for each tap and channel, and is multiplied by the filters. The copy engine
/// gathers the rows in im2col mode, tap by tap.
///
/// A block computes one tile of `PIXELS` pixels and `BN` filters after the other. One warp loads,
/// and `WARPGROUPS` warpgroups with `REGISTERS` registers per thread compute 64 pixels each. They
/// store through `EPILOGUE_STAGES` buffers: when a store starts, `STORES_IN_FLIGHT` others may
/// still read theirs.
#[tma_module]
pub mod convolution {
    use tma_runtime::prelude::*;

    use crate::gemm::device::schedule::ring_stages;

    /// Returns the image, row and column of a pixel of the output.
    #[tma_device]
    fn place(pixel: u32, height: u32, width: u32) -> [u32; 3] {
        [pixel / width / height, pixel / width % height, pixel % width]
    }

    /// Computes output = images * filters + bias. The output has `pixels` pixels in images of
    /// `height` × `width`; filters have `taps_y` × `taps_x` taps.
    #[tma_kernel(threads = 128 * (1 + WARPGROUPS), unchecked, instances(
        let PIXELS = 64 * WARPGROUPS,
        let REGISTERS = if WARPGROUPS > 2 { 152 } else { 232 },
        let STORES_IN_FLIGHT = if BN % 128 == 0 && WARPGROUPS < 3 { 1 } else { 0 },
        let EPILOGUE_STAGES = WARPGROUPS * (STORES_IN_FLIGHT + 1),
        let STAGES = ring_stages(PIXELS, BN, EPILOGUE_STAGES);

        T in [bf16, f16],
        (WARPGROUPS, BN) in [
            t128x256 = (2, 256),
            t192x128 = (3, 128),
            t128x128 = (2, 128),
            t64x128 = (1, 128),
            t128x64 = (2, 64),
            t64x64 = (1, 64),
        ];
    ))]
    pub fn forward<
        T,
        const WARPGROUPS: u32,
        const REGISTERS: u32,
        const PIXELS: u32,
        const BN: u32,
        const STAGES: u32,
        const EPILOGUE_STAGES: u32,
        const STORES_IN_FLIGHT: u32,
    >(
        images: Im2colMap<Tile<T, Shape2<PIXELS, 64>, Swizzle128>, 4>,
        filters: TensorMap<Tile<T, Shape4<1, 1, BN, 64>, Swizzle128>>,
        bias: Global<T>,
        output: Im2colMap<Tile<T, Shape2<64, 64>, Swizzle128>, 4>,
        pixels: u32,
        height: u32,
        width: u32,
        count: u32,
        channels: u32,
        taps_y: u32,
        taps_x: u32,
        stride_y: u32,
        stride_x: u32,
        padding_y: u32,
        padding_x: u32,
        dilation_y: u32,
        dilation_x: u32,
        relu: u32,
    ) where
        T: Multiply<T, f32> + Number,
        f32: StoreAs<T>,
        Tile<T, Shape2<64, 64>, Swizzle128>: Left<64, 64, Element = T>,
        Tile<T, Shape4<1, 1, BN, 64>, Swizzle128>: Right<BN, 64, Element = T>,
    {
        let ring: Pipeline<
            (Tile<T, Shape2<PIXELS, 64>, Swizzle128>, Tile<T, Shape4<1, 1, BN, 64>, Swizzle128>),
            STAGES,
        > = shared();
        let buffers: Stages<Tile<T, Shape2<64, 64>, Swizzle128>, EPILOGUE_STAGES> = shared();
        let biases: Stages<SharedArray<f32, BN>, WARPGROUPS> = shared();
        if thread_idx().x == 0 {
            images.prefetch_descriptor();
            filters.prefetch_descriptor();
            output.prefetch_descriptor();
            ring.init(WARPGROUPS * 4); // one arrival per multiplying warp
            fence_barrier_init();
        }
        sync_threads();
        grid_dependency_wait();
        grid_dependency_launch(); // the next launch may begin to prepare

        // Concurrent blocks share pixels, since there are few filters.
        let across = count.div_ceil(BN);
        let units = pixels.div_ceil(PIXELS) * across;
        let deep = channels.div_ceil(64);
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                for unit in (block_idx().x..units).step_by(grid_dim().x as usize) {
                    let first = unit / across * PIXELS;
                    let at = place(first, height, width);
                    let y = (at[1] * stride_y) as i32 - padding_y as i32;
                    let x = (at[2] * stride_x) as i32 - padding_x as i32;
                    for step in 0..taps_y * taps_x * deep {
                        let tap = [step / deep / taps_x, step / deep % taps_x];
                        let channel = step % deep * 64;
                        let offsets = [(tap[0] * dilation_y) as u16, (tap[1] * dilation_x) as u16];
                        let slot = producer.acquire();
                        images.load(slot.0, [at[0] as i32, y, x, channel as i32], offsets, slot.barrier());
                        let of_filters = [tap[0], tap[1], unit % across * BN, channel];
                        filters.load(slot.1, of_filters, slot.barrier());
                    }
                }
            }
        } else {
            setmaxnreg_inc::<REGISTERS>();
            let warpgroup = warpgroup_idx() - 1;
            let leader = thread_idx().x % 128 == 0;
            let mut consumer = ring.consumer();
            for unit in (block_idx().x..units).step_by(grid_dim().x as usize) {
                let first = unit / across * PIXELS + warpgroup * 64;
                let column = unit % across * BN;
                let mut sum = Accumulator::<f32, 64, BN>::zero();
                let slot = consumer.wait();
                let mut flight = sum.mma(slot.0.band::<64>(warpgroup), slot.1, slot);
                for _ in 1..taps_y * taps_x * deep {
                    let slot = consumer.wait();
                    let done = flight.mma(slot.0.band::<64>(warpgroup), slot.1, slot);
                    if elect_one() {
                        done.release();
                    }
                }
                let last = flight.wait();
                if elect_one() {
                    last.release();
                }

                if bias.len() > 0 {
                    sync_warpgroup(); // all threads have read those of the previous tile
                    for j in (thread_idx().x % 128..BN).step_by(128) {
                        biases[warpgroup]
                            .set(j, if column + j < count { cast(bias.get(column + j)) } else { 0.0 });
                    }
                    sync_warpgroup();
                    for e in unroll(0..sum.len()) {
                        sum[e] += biases[warpgroup].get(sum.at(e)[1]);
                    }
                }
                if relu != 0 {
                    for e in unroll(0..sum.len()) {
                        sum[e] = if sum[e] < 0.0 { 0.0 } else { sum[e] }; // keeps a NaN
                    }
                }
                let at = place(first, height, width);
                for j in unroll(0..BN / 64) {
                    let buffer = buffers[warpgroup * (STORES_IN_FLIGHT + 1) + j % (STORES_IN_FLIGHT + 1)];
                    if leader {
                        bulk_wait_group_read::<STORES_IN_FLIGHT>(); // the last store from this buffer has read it
                    }
                    sync_warpgroup();
                    sum.columns::<64>(j).store(buffer);
                    fence_proxy_async();
                    sync_warpgroup();
                    if leader {
                        if first < pixels {
                            output.store([at[0], at[1], at[2], column + j * 64], buffer);
                        }
                        bulk_commit_group(); // also without a store: buffers are tracked by groups
                    }
                }
            }
            if leader {
                bulk_wait_group_read::<0>();
            }
        }
    }
}
