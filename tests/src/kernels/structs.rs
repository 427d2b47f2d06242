//! Structs, tuples and patterns, compared with the same functions in plain Rust.

use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::samples;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case {
        name: "structs::values",
        run: |device, options| {
            let launch: Launch =
                |device, grid, input, out| walks::structs_values::launch(device, grid, input, out);
            check(device, options, launch, walks::valued)
        },
    },
    Case {
        name: "structs::branches",
        run: |device, options| {
            let launch: Launch =
                |device, grid, input, out| walks::structs_branches::launch(device, grid, input, out);
            check(device, options, launch, walks::branched)
        },
    },
    Case {
        name: "structs::patterns",
        run: |device, options| {
            let launch: Launch =
                |device, grid, input, out| walks::structs_patterns::launch(device, grid, input, out);
            check(device, options, launch, walks::patterned)
        },
    },
    Case { name: "structs::handles", run: handles },
];

type Launch = fn(&Device, Grid, &DeviceTensor<u32, 1>, &mut DeviceTensor<u32, 1>) -> Result<(), Error>;

/// Compares a kernel that maps each input to a result with the function that computes it in Rust.
fn check(device: &Device, options: &Options, launch: Launch, wanted: fn(u32) -> u32) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let mut inputs = samples::<u32>(17, n);
    // Small numbers, for which the branches and loops differ.
    for (i, input) in inputs.iter_mut().enumerate().skip(1).step_by(2) {
        *input = i as u32 % 61;
    }
    let wanted: Vec<u32> = inputs.iter().map(|&x| wanted(x)).collect();
    let mut out = device.filled_bytes([n], 0xab)?;
    launch(device, blocks(n), &device.tensor(&inputs, [n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

/// The functions of the structs, and the device functions, are called by kernels and by the host.
#[tma_module]
pub mod walks {
    use tma_runtime::prelude::*;

    const START: Step = Step(3, 5);

    /// A position.
    #[derive(Clone, Copy)]
    pub struct Point {
        /// The row.
        pub row: u32,
        /// The column.
        pub column: u32,
    }

    /// A tuple struct.
    #[derive(Clone, Copy)]
    pub struct Step(u32, u32);

    /// Structs, arrays and tuples in a struct.
    #[derive(Clone, Copy)]
    pub struct Walk {
        /// The current position.
        pub at: Point,
        /// Sums of rows, by the number of the step.
        pub seen: [u32; 4],
        /// The greatest distance, and its position.
        pub best: (u32, Point),
    }

    /// Handles in a struct.
    #[derive(Clone, Copy)]
    pub struct Window {
        rows: Global<u32>,
        staged: SharedArray<u32, 128>,
        first: u32,
    }

    #[tma_device]
    impl Point {
        /// Creates a point within 4096 rows and columns.
        pub fn new(row: u32, column: u32) -> Self {
            Self { row: row & 0xfff, column: column & 0xfff }
        }

        /// Takes the receiver by value, and modifies its copy.
        pub fn hash(mut self) -> u32 {
            self.row ^= self.column << 7;
            self.row * 5 + self.column
        }

        /// Returns the distance in rows plus that in columns.
        pub fn distance(&self, to: &Point) -> u32 {
            let Point { row, column } = *to;
            let rows = self.row.abs_diff(row);
            let columns = self.column.max(column) - self.column.min(column);
            rows + columns
        }

        /// Moves the point, and keeps it above the diagonal.
        pub fn advance(&mut self, by: Step) {
            self.row = (self.row + by.0) & 0xfff;
            self.column = (self.column + by.1) & 0xfff;
            if self.row > self.column {
                *self = self.swapped();
            }
        }

        /// Exchanges row and column.
        pub fn swapped(&self) -> Point {
            Point { row: self.column, column: self.row }
        }
    }

    #[tma_device]
    impl Walk {
        /// Starts a walk.
        pub fn from(at: Point) -> Walk {
            Walk { at, seen: [0; 4], best: (0, Point::new(0, 0)) }
        }

        /// Takes several steps.
        pub fn walk(&mut self, step: Step, steps: u32) {
            for i in 0..steps {
                self.at.advance(step);
                match i % 4 {
                    0 => self.seen[0] += self.at.row,
                    1 => self.seen[1] += self.at.row,
                    2 => self.seen[2] += self.at.row,
                    _ => self.seen[3] += self.at.row,
                }
                let distance = self.at.distance(&Point { row: 100, ..self.at.swapped() });
                if distance > self.best.0 {
                    self.best = (distance, self.at);
                }
            }
        }

        /// Returns a number that depends on all fields.
        pub fn result(&self) -> u32 {
            let [a, b, .., c] = self.seen;
            let (distance, point) = self.best;
            (a ^ (b << 3) ^ (c << 5)) + distance + point.hash() + self.at.hash()
        }
    }

    #[tma_device]
    impl Window {
        /// Creates a window of 128 elements from `first` on.
        pub fn new(rows: Global<u32>, staged: SharedArray<u32, 128>, first: u32) -> Window {
            Window { rows, staged, first }
        }

        /// Copies the thread's element to shared memory.
        pub fn stage(&self) {
            self.staged.set(thread_idx().x, self.rows.get(self.first + thread_idx().x));
        }

        /// Returns the elements before and behind element `i`.
        pub fn around(&self, i: u32) -> (u32, u32) {
            (self.staged.get((i + 127) % 128), self.staged.get((i + 1) % 128))
        }
    }

    /// Modifies the fields of a variable, one of them by reference.
    #[tma_device]
    fn bump(x: &mut u32, by: u32) -> u32 {
        *x += by;
        *x
    }

    /// Literals, fields, whole assignments, methods, and the order of evaluation.
    #[tma_device]
    pub fn valued(x: u32) -> u32 {
        let mut p = Point::new(x, x >> 8);
        p = Point { row: p.column, column: p.row };
        let q = p;
        p.row += 1;
        let mut walk = Walk::from(p);
        walk.walk(START, x % 7);
        let copy = walk;
        walk.at = q;
        walk.at.column ^= 3;
        walk.walk(Step(x & 3, 7), 5);
        let mut pair = (walk.at, copy);
        let sum = pair.0.row + bump(&mut pair.0.row, 2) + pair.0.row;
        pair.1.seen[1] += sum;
        (walk.result() ^ copy.result()) + pair.1.result()
    }

    /// Structs from branches, from functions with several exits, and in loops.
    #[tma_device]
    pub fn branched(x: u32) -> u32 {
        let p = Point::new(x, x >> 12);
        let q = if x & 1 == 0 {
            p.swapped()
        } else if x % 3 == 0 {
            Point { row: 1, ..p }
        } else {
            p
        };
        let r = match x % 5 {
            0 => (q, 1),
            1 | 2 => (p, q.row),
            _ => (Point::new(p.row, q.row), x & 0xff),
        };
        let (mut last, mut count) = (r.0, 0);
        while count < 9 {
            let (next, is_end) = following(last, count + r.1);
            if is_end {
                break;
            }
            (last, count) = (next, count + 1);
        }
        last.hash() + q.hash() + r.1 + count
    }

    #[tma_device]
    fn following(p: Point, by: u32) -> (Point, bool) {
        if by % 11 == 10 {
            return (p, true);
        }
        let mut p = p;
        p.advance(Step(by % 16, 1));
        if p.column % 2 == 1 {
            return (Point { column: p.column - 1, ..p }, false);
        }
        (p.swapped(), by > 1000)
    }

    /// Patterns of every kind, shadowing, and destructuring assignments.
    #[tma_device]
    pub fn patterned(x: u32) -> u32 {
        let [a, b, c] = [x & 0xff, (x >> 8) & 0xff, x >> 24];
        let (mut low, mut high) = (a, b);
        if low > high {
            (low, high) = (high, low);
        }
        let ((low, _), [first, .., last]) = ((low + 1, high), [c, low, high, a]);
        let Step(rows, columns) = START;
        let Walk { at: Point { row, column: mut height }, seen: [_, seen, ..], best: (_, best) } =
            Walk { at: Point::new(rows + a, columns + b), seen: [a, b, c, 0], best: (c, Point::new(b, c)) };
        height += seen;
        let (a, b) = (b, a);
        let mut numbers = [1, 2, 3];
        [numbers[0], _, numbers[2]] = [numbers[2] + a, 0, numbers[0] + b];
        low + high + first * last + row + height + best.hash() + numbers[0] * 3 + numbers[2] + a * 2 + b
    }

    /// Structs and tuples.
    #[tma_kernel(threads = 128)]
    pub fn structs_values(input: Global<u32>, out: Global<u32>) {
        let i = block_idx().x * 128 + thread_idx().x;
        out.set(i, valued(input.get(i)));
    }

    /// Structs in control flow.
    #[tma_kernel(threads = 128)]
    pub fn structs_branches(input: Global<u32>, out: Global<u32>) {
        let i = block_idx().x * 128 + thread_idx().x;
        out.set(i, branched(input.get(i)));
    }

    /// Patterns.
    #[tma_kernel(threads = 128)]
    pub fn structs_patterns(input: Global<u32>, out: Global<u32>) {
        let i = block_idx().x * 128 + thread_idx().x;
        out.set(i, patterned(input.get(i)));
    }

    /// Handles in structs.
    #[tma_kernel(threads = 128)]
    pub fn structs_handles(input: Global<u32>, out: Global<u32>) {
        let staged: SharedArray<u32, 128> = shared();
        let window = Window::new(input, staged, block_idx().x * 128);
        window.stage();
        sync_threads();
        let (before, behind) = window.around(thread_idx().x);
        let of = if before > behind { Window { first: 1, ..window } } else { window };
        out.set(window.first + thread_idx().x, before ^ (behind >> 1) ^ of.first);
    }
}

fn handles(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let input = samples::<u32>(19, n);
    let wanted: Vec<u32> = (0..n)
        .map(|i| {
            let (first, at) = (i / 128 * 128, i % 128);
            let (before, behind) = (input[first + (at + 127) % 128], input[first + (at + 1) % 128]);
            before ^ (behind >> 1) ^ if before > behind { 1 } else { first as u32 }
        })
        .collect();
    let mut out = device.filled_bytes([n], 0xab)?;
    walks::structs_handles::launch(device, blocks(n), &device.tensor(&input, [n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}
