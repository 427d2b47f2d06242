//! The drawings of tiles in the book are those that the runtime makes.

use tma_runtime::picture::TileLayout;
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
        page::is(&format!("layouts/swizzle-{name}.svg"), &layout.svg())?;
    }
    let narrow = TileLayout::new(Scalar::F16, &[8, 24], TileSwizzle::B64);
    page::is("layouts/narrow.svg", &narrow.svg())
}
