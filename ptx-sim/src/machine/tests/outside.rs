//! Notes about boxes that lie wholly outside a tensor of 64 by 64, with boxes of 16 by 16.

use super::*;

/// Returns the notes on stores at these coordinates, innermost first, all at one line.
fn notes(stores: &[[i32; 2]]) -> Vec<String> {
    let mut lab = Lab::with(0, 1, Checks::NONE, matrix);
    let site = lab.site();
    for &[x, y] in stores {
        let copy = lab.named(None, [x, y, 0, 0, 0], TensorAction::Store { tile: 0 });
        let stored = lab.machine.tensor_copy(Actor { thread: thread_id(0), site }, &copy);
        assert_eq!(stored, Ok(()));
    }
    let notes = lab.machine.take_notes();
    assert!(lab.machine.findings_so_far() == 0);
    notes.iter().map(|note| format!("{} {}", note.times, note.message)).collect()
}

#[test]
fn boxes_that_touch_the_tensor_are_not_noted() {
    assert_eq!(notes(&[[0, 0], [60, 0], [0, 63]]), [""; 0]);
}

#[test]
fn boxes_wholly_outside_are_noted_once_a_line() {
    let wanted = "2 a box at [64, 0] is entirely outside of a tensor of [64, 64] (outermost dimension first), \
                  so the store writes nothing";
    assert_eq!(notes(&[[0, 0], [0, 64], [80, 0]]), [wanted]);
}

#[test]
fn prefetches_are_not_noted() {
    let mut lab = Lab::new(0, 1);
    assert_eq!(lab.copy(thread_id(0), [64, 0, 0, 0, 0], TensorAction::Prefetch), Ok(()));
    assert!(lab.machine.take_notes().is_empty());
}
