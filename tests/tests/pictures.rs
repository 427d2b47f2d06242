//! The drawings of layouts in the book equal those that the runtime generates.

use tma_runtime::picture::{Major, TileLayout};
use tma_runtime::spec::{Scalar, TileSwizzle};
use tma_tests::page;

#[test]
fn the_book_shows_tiles_as_they_lie() -> anyhow::Result<()> {
    for (name, columns, swizzle) in [
        ("none", 64, TileSwizzle::None),
        ("32", 16, TileSwizzle::B32),
        ("64", 32, TileSwizzle::B64),
        ("128", 64, TileSwizzle::B128),
    ] {
        let layout = TileLayout::new(Scalar::F16, &[8, columns], swizzle);
        page::is(&format!("docs/layouts/swizzle-{name}.svg"), &layout.svg())?;
    }
    let narrow = TileLayout::new(Scalar::F16, &[8, 24], TileSwizzle::B64);
    page::is("docs/layouts/narrow.svg", &narrow.svg())
}

#[test]
fn the_book_shows_operands_as_they_are_read() -> anyhow::Result<()> {
    for (name, extents, swizzle, major) in [
        ("k", [8, 64], TileSwizzle::B128, Major::K),
        ("k-64", [8, 32], TileSwizzle::B64, Major::K),
        ("k-panels", [8, 128], TileSwizzle::B128, Major::K),
        ("mn", [32, 64], TileSwizzle::B128, Major::Mn),
    ] {
        let operand = TileLayout::new(Scalar::F16, &extents, swizzle).operand(major)?;
        page::is(&format!("docs/layouts/operand-{name}.svg"), &operand.svg())?;
    }
    let half = TileLayout::new(Scalar::F16, &[8, 32], TileSwizzle::B64).operand(Major::K)?;
    let sparse = half.sparse().ok_or_else(|| anyhow::anyhow!("f16 is never sparse"))?;
    page::is("docs/layouts/operand-sparse.svg", &sparse.svg())?;
    let bits = TileLayout::new(Scalar::U32, &[8, 16], TileSwizzle::B64).operand_of_bits()?;
    page::is("docs/layouts/operand-bits.svg", &bits.svg())
}

#[test]
fn the_book_shows_registers_as_they_are_held() -> anyhow::Result<()> {
    let sum = TileLayout::accumulator(Scalar::F32, [64, 16])?;
    page::is("docs/layouts/accumulator.svg", &sum.of_warp(0).svg())?;
    for (element, columns) in [(Scalar::F16, 16), (Scalar::E4m3, 32), (Scalar::Tf32, 8)] {
        let a = TileLayout::fragment(element, [64, columns])?;
        page::is(&format!("docs/layouts/fragment-{}.svg", element.name()), &a.of_warp(0).svg())?;
    }
    let metadata = TileLayout::metadata(Scalar::F16, [64, 64])?;
    page::is("docs/layouts/metadata.svg", &metadata.svg())
}
