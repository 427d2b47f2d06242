//! `cargo tma layout`.

use std::fs;

use anyhow::{Context, Result};
use serde_json::json;
use tma_model::{Scalar, TileSwizzle};
use tma_runtime::picture::{FragmentLayout, Major, TileLayout};

use crate::arguments::{Drawn, Layout, MajorName};
use crate::output::Output;

/// A layout as text and as a drawing.
struct Picture {
    text: String,
    svg: String,
}

/// Prints a layout, and writes a drawing if a file is given.
pub(crate) fn run(options: &Layout) -> Result<Output> {
    let picture = draw(&options.what)?;
    let mut text = format!("{}\n", picture.text.trim_end());
    if let Some(path) = &options.svg {
        fs::write(path, &picture.svg).with_context(|| format!("cannot write {}", path.display()))?;
        text += &format!("drawing: {}\n", path.display());
    }
    Ok(Output::clean(text, json!({ "text": picture.text, "svg": picture.svg })))
}

fn draw(what: &Drawn) -> Result<Picture> {
    Ok(match what {
        Drawn::Tile { element, extents, swizzle } => {
            let layout = tile(element, extents, swizzle)?;
            Picture { text: layout.to_string(), svg: layout.svg() }
        }
        Drawn::Operand { element, extents, swizzle, major } => {
            let major = match major {
                MajorName::K => Major::K,
                MajorName::Mn => Major::Mn,
            };
            let layout = tile(element, extents, swizzle)?.operand(major)?;
            Picture { text: layout.to_string(), svg: layout.svg() }
        }
        Drawn::Accumulator { element, extents, warp } => {
            fragment(TileLayout::accumulator(scalar(element)?, matrix(extents)?)?, *warp)
        }
        Drawn::Fragment { element, extents, warp } => {
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
        format!("there is no swizzle `{swizzle}`; there are: {}", known.join(", "))
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
        format!("there is no element type `{name}`; there are: {}", known.join(", "))
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
            "`{text}` is not one to five extents such as 8x64 with at most {MOST_ELEMENTS} elements together"
        )
    })
}

fn matrix(text: &str) -> Result<[u32; 2]> {
    let numbers = numbers(text)?;
    <[u32; 2]>::try_from(numbers)
        .ok()
        .with_context(|| format!("`{text}` is not rows and columns such as 64x16"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(what: Drawn) -> Result<Output> {
        run(&Layout { what, svg: None })
    }

    fn named(element: &str, extents: &str, swizzle: &str) -> Drawn {
        let [element, extents, swizzle] = [element, extents, swizzle].map(str::to_owned);
        Drawn::Tile { element, extents, swizzle }
    }

    #[test]
    fn each_kind_is_drawn() {
        let [element, extents, swizzle] = ["f16", "64x64", "128"].map(str::to_owned);
        let tile = layout(named("f16", "8x64", "128")).unwrap();
        let known = TileLayout::new(Scalar::F16, &[8, 64], TileSwizzle::B128);
        assert_eq!(tile.text.trim_end(), known.to_string().trim_end());
        assert_eq!(tile.json["svg"], known.svg());
        let operand = layout(Drawn::Operand { element, extents, swizzle, major: MajorName::K }).unwrap();
        assert!(operand.json["svg"].as_str().unwrap().starts_with("<svg"), "{:?}", operand.json);
        let [element, extents] = ["f32", "64x16"].map(str::to_owned);
        let whole =
            layout(Drawn::Accumulator { element: element.clone(), extents: extents.clone(), warp: None });
        let warp = layout(Drawn::Accumulator { element, extents, warp: Some(1) });
        assert_ne!(whole.unwrap().text, warp.unwrap().text);
        let [element, extents] = ["f16", "64x16"].map(str::to_owned);
        assert!(layout(Drawn::Fragment { element, extents, warp: Some(0) }).unwrap().is_clean);
    }

    #[test]
    fn what_cannot_be_drawn_is_an_error_that_says_what_can() {
        for (drawn, wanted) in [
            (named("f17", "8x64", "none"), "there is no element type `f17`; there are:"),
            (named("f16", "8by64", "none"), "`8by64` is not one to five extents"),
            (named("f16", "0x64", "none"), "`0x64` is not"),
            (named("f16", "4294967295x4294967295", "none"), "is not one to five extents"),
            (named("f16", "8x64", "256"), "there is no swizzle `256`; there are: none, panels16, 32"),
        ] {
            let error = layout(drawn).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        let [element, extents] = ["f16", "60x16"].map(str::to_owned);
        let error = layout(Drawn::Fragment { element, extents, warp: None }).unwrap_err().to_string();
        assert!(error.contains("TMA0548"), "{error}");
    }
}
