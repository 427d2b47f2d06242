//! The choices of `tma_kernels::gemm` as words: `t64x64`, `t128x128cluster2x1:halved`, `t64x64:4` for
//! a tile in parts, `t64x64:even`.

use anyhow::Context;
use tma_kernels::gemm::{Choice, Division, Tile};

/// Parses the word of a choice.
///
/// # Errors
///
/// A word that is not the name of any choice.
pub fn parse(text: &str) -> anyhow::Result<Choice> {
    let (tile, division) = text.split_once(':').unwrap_or((text, ""));
    let known = || Tile::ALL.map(word_of).join("`, `");
    let tile = Tile::ALL.into_iter().find(|&known| word_of(known) == tile);
    let tile = tile.with_context(|| format!("`{text}` names no tile: it begins with `{}`", known()))?;
    let division = match division {
        "" => Division::Whole,
        "halved" => Division::Halved,
        "even" => Division::Even,
        parts => Division::Parts(parts.parse().ok().with_context(|| {
            format!("`{text}` divides nothing: write `:halved`, `:even` or a number of parts, as `:2`")
        })?),
    };
    Ok(Choice { tile, division })
}

/// Returns the word of a choice.
pub fn word(Choice { tile, division }: Choice) -> String {
    let tile = word_of(tile);
    match division {
        Division::Whole => tile,
        Division::Halved => format!("{tile}:halved"),
        Division::Parts(parts) => format!("{tile}:{parts}"),
        Division::Even => format!("{tile}:even"),
    }
}

fn word_of(tile: Tile) -> String {
    format!("{tile:?}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_choices() -> anyhow::Result<()> {
        for tile in Tile::ALL {
            for division in [Division::Whole, Division::Halved, Division::Parts(3), Division::Even] {
                let choice = Choice { tile, division };
                assert_eq!(parse(&word(choice))?, choice);
            }
        }
        assert_eq!(word(parse("t64x128:halved")?), "t64x128:halved");
        Ok(())
    }

    #[test]
    fn other_words_are_explained() {
        let error = |text| parse(text).expect_err(text).to_string();
        assert!(
            error("round")
                .contains("`round` names no tile: it begins with `t128x256cluster2x1`, `pingpong128x176`")
        );
        assert!(error("t64x64:half").contains("`t64x64:half` divides nothing: write `:halved`"));
    }
}
