//! `cargo tma layout`.

use std::fs;

use anyhow::{Context, Result};
use serde_json::json;
use tma_model::{Scalar, TileSwizzle};
use tma_runtime::picture::{FragmentLayout, Major, TileLayout};

use crate::arguments::{Layout, LayoutKind, MajorName};
use crate::output::Output;

/// A layout as text and as a drawing.
struct Picture {
    text: String,
    svg: String,
}

/// Prints a layout, and writes a drawing if a file is given.
pub(crate) fn run(options: &Layout) -> Result<Output> {
    let picture = draw(&options.kind)?;
    let mut text = format!("{}\n", picture.text.trim_end());
    if let Some(path) = &options.svg {
        fs::write(path, &picture.svg).with_context(|| format!("cannot write {}", path.display()))?;
        text += &format!("drawing: {}\n", path.display());
    }
    Ok(Output::clean(text, json!({ "text": picture.text, "svg": picture.svg })))
}

fn draw(kind: &LayoutKind) -> Result<Picture> {
    Ok(match kind {
        LayoutKind::Tile { element, extents, swizzle } => {
            let layout = tile(element, extents, swizzle)?;
            Picture { text: layout.to_string(), svg: layout.svg() }
        }
        LayoutKind::Operand { element, extents, swizzle, major } => {
            let major = match major {
                MajorName::K => Major::K,
                MajorName::Mn => Major::Mn,
            };
            let layout = tile(element, extents, swizzle)?.operand(major)?;
            Picture { text: layout.to_string(), svg: layout.svg() }
        }
        LayoutKind::Accumulator { element, extents, warp } => {
            fragment(TileLayout::accumulator(scalar(element)?, matrix(extents)?)?, *warp)
        }
        LayoutKind::Fragment { element, extents, warp } => {
            fragment(TileLayout::fragment(scalar(element)?, matrix(extents)?)?, *warp)
        }
    })
}

fn fragment(layout: FragmentLayout, warp: Option<u32>) -> Picture {
    let layout = warp.map_or_else(|| layout.clone(), |warp| layout.of_warp(warp));
    Picture { text: layout.to_string(), svg: layout.svg() }
}

fn tile(element: &str, extents: &str, swizzle: &str) -> Result<TileLayout> {
    let extents = numbers(extents)?;
    let swizzle = TileSwizzle::ALL.into_iter().find(|known| short(*known) == swizzle).with_context(|| {
        let known: Vec<_> = TileSwizzle::ALL.into_iter().map(short).collect();
        format!("unknown swizzle `{swizzle}`; use one of: {}", known.join(", "))
    })?;
    Ok(TileLayout::new(scalar(element)?, &extents, swizzle))
}

/// Returns the name of a swizzle on the command line.
fn short(swizzle: TileSwizzle) -> &'static str {
    match swizzle {
        TileSwizzle::None => "none",
        TileSwizzle::Panels16 => "panels16",
        TileSwizzle::B32 => "32",
        TileSwizzle::B64 => "64",
        TileSwizzle::B128 => "128",
        TileSwizzle::Interleave16 => "interleave16",
        TileSwizzle::Interleave32 => "interleave32",
    }
}

fn scalar(name: &str) -> Result<Scalar> {
    Scalar::ALL.into_iter().find(|scalar| scalar.name() == name).with_context(|| {
        let known: Vec<_> = Scalar::ALL.into_iter().map(Scalar::name).collect();
        format!("unknown element type `{name}`; use one of: {}", known.join(", "))
    })
}

/// Parses extents such as `8x64`. None may be 0, and the layout must be small enough to draw.
fn numbers(text: &str) -> Result<Vec<u32>> {
    const MOST_ELEMENTS: u64 = 1 << 16;
    let numbers: Option<Vec<u32>> = text.split('x').map(|number| number.parse().ok()).collect();
    let is_small = |numbers: &Vec<u32>| {
        let product = numbers.iter().try_fold(1, |product: u64, &extent| product.checked_mul(extent.into()));
        numbers.len() <= 5 && product.is_some_and(|product| (1..=MOST_ELEMENTS).contains(&product))
    };
    numbers.filter(is_small).with_context(|| {
        format!(
            "`{text}` is not a valid shape; pass one to five extents above 0, such as 8x64, with at most \
             {MOST_ELEMENTS} elements in total"
        )
    })
}

fn matrix(text: &str) -> Result<[u32; 2]> {
    let numbers = numbers(text)?;
    <[u32; 2]>::try_from(numbers)
        .ok()
        .with_context(|| format!("`{text}` is not a matrix; pass rows and columns, such as 64x16"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(kind: LayoutKind) -> Result<Output> {
        run(&Layout { kind, svg: None })
    }

    fn named(element: &str, extents: &str, swizzle: &str) -> LayoutKind {
        let [element, extents, swizzle] = [element, extents, swizzle].map(str::to_owned);
        LayoutKind::Tile { element, extents, swizzle }
    }

    #[test]
    fn each_kind_is_drawn() {
        let [element, extents, swizzle] = ["f16", "64x64", "128"].map(str::to_owned);
        let tile = layout(named("f16", "8x64", "128")).unwrap();
        let known = TileLayout::new(Scalar::F16, &[8, 64], TileSwizzle::B128);
        assert_eq!(tile.text.trim_end(), known.to_string().trim_end());
        assert_eq!(tile.json["svg"], known.svg());
        let operand = layout(LayoutKind::Operand { element, extents, swizzle, major: MajorName::K }).unwrap();
        assert!(operand.json["svg"].as_str().unwrap().starts_with("<svg"), "{:?}", operand.json);
        let [element, extents] = ["f32", "64x16"].map(str::to_owned);
        let whole = layout(LayoutKind::Accumulator {
            element: element.clone(),
            extents: extents.clone(),
            warp: None,
        });
        let warp = layout(LayoutKind::Accumulator { element, extents, warp: Some(1) });
        assert_ne!(whole.unwrap().text, warp.unwrap().text);
        let [element, extents] = ["f16", "64x16"].map(str::to_owned);
        assert!(layout(LayoutKind::Fragment { element, extents, warp: Some(0) }).unwrap().is_clean);
    }

    #[test]
    fn invalid_layouts_are_errors_with_the_valid_ones() {
        for (drawn, wanted) in [
            (named("f17", "8x64", "none"), "unknown element type `f17`; use one of:"),
            (named("f16", "8by64", "none"), "`8by64` is not a valid shape"),
            (named("f16", "0x64", "none"), "`0x64` is not"),
            (named("f16", "4294967295x4294967295", "none"), "is not a valid shape"),
            (named("f16", "8x64", "256"), "unknown swizzle `256`; use one of: none, panels16, 32"),
        ] {
            let error = layout(drawn).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        let [element, extents] = ["f16", "60x16"].map(str::to_owned);
        let error = layout(LayoutKind::Fragment { element, extents, warp: None }).unwrap_err().to_string();
        assert!(error.contains("TMA0548"), "{error}");
    }
}
