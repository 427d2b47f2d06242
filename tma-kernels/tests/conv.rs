//! Convolutions, compared with plain Rust, on the simulator or on the device that `TMA_DEVICE`
//! names.
#![cfg(feature = "llvm")]

mod exact;

use exact::{Element, integers};
use tma_kernels::conv::{ConvElement, ConvError, ConvOptions, ConvTile, conv2d};
use tma_runtime::prelude::*;

/// A convolution. Extents are rows and columns.
#[derive(Clone, Copy, Debug)]
struct Case {
    images: usize,
    extents: [usize; 2],
    channels: usize,
    filters: usize,
    taps: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
}

/// Three images of 9 × 7 pixels, filters of 3 × 3, and no extent a multiple of a tile.
const USUAL: Case = Case {
    images: 3,
    extents: [9, 7],
    channels: 72,
    filters: 72,
    taps: [3, 3],
    stride: [1, 1],
    padding: [1, 1],
    dilation: [1, 1],
};

impl Case {
    fn output(&self) -> [usize; 4] {
        let extent = |axis: usize| {
            let padded = self.extents[axis] + 2 * self.padding[axis];
            let reach = self.dilation[axis] * (self.taps[axis] - 1);
            if padded > reach { (padded - reach - 1) / self.stride[axis] + 1 } else { 0 }
        };
        [self.images, extent(0), extent(1), self.filters]
    }

    fn shapes(&self) -> [[usize; 4]; 2] {
        let ([height, width], [rows, columns]) = (self.extents, self.taps);
        [[self.images, height, width, self.channels], [self.filters, rows, columns, self.channels]]
    }

    /// Returns the exact sums, by the definition of a convolution.
    fn sums<T: ConvElement + Element>(&self, images: &[T], filters: &[T]) -> Vec<f32> {
        let ([height, width], [rows, columns]) = (self.extents, self.taps);
        let [images, filters] =
            [images, filters].map(|all| all.iter().map(|x| x.value()).collect::<Vec<_>>());
        let [_, down, across, count] = self.output();
        let sum = |place: usize| {
            let (filter, x, y) = (place % count, place / count % across, place / count / across % down);
            let image = place / count / across / down;
            let mut sum = 0.0;
            for (r, s) in (0..rows).flat_map(|r| (0..columns).map(move |s| (r, s))) {
                let row = (y * self.stride[0] + r * self.dilation[0]).wrapping_sub(self.padding[0]);
                let column = (x * self.stride[1] + s * self.dilation[1]).wrapping_sub(self.padding[1]);
                if row < height && column < width {
                    let pixel = ((image * height + row) * width + column) * self.channels;
                    let tap = ((filter * rows + r) * columns + s) * self.channels;
                    let (pixel, tap) = (&images[pixel..][..self.channels], &filters[tap..]);
                    sum += pixel.iter().zip(tap).map(|(x, y)| x * y).sum::<f32>();
                }
            }
            sum
        };
        (0..self.images * down * across * count).map(sum).collect()
    }

    /// Convolves, and compares with the exact sums and the effect of the options.
    fn run<T: ConvElement + Element>(
        &self,
        device: &Device,
        tile: Option<ConvTile>,
        has_more: bool,
    ) -> Result<(), ConvError> {
        let [of_images, of_filters] = self.shapes();
        let images = integers::<T>(1, of_images.iter().product());
        let filters = integers::<T>(2, of_filters.iter().product());
        let bias = integers::<T>(3, self.filters);
        let of_bias = device.tensor(&bias, [bias.len()])?;
        let mut output = device.filled_bytes::<T, 4>(self.output(), 0xff)?;
        let &Self { stride, padding, dilation, .. } = self;
        let bias_view = has_more.then(|| of_bias.view());
        let options = ConvOptions { stride, padding, dilation, bias: bias_view, relu: has_more, tile };
        let (of_images, of_filters) =
            (device.tensor(&images, of_images)?, device.tensor(&filters, of_filters)?);
        conv2d(device, &of_images, &of_filters, &mut output, options)?;
        let found = output.to_vec()?;
        for (place, (found, sum)) in found.iter().zip(self.sums(&images, &filters)).enumerate() {
            let filter = place % self.filters;
            let wanted = if has_more { (sum + bias[filter].value()).max(0.0) } else { sum };
            assert!(
                *found == T::of(wanted),
                "{self:?} by {tile:?}, at {place}: {found:?} instead of {wanted}"
            );
        }
        Ok(())
    }

    #[track_caller]
    fn convolves<T: ConvElement + Element>(&self, tile: ConvTile) {
        for has_more in [false, true] {
            if let Err(error) = self.run::<T>(&device(), Some(tile), has_more) {
                panic!("{self:?} by {tile:?}: {error}");
            }
        }
    }
}

fn device() -> Device {
    Device::open().expect("a device")
}

#[test]
fn every_instance_convolves_ragged_images() {
    for tile in ConvTile::ALL {
        USUAL.convolves::<bf16>(tile);
        USUAL.convolves::<f16>(tile);
    }
}

#[test]
fn strides_paddings_dilations_and_taps_are_followed() {
    for case in [
        Case { stride: [2, 2], ..USUAL },
        Case { stride: [1, 3], padding: [0, 2], ..USUAL },
        Case { taps: [1, 1], padding: [0, 0], ..USUAL },
        Case { taps: [1, 1], padding: [0, 0], stride: [2, 2], ..USUAL },
        Case { taps: [5, 5], padding: [2, 2], channels: 8, ..USUAL },
        Case { taps: [2, 4], padding: [0, 3], channels: 8, ..USUAL },
        Case { dilation: [2, 3], padding: [2, 3], channels: 16, ..USUAL },
        // Padding larger than the filter, and images smaller than it.
        Case { padding: [4, 3], channels: 8, ..USUAL },
        Case { extents: [1, 2], padding: [1, 1], images: 80, ..USUAL },
        // One output pixel per image.
        Case { extents: [7, 7], taps: [7, 7], padding: [0, 0], images: 5, channels: 8, ..USUAL },
    ] {
        case.convolves::<bf16>(ConvTile::T64x64);
        case.convolves::<bf16>(ConvTile::T128x256);
    }
}

/// A cluster computes several tiles one after the other, since there are more tiles than
/// multiprocessors.
#[test]
fn persistent_blocks_process_several_tiles() {
    let tiles = device().multiprocessors() as usize + 3;
    let case = Case { images: tiles, extents: [8, 8], channels: 8, filters: 8, ..USUAL };
    case.convolves::<bf16>(ConvTile::T64x64);
}

#[test]
fn the_chosen_tile_convolves() -> Result<(), ConvError> {
    for case in
        [USUAL, Case { filters: 256, channels: 16, ..USUAL }, Case { filters: 8, channels: 8, ..USUAL }]
    {
        case.run::<f16>(&device(), None, true)?;
    }
    Ok(())
}

/// Neither the order of warps and blocks nor that in which copies arrive changes a bit.
#[test]
fn results_are_the_same_under_every_seed() {
    let check = |device: &Device| {
        USUAL.run::<bf16>(device, Some(ConvTile::T128x256), true)?;
        Case { images: 5, filters: 136, ..USUAL }.run::<bf16>(device, Some(ConvTile::T128x128), false)
    };
    if let Err(failure) = tma_runtime::testing::under_seeds(5, check) {
        panic!("{failure}");
    }
}

#[test]
fn without_elements_there_is_nothing_to_do_and_without_channels_there_is_the_bias() -> Result<(), ConvError> {
    let device = device();
    for case in [
        Case { images: 0, ..USUAL },
        Case { filters: 0, ..USUAL },
        Case { extents: [2, 7], taps: [5, 3], ..USUAL },
        Case { channels: 0, ..USUAL },
        Case { channels: 0, stride: [2, 2], ..USUAL },
        // Images without pixels, except for padding.
        Case { extents: [0, 7], padding: [2, 1], ..USUAL },
    ] {
        for has_more in [false, true] {
            case.run::<bf16>(&device, None, has_more)?;
        }
    }
    Ok(())
}

#[test]
fn views_are_convolved() -> Result<(), ConvError> {
    let device = device();
    let case = Case { extents: [6, 5], channels: 8, filters: 16, ..USUAL };
    // The last 8 of 24 channels of some columns; the taps of larger filters; the interior of a
    // padded output.
    let images = integers::<bf16>(1, 3 * 6 * 9 * 24);
    let filters = integers::<bf16>(2, 16 * 4 * 5 * 8);
    let (of_images, of_filters) =
        (device.tensor(&images, [3, 6, 9, 24])?, device.tensor(&filters, [16, 4, 5, 8])?);
    let mut output = device.filled_bytes::<bf16, 4>([3, 8, 7, 32], 0x7f)?;
    let inside = output.view_mut().slice([0..3, 1..7, 1..6, 8..24])?;
    let options = ConvOptions { padding: [1; 2], ..ConvOptions::default() };
    let seen = of_images.view().slice([0..3, 0..6, 2..7, 16..24])?;
    conv2d(&device, seen, of_filters.view().slice([0..16, 1..4, 0..3, 0..8])?, inside, options)?;

    let pick =
        |all: &[bf16], places: Vec<usize>| places.into_iter().map(|place| all[place]).collect::<Vec<_>>();
    let seen = (0..3 * 6 * 5 * 8).map(|i| (i / 40 * 9 + i / 8 % 5 + 2) * 24 + 16 + i % 8).collect();
    let taken =
        (0..16 * 9 * 8).map(|i| (i / 72 * 20 + (i / 24 % 3 + 1) * 5 + i / 8 % 3) * 8 + i % 8).collect();
    let sums = case.sums(&pick(&images, seen), &pick(&filters, taken));
    let untouched = bf16::from_bits(0x7f7f);
    for (place, found) in output.to_vec()?.into_iter().enumerate() {
        let [image, y, x, filter] = [place / (8 * 7 * 32), place / (7 * 32) % 8, place / 32 % 7, place % 32];
        let is_inside = (1..7).contains(&y) && (1..6).contains(&x) && (8..24).contains(&filter);
        let wanted = match is_inside {
            true => bf16::from_f32(sums[((image * 6 + y - 1) * 5 + x - 1) * 16 + filter - 8]),
            false => untouched,
        };
        assert!(
            found == wanted,
            "image {image}, row {y}, column {x}, filter {filter}: {found}, not {wanted}"
        );
    }
    Ok(())
}

#[test]
fn a_nan_stays_one() -> Result<(), ConvError> {
    let device = device();
    let images = device.tensor(&[bf16::NAN; 8], [1, 1, 1, 8])?;
    let filters = device.tensor(&[bf16::from_f32(1.0); 64], [8, 1, 1, 8])?;
    let mut output = device.zeros::<bf16, 4>([1, 1, 1, 8])?;
    conv2d(&device, &images, &filters, &mut output, ConvOptions { relu: true, ..ConvOptions::default() })?;
    assert!(output.to_vec()?.into_iter().all(bf16::is_nan));
    Ok(())
}

#[test]
fn convolutions_are_captured() -> Result<(), ConvError> {
    let device = device();
    let images = integers::<bf16>(1, 5 * 5 * 8);
    let filters = integers::<bf16>(2, 8 * 9 * 8);
    let of_images = device.tensor(&images, [1, 5, 5, 8])?;
    let of_filters = device.tensor(&filters, [8, 3, 3, 8])?;
    let mut output = device.zeros::<bf16, 4>([1, 3, 3, 8])?;
    let stream = device.stream()?;
    let graph = stream.capture(|capture| {
        conv2d(capture, &of_images, &of_filters, &mut output, ConvOptions::default()).map_err(|error| {
            match error {
                ConvError::Runtime(error) => error,
                other => panic!("{other}"),
            }
        })
    })?;
    graph.launch(&stream)?;
    let case = Case { images: 1, extents: [5, 5], channels: 8, filters: 8, padding: [0, 0], ..USUAL };
    let wanted: Vec<_> = case.sums(&images, &filters).into_iter().map(bf16::from_f32).collect();
    assert_eq!(output.to_vec()?, wanted);
    Ok(())
}

#[test]
fn invalid_arguments_are_rejected() -> Result<(), ConvError> {
    let device = device();
    let images = device.zeros::<bf16, 4>([2, 6, 5, 16])?;
    let filters = device.zeros::<bf16, 4>([24, 3, 3, 16])?;
    let mut output = device.zeros::<bf16, 4>([2, 4, 3, 24])?;
    conv2d(&device, &images, &filters, &mut output, ConvOptions::default())?;
    let refused = |result: Result<(), ConvError>| match result {
        Ok(()) => panic!("convolved"),
        Err(error) => (error.code(), error.to_string()),
    };

    let options = ConvOptions { padding: [1, 0], ..ConvOptions::default() };
    let (code, text) = refused(conv2d(&device, &images, &filters, &mut output, options));
    assert_eq!(code, "TMA0559");
    assert!(text.contains("`output` is [2, 4, 3, 24], but must be [2, 6, 3, 24]"), "{text}");
    let other = device.zeros::<bf16, 4>([24, 3, 3, 8])?;
    let (code, text) = refused(conv2d(&device, &images, &other, &mut output, ConvOptions::default()));
    assert!(code == "TMA0559" && text.contains("`filters` is [24, 3, 3, 8]"), "{text}");
    let bias = device.zeros::<bf16, 1>([23])?;
    let options = ConvOptions { bias: Some(bias.view()), ..ConvOptions::default() };
    assert_eq!(refused(conv2d(&device, &images, &filters, &mut output, options)).0, "TMA0559");

    let options = ConvOptions { stride: [9, 1], ..ConvOptions::default() };
    let (code, text) = refused(conv2d(&device, &images, &filters, &mut output, options));
    assert_eq!(code, "TMA0563");
    assert!(text.contains("the stride of rows must be 1 to 8: it is 9"), "{text}");

    // Pixels that do not begin at multiples of 16 bytes violate a rule of tensor maps.
    let odd = device.zeros::<bf16, 4>([2, 6, 5, 3])?;
    let filters = device.zeros::<bf16, 4>([24, 3, 3, 3])?;
    assert_eq!(refused(conv2d(&device, &odd, &filters, &mut output, ConvOptions::default())).0, "TMA0503");
    Ok(())
}
