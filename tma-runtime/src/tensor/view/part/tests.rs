//! Tests of parts of tensors: their positions, and the errors.

use super::*;
use crate::device::Device;
use crate::layout::DeviceId;
use crate::tensor::DeviceTensor;

fn tensor() -> DeviceTensor<u16, 3> {
    Device::simulator().zeros([4, 6, 8]).expect("the simulator has memory")
}

fn code<T>(result: Result<T, Error>) -> Option<&'static str> {
    result.err().map(|error| error.code())
}

#[test]
fn a_slice_begins_at_its_first_element() {
    let tensor = tensor();
    let part = tensor.view().slice([1..3, 2..6, 0..8]).expect("it lies within");
    assert_eq!((part.shape(), part.strides()), ([2, 4, 8], [48, 8, 1]));
    assert_eq!(part.as_ptr(), tensor.as_ptr() + 2 * (48 + 2 * 8));
    let again = part.slice([1..2, 0..1, 3..8]).expect("so does a part of it");
    assert_eq!(again.as_ptr(), tensor.as_ptr() + 2 * (2 * 48 + 2 * 8 + 3));
    let none = tensor.view().slice([4..4, 0..6, 0..8]).expect("nothing lies anywhere");
    assert_eq!((none.shape(), none.as_ptr()), ([0, 6, 8], tensor.as_ptr()));
}

#[test]
fn tma0540_a_slice_is_within_the_view() {
    let tensor = tensor();
    assert_eq!(code(tensor.view().slice([0..4, 0..6, 0..8])), None);
    assert_eq!(code(tensor.view().slice([0..5, 0..6, 0..8])), Some("TMA0540"));
    assert_eq!(code(tensor.view().slice([0..4, 7..7, 0..8])), Some("TMA0540"));
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let backwards = tensor.view().slice([0..4, 3..2, 0..8]);
    assert!(backwards.is_err_and(|error| error.to_string().contains("begin before it ends")));
    let part = tensor.view().slice([0..2, 0..6, 0..8]).expect("it lies within");
    assert_eq!(code(part.slice([0..3, 0..6, 0..8])), Some("TMA0540"));
}

#[test]
fn a_split_gives_each_element_to_one_part() {
    let mut tensor = tensor();
    let address = tensor.as_ptr();
    let [left, right] = tensor.view_mut().split_at(2, 3).expect("it lies within");
    assert_eq!((left.shape(), left.strides(), left.as_ptr()), ([4, 6, 3], [48, 8, 1], address));
    assert_eq!((right.shape(), right.strides(), right.as_ptr()), ([4, 6, 5], [48, 8, 1], address + 6));
    let [upper, lower] = right.split_at(0, 1).expect("so does a part of it");
    assert_eq!((upper.shape(), lower.shape()), ([1, 6, 5], [3, 6, 5]));
    assert_eq!(lower.as_ptr(), address + 2 * (48 + 3));
    let [all, none] = tensor.view_mut().split_at(1, 6).expect("the end is an index too");
    assert_eq!((all.shape(), none.shape()), ([4, 6, 8], [4, 0, 8]));
}

#[test]
fn tma0540_a_split_is_within_the_view() {
    let mut tensor = tensor();
    assert_eq!(code(tensor.view_mut().split_at(1, 7)), Some("TMA0540"));
    assert_eq!(code(tensor.view_mut().split_at(3, 0)), Some("TMA0540"));
}

/// New strides do not lead into the other part.
#[test]
fn tma0544_a_part_of_a_split_stays_within() {
    let mut tensor = tensor();
    let [left, _] = tensor.view_mut().split_at(2, 3).expect("it lies within");
    assert_eq!(code(left.with_strides([4], [1])), Some("TMA0544"));
    let [left, right] = tensor.view_mut().split_at(2, 3).expect("it lies within");
    assert_eq!(code(left.with_strides([4, 1, 6, 3], [48, 7, 8, 1])), None);
    assert_eq!(code(right.as_view().with_strides([8], [1])), Some("TMA0544"));
    let whole_rows = |tensor: &mut DeviceTensor<u16, 3>, extent: usize| {
        let [upper, _] = tensor.view_mut().split_at(0, 1).expect("it lies within");
        code(upper.with_strides([extent], [1]))
    };
    assert_eq!(whole_rows(&mut tensor, 48), None);
    assert_eq!(whole_rows(&mut tensor, 49), Some("TMA0542"));
}

#[test]
fn a_permutation_takes_extents_and_strides_along() {
    let tensor = tensor();
    let turned = tensor.view().permute([2, 0, 1]).expect("each dimension once");
    assert_eq!((turned.shape(), turned.strides()), ([8, 4, 6], [1, 48, 8]));
    assert_eq!(turned.as_ptr(), tensor.as_ptr());
}

#[test]
fn tma0541_each_dimension_occurs_once() {
    let tensor = tensor();
    assert_eq!(code(tensor.view().permute([0, 1, 2])), None);
    assert_eq!(code(tensor.view().permute([0, 1, 1])), Some("TMA0541"));
    assert_eq!(code(tensor.view().permute([1, 2, 3])), Some("TMA0541"));
}

#[test]
fn tma0542_the_memory_is_not_left() {
    let tensor = tensor();
    let strided = |shape: [usize; 2], strides| code(tensor.view().with_strides(shape, strides));
    assert_eq!(strided([24, 8], [8, 1]), None);
    assert_eq!(strided([25, 8], [8, 1]), Some("TMA0542"));
    assert_eq!(strided([24, 9], [8, 1]), Some("TMA0542"));
    assert_eq!(strided([185, 8], [1, 1]), None);
    assert_eq!(strided([186, 8], [1, 1]), Some("TMA0542"));
    assert_eq!(strided([0, 999], [1, 1]), None);
    assert_eq!(strided([usize::MAX, usize::MAX], [usize::MAX, usize::MAX]), Some("TMA0542"));
    // The limit is the end of the tensor, not that of the slice.
    let part = tensor.view().slice([1..2, 0..6, 0..8]).expect("it lies within");
    assert_eq!(code(part.with_strides([144], [1])), None);
    assert_eq!(code(part.with_strides([145], [1])), Some("TMA0542"));
    let empty = Device::simulator().zeros::<f32, 1>([0]).expect("it takes no memory");
    assert_eq!(code(empty.view().with_strides([1], [1])), Some("TMA0542"));
}

#[test]
fn tma0543_writable_elements_are_disjoint() {
    let mut tensor = tensor();
    let mut strided = |shape: [usize; 3], strides| code(tensor.view_mut().with_strides(shape, strides));
    assert_eq!(strided([2, 3, 8], [24, 8, 1]), None);
    assert_eq!(strided([3, 2, 8], [8, 24, 1]), None);
    assert_eq!(strided([1, 3, 8], [0, 8, 1]), None);
    assert_eq!(strided([2, 3, 8], [23, 8, 1]), Some("TMA0543"));
    assert_eq!(strided([2, 3, 8], [24, 7, 1]), Some("TMA0543"));
    assert_eq!(strided([2, 1, 1], [0, 1, 1]), Some("TMA0543"));
    assert_eq!(strided([2, 3, 8], [24, 16, 1]), Some("TMA0543"));
    assert_eq!(strided([0, 3, 8], [0, 0, 0]), None);
    assert_eq!(code(tensor.view().with_strides([100, 64], [1, 1])), None, "a view to read");
}

#[test]
fn disjoint_views_have_distinct_addresses() {
    for case in 0..20_000_usize {
        let shape = [1 + case % 3, 1 + case / 3 % 3, 1 + case / 9 % 4];
        let strides = [case / 36 % 11, case / 400 % 7, case / 2800 % 8];
        let mut addresses: Vec<usize> = (0..shape.iter().product())
            .map(|i| [i % shape[0], i / shape[0] % shape[1], i / shape[0] / shape[1]])
            .map(|index| index.iter().zip(strides).map(|(i, stride)| i * stride).sum())
            .collect();
        let (all, last) = (addresses.len(), addresses.iter().max().copied().unwrap_or_default());
        assert_eq!(reach(shape.into_iter().zip(strides)), last as u128 + 1);
        addresses.sort_unstable();
        addresses.dedup();
        assert!(check_disjoint(shape, strides).is_err() || addresses.len() == all, "{shape:?}, {strides:?}");
    }
}

#[test]
fn tma0544_memory_from_an_address_ends_with_the_view() {
    let device = DeviceId::Simulator(0);
    let whole = TensorView::<f32, 2>::new(device, 0x1000, [4, 16], [16, 1]);
    assert_eq!(code(whole.with_strides([64], [1])), None);
    assert_eq!(code(whole.with_strides([65], [1])), Some("TMA0542"));
    let gaps = TensorView::<f32, 2>::new(device, 0x1000, [4, 8], [16, 1]);
    assert_eq!(code(gaps.with_strides([32], [1])), Some("TMA0544"));
    assert_eq!(code(whole.slice([0..4, 0..8]).and_then(|part| part.with_strides([64], [1]))), None);
    assert_eq!(
        code(whole.slice([0..4, 0..8]).and_then(|part| part.with_strides([65], [1]))),
        Some("TMA0542")
    );
    // The same elements with another number of dimensions, and none.
    assert_eq!(code(gaps.with_strides([1, 4, 8], [64, 16, 1])), None);
    assert_eq!(code(gaps.with_strides([1, 4, 9], [64, 16, 1])), Some("TMA0544"));
    assert_eq!(code(gaps.with_strides([4, 8], [17, 1])), Some("TMA0544"));
    assert_eq!(code(gaps.with_strides([0], [1])), None);
    assert_eq!(code(whole.slice([1..4, 0..16]).and_then(|part| part.with_strides([48], [1]))), None);
}

#[test]
fn parts_of_contiguous_memory_from_an_address_may_have_other_strides() {
    let tensor = tensor();
    // SAFETY: nothing is launched, and the elements are the tensor's.
    let all = unsafe { TensorView::<u16, 1>::from_raw(&Device::simulator(), tensor.as_ptr(), [192], [1]) };
    let columns = all.with_strides([4, 4, 8], [48, 8, 1]).expect("it lies within");
    let flat = columns.with_strides([3 * 48 + 3 * 8 + 8], [1]).expect("so do the gaps");
    assert_eq!(flat.as_ptr(), tensor.as_ptr());
    assert_eq!(code(columns.with_strides([193], [1])), Some("TMA0542"));
    let later = columns.slice([1..4, 0..4, 0..8]).expect("it lies within");
    assert_eq!(code(later.with_strides([192 - 48], [1])), None);
    assert_eq!(code(later.with_strides([192 - 47], [1])), Some("TMA0542"));
    let turned = later.permute([1, 0, 2]).expect("each dimension occurs once");
    assert_eq!(code(turned.with_strides([192 - 48], [1])), None);
    assert_eq!(code(turned.with_strides([192 - 47], [1])), Some("TMA0542"));
}

#[test]
fn absurd_views_do_not_overflow() {
    let (device, most) = (DeviceId::Simulator(0), usize::MAX);
    let view = TensorView::<f64, 2>::new(device, u64::MAX - 7, [most, most], [most, most]);
    let part = view.slice([most - 1..most, 5..most]);
    assert_eq!(part.map(|part| part.shape()).ok(), Some([1, most - 5]));
    assert_eq!(code(view.with_strides([1], [1])), Some("TMA0544"));
}
