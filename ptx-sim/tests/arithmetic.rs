//! Instructions compared with Rust, on all triples of edge values and some random ones.

use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module, launch};

/// Values at the edges of all widths, and some between.
const EDGES: [u64; 18] = [
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    33,
    64,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0001,
    0x1234_5678_9abc_def0,
];

/// Runs `instruction` for all triples of edge values. In it `A`, `B`, `C` and `D` are registers of
/// `bits` bits, `W` is one of twice that width (up to 64), `X` is a 32-bit register with the low
/// bits of the second operand, `Y` one with those of the third, and `P` is a predicate with the
/// lowest bit of the third.
fn check(bits: u32, instruction: &str, wanted: impl Fn(u64, u64, u64) -> u64) {
    let kind = match bits {
        16 => "h",
        32 => "r",
        _ => "d",
    };
    let mut text = instruction.to_owned();
    for (name, register) in [("A", 1), ("B", 2), ("C", 3), ("D", 4)] {
        text = text.replace(name, &format!("%{kind}{register}"));
    }
    text = text.replace('W', if bits == 16 { "%r4" } else { "%d4" });
    text = text.replace('X', "%r8").replace('Y', "%r9").replace('P', "%p1").replace('Q', "%p2");
    let narrow = |index: u32| match bits {
        16 => format!("cvt.u16.u64 %h{index}, %d{index};"),
        32 => format!("cvt.u32.u64 %r{index}, %d{index};"),
        _ => String::new(),
    };
    let widen = match (bits, instruction.contains('W')) {
        (16, true) => "cvt.u64.u32 %d5, %r4;",
        (32, false) => "cvt.u64.u32 %d5, %r4;",
        (16, false) => "cvt.u64.u16 %d5, %h4;",
        _ => "mov.u64 %d5, %d4;",
    };
    let ptx = format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 in, .param .u64 out, .param .u32 count) {{\n\
         .reg .pred %p<4>; .reg .b16 %h<6>; .reg .b32 %r<16>; .reg .b64 %d<12>;\n\
         mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mov.u32 %r12, %tid.x; mad.lo.u32 %r10, %r10, %r11, %r12;\n\
         ld.param.u32 %r11, [count]; setp.ge.u32 %p3, %r10, %r11; @%p3 exit;\n\
         ld.param.u64 %d6, [in]; ld.param.u64 %d7, [out];\n\
         mul.wide.u32 %d8, %r10, 24; add.u64 %d6, %d6, %d8; mul.wide.u32 %d8, %r10, 8; add.u64 %d7, %d7, %d8;\n\
         ld.global.u64 %d1, [%d6]; ld.global.u64 %d2, [%d6+8]; ld.global.u64 %d3, [%d6+16];\n\
         cvt.u32.u64 %r8, %d2; cvt.u32.u64 %r9, %d3; and.b32 %r12, %r9, 1; setp.ne.u32 %p1, %r12, 0;\n\
         mov.u64 %d4, 0; mov.u32 %r4, 0; mov.u16 %h4, 0;\n\
         {} {} {}\n{text}\n{widen}\nst.global.u64 [%d7], %d5;\nret;\n}}\n",
        narrow(1),
        narrow(2),
        narrow(3),
    );
    let module = Module::load(&ptx).unwrap_or_else(|error| panic!("{instruction}: {error}"));
    let mut triples = Vec::new();
    for a in EDGES {
        for b in EDGES {
            triples.extend(EDGES.map(|c| [a, b, c]));
        }
    }
    let mut memory = GlobalMemory::default();
    let input: Vec<u8> = triples.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    let from = memory.allocate(input.len() as u64, false).expect("there is room");
    memory.write(from, &input).expect("it fits");
    let to = memory.allocate(triples.len() as u64 * 8, true).expect("there is room");
    let count = triples.len() as u32;
    let config =
        LaunchConfig { grid: [count.div_ceil(256), 1, 1], block: [256, 1, 1], ..LaunchConfig::default() };
    let args = [Arg::Address(from), Arg::Address(to), Arg::Bytes(count.to_le_bytes().to_vec())];
    let report = launch(&module, &mut memory, "k", &config, &args).expect("it starts");
    assert!(report.findings.is_empty(), "{}", report.findings.render(&module.sources(|_| None)));
    let mut output = vec![0; triples.len() * 8];
    memory.read(to, &mut output).expect("it is there");
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    for ([a, b, c], got) in triples.iter().zip(output.chunks_exact(8)) {
        let got = u64::from_le_bytes(got.try_into().expect("eight bytes"));
        let want = wanted(a & mask, b & mask, c & mask);
        assert_eq!(got, want, "{instruction} of {a:#x}, {b:#x}, {c:#x}: {got:#x}, not {want:#x}");
    }
}

fn u(value: i32) -> u64 {
    u64::from(value as u32)
}

#[test]
fn sums_and_products() {
    check(16, "add.s16 D, A, B;", |a, b, _| u64::from((a as u16).wrapping_add(b as u16)));
    check(32, "add.u32 D, A, B;", |a, b, _| u64::from((a as u32).wrapping_add(b as u32)));
    check(32, "add.sat.s32 D, A, B;", |a, b, _| u((a as i32).saturating_add(b as i32)));
    check(32, "sub.sat.s32 D, A, B;", |a, b, _| u((a as i32).saturating_sub(b as i32)));
    check(64, "sub.s64 D, A, B;", |a, b, _| a.wrapping_sub(b));
    check(32, "mul.lo.s32 D, A, B;", |a, b, _| u((a as i32).wrapping_mul(b as i32)));
    check(32, "mul.hi.s32 D, A, B;", |a, b, _| u(((i64::from(a as i32) * i64::from(b as i32)) >> 32) as i32));
    check(64, "mul.hi.u64 D, A, B;", |a, b, _| ((u128::from(a) * u128::from(b)) >> 64) as u64);
    check(64, "mul.hi.s64 D, A, B;", |a, b, _| ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64);
    check(16, "mul.hi.u16 D, A, B;", |a, b, _| (a * b) >> 16);
    check(16, "mul.wide.s16 W, A, B;", |a, b, _| u(i32::from(a as i16) * i32::from(b as i16)));
    check(32, "mul.wide.u32 W, A, B;", |a, b, _| a * b);
    check(32, "mul.wide.s32 W, A, B;", |a, b, _| (i64::from(a as i32) * i64::from(b as i32)) as u64);
    check(32, "mad.lo.s32 D, A, B, C;", |a, b, c| (a.wrapping_mul(b).wrapping_add(c)) & 0xffff_ffff);
    check(32, "mad.hi.u32 D, A, B, C;", |a, b, c| (((a * b) >> 32) + c) & 0xffff_ffff);
    check(64, "mad.lo.u64 D, A, B, C;", |a, b, c| a.wrapping_mul(b).wrapping_add(c));
    check(32, "mad.wide.s32 W, A, B, 5;", |a, b, _| (i64::from(a as i32) * i64::from(b as i32) + 5) as u64);
    check(32, "mul24.lo.u32 D, A, B;", |a, b, _| ((a & 0xff_ffff) * (b & 0xff_ffff)) & 0xffff_ffff);
    check(32, "mul24.hi.s32 D, A, B;", |a, b, _| {
        let cut = |value: u64| i64::from((value as i32) << 8 >> 8);
        u(((cut(a) * cut(b)) >> 16) as i32)
    });
    check(32, "sad.s32 D, A, B, C;", |a, b, c| {
        u64::from((c as u32).wrapping_add((a as i32).abs_diff(b as i32)))
    });
}

#[test]
fn quotients_and_extremes() {
    check(32, "div.s32 D, A, B;", |a, b, _| match b as i32 {
        0 => 0xffff_ffff,
        divisor => u((a as i32).wrapping_div(divisor)),
    });
    check(64, "div.u64 D, A, B;", |a, b, _| a.checked_div(b).unwrap_or(u64::MAX));
    check(32, "rem.u32 D, A, B;", |a, b, _| a.checked_rem(b).unwrap_or(a));
    check(64, "rem.s64 D, A, B;", |a, b, _| match b as i64 {
        0 => a,
        divisor => (a as i64).wrapping_rem(divisor) as u64,
    });
    check(16, "min.s16 D, A, B;", |a, b, _| u64::from((a as i16).min(b as i16) as u16));
    check(64, "max.u64 D, A, B;", |a, b, _| a.max(b));
    check(32, "min.relu.s32 D, A, B;", |a, b, _| u((a as i32).min(b as i32).max(0)));
    check(32, "max.s16x2.relu D, A, B;", |a, b, _| {
        let half =
            |shift: u32| u64::from(((a >> shift) as i16).max((b >> shift) as i16).max(0) as u16) << shift;
        half(16) | half(0)
    });
    check(32, "abs.s32 D, A;", |a, _, _| u((a as i32).wrapping_abs()));
    check(64, "neg.s64 D, A;", |a, _, _| a.wrapping_neg());
}

#[test]
fn carries() {
    check(
        64,
        "{ .reg .b32 %l<9>; mov.b64 {%l0,%l1}, A; mov.b64 {%l2,%l3}, B; add.cc.u32 %l4, %l0, %l2;\n\
               addc.u32 %l5, %l1, %l3; mov.b64 D, {%l4,%l5}; }",
        |a, b, _| a.wrapping_add(b),
    );
    check(
        64,
        "{ .reg .b32 %l<9>; mov.b64 {%l0,%l1}, A; mov.b64 {%l2,%l3}, B; sub.cc.u32 %l4, %l0, %l2;\n\
               subc.u32 %l5, %l1, %l3; mov.b64 D, {%l4,%l5}; }",
        |a, b, _| a.wrapping_sub(b),
    );
    // After a subtraction, an addition with carry sees the absence of a borrow.
    check(32, "sub.cc.u32 D, A, B; addc.u32 D, 0, 0;", |a, b, _| u64::from(a >= b));
    check(
        32,
        "add.cc.u32 D, A, B; subc.u32 D, 0, 0;",
        |a, b, _| if a + b > 0xffff_ffff { 0 } else { 0xffff_ffff },
    );
    check(
        64,
        "{ .reg .b32 %l<9>; cvt.u32.u64 %l0, A; cvt.u32.u64 %l1, B; mov.b64 {%l2,%l3}, C;\n\
               mad.lo.cc.u32 %l4, %l0, %l1, %l2; madc.hi.u32 %l5, %l0, %l1, %l3; mov.b64 D, {%l4,%l5}; }",
        |a, b, c| ((a & 0xffff_ffff) * (b & 0xffff_ffff)).wrapping_add(c),
    );
}

#[test]
fn packed_sums() {
    let part = |value: u64, bits: u32, index: u32, signed: bool| {
        let part = i64::from((value >> (bits * index)) as u32) & ((1 << bits) - 1);
        if signed && part >> (bits - 1) == 1 { part - (1 << bits) } else { part }
    };
    for (ty, signed) in [("u32", false), ("s32", true)] {
        for (name, first) in [("lo", 0), ("hi", 2)] {
            check(32, &format!("dp2a.{name}.{ty}.{ty} D, A, B, C;"), |a, b, c| {
                let product = |i| part(a, 16, i, signed) * part(b, 8, first + i, signed);
                (c as i64 + product(0) + product(1)) as u64 & 0xffff_ffff
            });
        }
        check(32, &format!("dp4a.{ty}.{ty} D, A, B, C;"), |a, b, c| {
            let product = |i| part(a, 8, i, signed) * part(b, 8, i, signed);
            (c as i64 + (0..4).map(product).sum::<i64>()) as u64 & 0xffff_ffff
        });
        let apart = move |a, b, i| part(a, 8, i, signed).abs_diff(part(b, 8, i, signed));
        check(32, &format!("vabsdiff4.{ty}.{ty}.{ty} D, A, B, C;"), |a, b, _| {
            (0..4).map(|i| (apart(a, b, i) & 0xff) << (8 * i)).sum()
        });
        check(32, &format!("vabsdiff4.{ty}.{ty}.{ty}.add D, A, B, C;"), |a, b, c| {
            (c + (0..4).map(|i| apart(a, b, i)).sum::<u64>()) & 0xffff_ffff
        });
    }
}

#[test]
fn bits() {
    check(32, "lop3.b32 D, A, B, C, 0x96;", |a, b, c| a ^ b ^ c);
    check(32, "lop3.b32 D, A, B, C, 0xe8;", |a, b, c| a & b | a & c | b & c);
    check(32, "not.b32 D, A;", |a, _, _| !a & 0xffff_ffff);
    check(16, "cnot.b16 D, A;", |a, _, _| u64::from(a == 0));
    check(32, "shl.b32 D, A, X;", |a, b, _| u64::from((a as u32).checked_shl(b as u32).unwrap_or(0)));
    check(64, "shr.u64 D, A, X;", |a, b, _| a.checked_shr(b as u32).unwrap_or(0));
    check(64, "shr.s64 D, A, X;", |a, b, _| ((a as i64) >> (b as u32).min(63)) as u64);
    check(32, "popc.b32 D, A;", |a, _, _| u64::from(a.count_ones()));
    check(32, "clz.b32 D, A;", |a, _, _| u64::from((a as u32).leading_zeros()));
    check(64, "brev.b64 D, A;", |a, _, _| a.reverse_bits());
    check(32, "bfind.u32 D, A;", |a, _, _| u64::from((a as u32).checked_ilog2().unwrap_or(u32::MAX)));
    check(32, "bfind.s32 D, A;", |a, _, _| {
        let value = a as i32;
        u64::from((if value < 0 { !value } else { value } as u32).checked_ilog2().unwrap_or(u32::MAX))
    });
    check(32, "bfe.u32 D, A, X, Y;", |a, b, c| field(a, b, c, 32, false));
    check(32, "bfe.s32 D, A, X, Y;", |a, b, c| field(a, b, c, 32, true));
    check(64, "bfe.s64 D, A, X, Y;", |a, b, c| field(a, b, c, 64, true));
    check(32, "bfi.b32 D, A, B, 8, 8;", |a, b, _| b & !0xff00 | (a & 0xff) << 8);
    check(32, "prmt.b32 D, A, B, 0x4f10;", |a, b, _| {
        let sign = if b >> 31 == 1 { 0xff } else { 0 };
        (b & 0xff) << 24 | sign << 16 | a & 0xffff
    });
    check(32, "shf.l.wrap.b32 D, A, B, Y;", |a, b, c| ((b << 32 | a) << (c & 31)) >> 32);
    check(32, "shf.r.clamp.b32 D, A, B, Y;", |a, b, c| (b << 32 | a) >> c.min(32) & 0xffff_ffff);
    check(64, "selp.b64 D, A, B, P;", |a, b, c| if c & 1 == 1 { a } else { b });
}

/// Source: PTX ISA, "bfe", the pseudocode of its semantics.
fn field(a: u64, from: u64, count: u64, bits: u64, signed: bool) -> u64 {
    let (from, count, top) = (from & 0xff, count & 0xff, bits - 1);
    let bit = |shift: u64| a >> shift & 1;
    let sign = match (signed, count) {
        (false, _) | (_, 0) => 0,
        _ => bit((from + count - 1).min(top)),
    };
    (0..bits).map(|i| (if i < count && from + i <= top { bit(from + i) } else { sign }) << i).sum()
}

#[test]
fn comparisons() {
    check(32, "setp.lt.s32 Q, A, B; selp.b32 D, 1, 0, Q;", |a, b, _| u64::from((a as i32) < b as i32));
    check(32, "setp.hi.u32 Q, A, B; selp.b32 D, 1, 0, Q;", |a, b, _| u64::from(a > b));
    check(64, "setp.ge.s64 Q, A, B; selp.b64 D, 1, 0, Q;", |a, b, _| u64::from(a as i64 >= b as i64));
    check(32, "setp.eq.and.b32 Q, A, B, !P; selp.b32 D, 1, 0, Q;", |a, b, c| u64::from(a == b && c & 1 == 0));
    check(32, "setp.ne.xor.u32 Q|P, A, B, P; selp.b32 D, 1, 0, P;", |a, b, c| {
        u64::from((a == b) != (c & 1 == 1))
    });
    check(32, "set.gt.u32.s32 D, A, B;", |a, b, _| if a as i32 > b as i32 { 0xffff_ffff } else { 0 });
    check(32, "setp.ltu.f32 Q, A, B; selp.b32 D, 1, 0, Q;", |a, b, _| {
        let (a, b) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        u64::from(a < b || a.is_nan() || b.is_nan())
    });
    check(32, "slct.b32.s32 D, A, B, C;", |a, b, c| if c as i32 >= 0 { a } else { b });
}

#[test]
fn conversions() {
    check(32, "cvt.s32.s8 D, A;", |a, _, _| u(i32::from(a as i8)));
    check(32, "cvt.sat.u8.s32 D, A;", |a, _, _| (a as i32).clamp(0, 255) as u64);
    check(32, "cvt.s64.s32 W, A;", |a, _, _| i64::from(a as i32) as u64);
    check(64, "cvt.rn.f64.s64 D, A;", |a, _, _| (a as i64 as f64).to_bits());
    check(32, "cvt.rn.f32.u32 D, A;", |a, _, _| u64::from((a as u32 as f32).to_bits()));
    check(32, "cvt.rzi.s32.f32 D, A;", |a, _, _| u(f32::from_bits(a as u32) as i32));
}

#[test]
fn tf32_is_made_of_f32_alone() {
    let load = |conversion: &str| {
        Module::load(&format!(
            ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k() {{\n\
             .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d<9>;\n{conversion}\nret;\n}}\n"
        ))
    };
    assert!(load("cvt.rna.tf32.f32 %r1, %f1;").is_ok());
    for conversion in
        ["cvt.rna.tf32.s32 %r1, %r2;", "cvt.rna.tf32.u64 %r1, %d2;", "cvt.rni.s32.tf32 %r1, %r2;"]
    {
        let error = load(conversion).expect_err(conversion);
        assert!(error.line == 6 && error.message.contains("from `.f32`"), "{conversion}: {error}");
    }
}
