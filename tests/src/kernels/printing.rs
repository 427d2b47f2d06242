//! Tiles that are printed: whole rows, rows of several calls, slices, and stages.

use tma_runtime::prelude::*;

/// The output of [`print_tiles`].
pub const PRINTED: &str = include_str!("printing.txt");

/// Prints tiles of integers and floats, including the longest numbers of each.
#[tma_kernel(threads = 32)]
pub fn print_tiles(n: u32) {
    assume(n < 2);
    let halves: Tile<f16, Shape2<4, 16>, Swizzle32> = shared();
    let wide: Tile<f32, Shape2<2, 64>, Swizzle128> = shared();
    let cube: Tile<i32, Shape4<1, 2, 2, 4>> = shared();
    let lines: Stages<Tile<u8, Shape1<16>>, 2> = shared();
    let bytes: Tile<e4m3, Shape2<16, 16>> = shared();
    let longest: Tile<i64, Shape2<1, 2>> = shared();
    if thread_idx().x == 0 {
        for i in 0..64 {
            halves.set([i / 16, i % 16], f16::from_f32(i as f32 - 8.0));
        }
        halves.set([3, 15], f16::from_bits(0x8001)); // the negative number closest to zero
        print_tile(halves);

        for i in 0..128 {
            wide.set([i / 64, i % 64], i as f32 * 0.5);
        }
        wide.set([1, 0], f32::MIN);
        wide.set([1, 63], f32::INFINITY);
        print_tile(wide);

        for i in 0..16 {
            cube.set([0, i / 8, i / 4 % 2, i % 4], i * -1000);
            for line in 0..2u32 {
                lines[line].set([i], 255 - i as u8);
            }
        }
        cube.set([0, 1, 1, 3], i32::MIN);
        print_tile(cube);
        print_tile(lines[n]);

        for i in 0..256 {
            bytes.set([i / 16, i % 16], e4m3::from_f32(i as f32));
        }
        let band = bytes.band::<8>(1);
        print_tile(band);
        longest.set([0, 0], i64::MIN);
        longest.set([0, 1], i64::MAX);
        print_tile(longest);
    }
}

/// Prints stage 1.
pub fn run(device: &Device) -> Result<(), Error> {
    print_tiles::launch(device, 1, 1)?;
    device.synchronize()
}
