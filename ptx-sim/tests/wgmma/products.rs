//! Matrix products of every type, width, layout and swizzle, compared with plain sums.

use half::{bf16, f16};
use ptx_sim::{Arg, Checks, GlobalMemory, LaunchConfig, Module, launch};
use tma_model::Swizzle;
use tma_model::limits::RESERVED_SHARED_BYTES;
use tma_model::mma::{Accumulator, Form, FragmentSlot, Major, Operand, OperandTile, ROWS};

/// A multiplication of one instruction.
#[derive(Clone, Copy, Debug)]
struct Case {
    form: Form,
    /// The layout of A, or `None` if A is in registers, and the layout of B.
    left: Option<(Swizzle, Major)>,
    right: (Swizzle, Major),
    negates: [bool; 2],
    accumulates: bool,
    saturates: bool,
}

const THREADS: u32 = 128;

/// Returns a small number of each type, for which all dot products are exact, and its bits.
fn element(operand: Operand, draw: u32) -> (i64, u32) {
    let small = i64::from(draw % 5) - 2;
    match operand {
        Operand::F16 => (small, f16::from_f64(small as f64).to_bits().into()),
        Operand::Bf16 => (small, bf16::from_f64(small as f64).to_bits().into()),
        Operand::Tf32 => (small, (small as f32).to_bits()),
        Operand::E4m3 => (small, [0xc0, 0xb8, 0, 0x38, 0x40][(small + 2) as usize]),
        Operand::E5m2 => (small, [0xc0, 0xbc, 0, 0x3c, 0x40][(small + 2) as usize]),
        Operand::S8 => (i64::from(draw as u8 as i8), draw & 0xff),
        Operand::U8 => (i64::from(draw as u8), draw & 0xff),
        Operand::B1 => (i64::from(draw & 1), draw & 1),
    }
}

/// Pseudorandom 24-bit numbers.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as u32
    }
}

/// An operand: its values and its bits, by row of A (or column of B) and k.
struct Matrix {
    values: Vec<Vec<i64>>,
    bits: Vec<Vec<u32>>,
}

fn matrix(operand: Operand, extent: u32, k: u32, draws: &mut Draws) -> Matrix {
    let mut of_line = || (0..k).map(|_| element(operand, draws.next())).unzip();
    let (values, bits) = (0..extent).map(|_| of_line()).unzip();
    Matrix { values, bits }
}

/// Returns the tile of an operand, with as many elements as one instruction takes.
fn tile(element: Operand, extent: u32, k: u32, (swizzle, major): (Swizzle, Major)) -> OperandTile {
    let extents = match major {
        Major::K => [extent, k],
        Major::Mn => [k, extent],
    };
    OperandTile { element, extents, swizzle, major }
}

/// Writes the elements of a tile into an image of shared memory.
fn put(image: &mut [u8], start: u32, tile: OperandTile, matrix: &Matrix) {
    let bits = tile.element.bits();
    for (i, line) in (0..).zip(&matrix.bits) {
        for (k, element) in (0..).zip(line) {
            let at = (start + tile.offset(i, k)) as usize;
            match bits {
                1 => image[at] |= (*element as u8) << (k % 8),
                _ => image[at..at + bits as usize / 8]
                    .copy_from_slice(&element.to_le_bytes()[..bits as usize / 8]),
            }
        }
    }
}

impl Case {
    fn modifiers(&self) -> String {
        let end = match self.form.a {
            Operand::B1 => ".and.popc",
            _ if self.saturates => ".satfinite",
            _ => "",
        };
        format!("wgmma.mma_async.sync.aligned.{}{end}", self.form)
    }

    /// Returns a kernel that fills shared memory with an image, multiplies, and writes all
    /// registers of D.
    fn text(&self, bytes: u32, descriptors: [u64; 2]) -> String {
        let registers = self.form.accumulator_registers();
        let d = (0..registers).map(|reg| format!("%c{reg}")).collect::<Vec<_>>().join(", ");
        let left = if self.left.is_some() { "%d8" } else { "{%a0, %a1, %a2, %a3}" };
        let mut immediates = format!(", {}", u8::from(self.accumulates));
        if self.form.a.is_negatable() {
            for negates in self.negates {
                immediates.push_str(if negates { ", -1" } else { ", 1" });
            }
        }
        if self.form.a.is_transposable() {
            for (_, major) in self.left.iter().chain([&self.right]) {
                immediates.push_str(if *major == Major::Mn { ", 1" } else { ", 0" });
            }
        }
        let words = |from: &str, count: u32, does: &dyn Fn(u32) -> String| -> String {
            (0..count).map(|i| format!("{from}{}\n", does(i))).collect()
        };
        let fill = words("", bytes.div_ceil(4 * THREADS), &|i| {
            let at = i * 4 * THREADS;
            format!("ld.global.u32 %r9, [%d4+{at}]; st.shared.u32 [%r5+{at}], %r9;")
        });
        let a = words("", 4, &|q| format!("ld.global.u32 %a{q}, [%d5+{}];", q * 4 * THREADS));
        let c = words("", registers, &|reg| format!("ld.global.u32 %c{reg}, [%d6+{}];", reg * 4 * THREADS));
        let out = words("", registers, &|reg| format!("st.global.u32 [%d6+{}], %c{reg};", reg * 4 * THREADS));
        format!(
            ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 dyn[];\n\
             .visible .entry k(.param .u64 image, .param .u64 a, .param .u64 d)\n{{\n\
             .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .b32 %c<128>; .reg .b32 %a<4>;\n\
             ld.param.u64 %d1, [image]; ld.param.u64 %d2, [a]; ld.param.u64 %d3, [d];\n\
             mov.u32 %r1, %tid.x; mul.wide.u32 %d7, %r1, 4; shl.b32 %r5, %r1, 2; mov.u32 %r6, dyn; add.u32 %r5, %r5, %r6;\n\
             add.u64 %d4, %d1, %d7; add.u64 %d5, %d2, %d7; add.u64 %d6, %d3, %d7;\n\
             {fill}{a}{c}fence.proxy.async.shared::cta; bar.sync 0;\n\
             mov.b64 %d8, {}; mov.b64 %d9, {};\n\
             wgmma.fence.sync.aligned;\n{} {{{d}}}, {left}, %d9{immediates};\n\
             wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n{out}ret;\n}}\n",
            descriptors[0],
            descriptors[1],
            self.modifiers()
        )
    }

    /// Runs the case under some seeds, and compares each element of D.
    fn check(&self) {
        self.check_with_seeds(2);
    }

    fn check_with_seeds(&self, seeds: u64) {
        let Form { a, b, d, n, .. } = self.form;
        let k = self.form.k();
        let mut draws = Draws(u64::from(n) << 8 | u64::from(k));
        let (left, right) = (matrix(a, ROWS, k, &mut draws), matrix(b, n, k, &mut draws));
        let mut image = vec![0; 48 << 10];
        let mut start = 0;
        let mut put = |operand, extent, layout, matrix: &Matrix| {
            let tile = tile(operand, extent, k, layout);
            assert!(tile.faults().is_empty(), "{self:?}");
            let at: u32 = start;
            put(&mut image, at, tile, matrix);
            start = (at + tile.bytes()).next_multiple_of(1024);
            tile.descriptor(RESERVED_SHARED_BYTES + at).encode()
        };
        let a_descriptor = self.left.map_or(0, |layout| put(a, ROWS, layout, &left));
        let b_descriptor = put(b, n, self.right, &right);
        image.truncate(start as usize);
        let text = self.text(start, [a_descriptor, b_descriptor]);
        let module = Module::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let before = |row: u32, column: u32| i64::from(row * 3 + column) % 7 - 3;
        let wanted = |row: u32, column: u32| {
            let (row_of_a, column_of_b) = (&left.values[row as usize], &right.values[column as usize]);
            let sum: i64 = row_of_a.iter().zip(column_of_b).map(|(a, b)| a * b).sum();
            let sum = if self.negates[0] == self.negates[1] { sum } else { -sum };
            if self.accumulates { sum + before(row, column) } else { sum }
        };
        let bits = |value: i64| match d {
            Accumulator::F32 => (value as f32).to_bits(),
            Accumulator::F16 => f16::from_f64(value as f64).to_bits().into(),
            Accumulator::S32 => value as u32,
        };
        for seed in 0..seeds {
            let mut memory = GlobalMemory::default();
            let mut buffer = |bytes: &[u8]| {
                let address = memory.allocate(bytes.len() as u64, true).expect("there is room");
                memory.write(address, bytes).expect("it fits");
                address
            };
            let of = |registers: u32, value: &dyn Fn(FragmentSlot) -> u32, per: u32| -> Vec<u8> {
                let places =
                    (0..registers).flat_map(|register| (0..THREADS).map(move |thread| (register, thread)));
                let word = |(register, thread)| {
                    let part = |part| value(FragmentSlot { thread, register, part }) << (part * 32 / per);
                    (0..per).map(part).fold(0, |word, bits| word | bits)
                };
                places.flat_map(|slot| word(slot).to_le_bytes()).collect()
            };
            let a_registers = of(
                4,
                &|slot| {
                    let [row, k] = a.coordinates(slot);
                    left.bits[row as usize][k as usize]
                },
                a.per_register(),
            );
            let of_d = |value: &dyn Fn(u32, u32) -> i64| {
                let element = |slot| {
                    let [row, column] = d.coordinates(slot);
                    bits(value(row, column))
                };
                of(self.form.accumulator_registers(), &element, d.per_register())
            };
            let c = of_d(&before);
            let args = [buffer(&image), buffer(&a_registers), buffer(&c)];
            let config = LaunchConfig {
                grid: [1; 3],
                block: [THREADS, 1, 1],
                cluster: [1; 3],
                dynamic_shared_bytes: start,
                seed,
                checks: Checks::ALL,
                ..LaunchConfig::default()
            };
            let report =
                launch(&module, &mut memory, "k", &config, &args.map(Arg::Address)).expect("it starts");
            let found = report.findings.render(&module.sources(|_| None));
            assert!(report.findings.is_empty(), "{self:?}:\n{found}");
            let mut bytes = vec![0; c.len()];
            memory.read(args[2], &mut bytes).expect("it is there");
            assert!(bytes == of_d(&wanted), "{self:?}, seed {seed}");
        }
    }
}

const SWIZZLES: [Swizzle; 4] = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];

fn case(d: Accumulator, a: Operand, b: Operand, n: u32) -> Case {
    let plain = (Swizzle::B32, Major::K);
    Case {
        form: Form { d, a, b, n, sparse: false },
        left: Some(plain),
        right: plain,
        negates: [false; 2],
        accumulates: true,
        saturates: false,
    }
}

/// Returns every pair of types, with each type of D.
fn types() -> Vec<(Accumulator, Operand, Operand)> {
    let mut all = Vec::new();
    for a in Operand::ALL {
        for b in Operand::ALL.into_iter().filter(|b| a.multiplies(*b)) {
            all.extend(a.accumulates().iter().map(|d| (*d, a, b)));
        }
    }
    all
}

#[test]
fn every_type_has_its_products() {
    let types = types();
    assert_eq!(types.len(), 2 + 1 + 1 + 8 + 4 + 1);
    for (d, a, b) in types {
        for (negates, accumulates) in [([false, false], true), ([true, false], true), ([true, true], false)] {
            let negates = if a.is_negatable() { negates } else { [false; 2] };
            let shared = Case { negates, accumulates, ..case(d, a, b, 16) };
            shared.check();
            Case { left: None, ..shared }.check();
        }
    }
}

#[test]
fn every_width_has_its_columns() {
    for (d, a) in
        [(Accumulator::F32, Operand::Bf16), (Accumulator::F16, Operand::F16), (Accumulator::S32, Operand::S8)]
    {
        Form::widths(a).for_each(|n| case(d, a, a, n).check_with_seeds(1));
    }
    case(Accumulator::S32, Operand::B1, Operand::B1, 256).check();
    case(Accumulator::F32, Operand::E4m3, Operand::E5m2, 248).check();
}

#[test]
fn every_layout_is_read_correctly() {
    for swizzle in SWIZZLES {
        for a in [Operand::Tf32, Operand::F16, Operand::E4m3, Operand::S8, Operand::B1] {
            let d = a.accumulates()[0];
            for other in SWIZZLES {
                let (left, right) = (Some((swizzle, Major::K)), (other, Major::K));
                Case { left, right, ..case(d, a, a, 24) }.check();
            }
            for majors in [[Major::Mn, Major::K], [Major::K, Major::Mn], [Major::Mn, Major::Mn]] {
                if a.is_transposable() {
                    let (left, right) = (Some((swizzle, majors[0])), (swizzle, majors[1]));
                    Case { left, right, ..case(d, a, a, 128) }.check();
                    Case { left: None, right, ..case(d, a, a, 64) }.check();
                }
            }
        }
    }
}

#[test]
fn integers_saturate_where_requested() {
    for (a, b) in [(Operand::S8, Operand::S8), (Operand::U8, Operand::S8)] {
        Case { saturates: true, ..case(Accumulator::S32, a, b, 32) }.check();
    }
}
