//! Tokens of texts, their file, and windows.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use anyhow::Result;
use tma_models_reference::Reference;
use tma_train::TrainError;
use tma_train::stream::{SourceText, TokenFile};
use tma_train::tokenizer::{END_TEXT, TextTokenizer};
use tma_train::windows;

/// Returns all tokens of a text.
fn tokens(tokenizer: &TextTokenizer, text: &[u8]) -> Result<Vec<u32>, TrainError> {
    let mut all = vec![];
    tokenizer.encode(text, &mut |piece| {
        all.extend_from_slice(piece.tokens);
        Ok(())
    })?;
    Ok(all)
}

/// Returns the tokenizer of the reference models.
fn reference(folder: &Path) -> Result<TextTokenizer> {
    Reference::open("llama3")?.write(folder)?;
    Ok(TextTokenizer::open(&folder.join("tokenizer.json"))?)
}

#[test]
fn bytes_are_the_tokens_of_their_tokenizer() -> Result<()> {
    let text = format!("a\u{0} é\u{ad}\n{END_TEXT}<|end 日本\r\n");
    let found = tokens(&TextTokenizer::Bytes, text.as_bytes())?;
    assert_eq!(found[..7], [97, 0, 32, 195, 169, 194, 173]);
    assert_eq!((found[8], TextTokenizer::Bytes.end(), TextTokenizer::Bytes.tokens()), (256, Some(256), 257));
    assert_eq!(found.len(), text.len() - END_TEXT.len() + 1);

    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("tokenizer.json"), TextTokenizer::Bytes.json())?;
    let of_model = tma_models::text::Text::open(folder.path())?;
    assert_eq!(of_model.encode(&text)?, found);
    assert_eq!(of_model.decode(&found)?, text.replace(END_TEXT, ""));
    Ok(())
}

#[test]
fn each_byte_has_its_token() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("tokenizer.json"), TextTokenizer::Bytes.json())?;
    let file = TextTokenizer::open(&folder.path().join("tokenizer.json"))?;
    assert_eq!((file.tokens(), file.end()), (257, Some(256)));
    // All bytes that UTF-8 has, in characters of one to four bytes.
    let all: String = (0..0x11_0000).step_by(37).filter_map(char::from_u32).chain('\0'..='\u{7ff}').collect();
    let found = tokens(&file, all.as_bytes())?;
    assert_eq!(found, tokens(&TextTokenizer::Bytes, all.as_bytes())?);
    assert_eq!(found.into_iter().collect::<HashSet<_>>().len(), 256 - 13);
    Ok(())
}

#[test]
fn pieces_of_a_long_text_have_the_tokens_of_the_whole() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let tokenizer = reference(folder.path())?;
    let line = |i: usize| format!("line {i} has {} words,\n{}and an end\n", i % 7, "\n".repeat(i % 3));
    let text: String = (0..9000).map(line).collect();
    assert!(text.len() > 3 << 16);
    let whole = tma_models::text::Text::open(folder.path())?.encode(&text)?;
    assert_eq!(tokens(&tokenizer, text.as_bytes())?, whole);
    Ok(())
}

/// Returns the lengths of pieces, in bytes, and checks that their tokens are those of the whole text.
fn pieces(least_bytes: usize, line: impl Fn(usize) -> String) -> Result<Vec<usize>> {
    let folder = tempfile::tempdir()?;
    let tokenizer = reference(folder.path())?;
    let text: String = (0..)
        .map(line)
        .scan(0, |bytes, line| {
            let before = *bytes;
            *bytes += line.len();
            (before < least_bytes).then_some(line)
        })
        .collect();
    let (mut lengths, mut found) = (vec![], vec![]);
    tokenizer.encode(text.as_bytes(), &mut |piece| {
        lengths.push(piece.bytes);
        found.extend_from_slice(piece.tokens);
        Ok(())
    })?;
    assert_eq!(lengths.iter().sum::<usize>(), text.len());
    assert_eq!(found, tma_models::text::Text::open(folder.path())?.encode(&text)?);
    Ok(lengths)
}

#[test]
fn texts_with_other_line_breaks_are_split_as_well() -> Result<()> {
    for end in ["\r\n", "\n\n", "\r\n\r\n", "\n    "] {
        let lengths = pieces(5 << 16, |i| format!("{}{end}", "word ".repeat(200 + i % 3) + "end"))?;
        let is_short = lengths.iter().all(|length| *length < 2 << 16);
        assert!(is_short && lengths.len() > 3, "{end:?}: {lengths:?}");
    }
    Ok(())
}

#[test]
fn texts_without_line_breaks_are_split_as_well() -> Result<()> {
    let lengths = pieces(5 << 19, |i| format!("word {i} "))?;
    assert_eq!(lengths.iter().map(|length| length >> 20).collect::<Vec<_>>(), [1, 1, 0]);
    Ok(())
}

#[test]
fn tokenizers_want_utf8() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let tokenizer = reference(folder.path())?;
    let text = tokens(&tokenizer, b"abc\xff").expect_err("it is not UTF-8").to_string();
    assert_eq!(
        text,
        "the text is not UTF-8 at byte 3: a tokenizer needs UTF-8; without --tokenizer, each byte is a token"
    );
    assert_eq!(tokens(&TextTokenizer::Bytes, b"abc\xff")?, [97, 98, 99, 255]);
    fs::write(folder.path().join("tokenizer.json"), "{}")?;
    let path = folder.path().join("tokenizer.json");
    let text = TextTokenizer::open(&path).expect_err("it is no tokenizer").to_string();
    assert!(text.starts_with(&format!("the tokenizer of {} failed: ", path.display())), "{text}");
    Ok(())
}

#[test]
fn tokens_are_computed_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (path, file) = (folder.path().join("text"), folder.path().join("tokens.bin"));
    fs::write(&path, "abcdef")?;
    let open = || -> Result<Vec<u32>> {
        let text = SourceText::open(&path, &TextTokenizer::Bytes)?;
        let stream = TokenFile::open(folder.path(), &text, &TextTokenizer::Bytes, &|| false)?;
        let mut tokens = vec![];
        stream.append(0, stream.len(), &mut tokens);
        Ok(tokens)
    };
    assert_eq!(open()?, [97, 98, 99, 100, 101, 102]);
    // A token and the checksum are changed, to see that the file is used.
    let mut bytes = fs::read(&file)?;
    let at = bytes.len() - 2;
    bytes[at] = 65;
    let checksum = crc32fast::hash(&bytes[56..]).to_le_bytes();
    bytes[52..56].copy_from_slice(&checksum);
    fs::write(&file, &bytes)?;
    assert_eq!(open()?, [97, 98, 99, 100, 101, 65]);
    // A token that was changed alone is found.
    bytes[at] = 66;
    fs::write(&file, &bytes)?;
    assert_eq!(open()?, [97, 98, 99, 100, 101, 102]);
    // Files that are not whole, and those of another text, are written again.
    fs::write(&file, &bytes[..at])?;
    assert_eq!(open()?, [97, 98, 99, 100, 101, 102]);
    fs::write(&file, "tma")?;
    assert_eq!(open()?, [97, 98, 99, 100, 101, 102]);
    fs::write(&path, "abcdeg")?;
    assert_eq!(open()?, [97, 98, 99, 100, 101, 103]);
    fs::write(&path, "")?;
    assert_eq!(open()?, [0; 0]);
    Ok(())
}

/// Returns a stream of the tokens 0, 1, 2 and so on.
fn counting(folder: &Path, tokens: u8) -> Result<TokenFile> {
    let path = folder.join("text");
    fs::write(&path, (0..tokens).collect::<Vec<_>>())?;
    let text = SourceText::open(&path, &TextTokenizer::Bytes)?;
    Ok(TokenFile::open(folder, &text, &TextTokenizer::Bytes, &|| false)?)
}

#[test]
fn windows_follow_from_seed_and_step() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let stream = counting(folder.path(), 100)?;
    let draw = |seed, step| windows::draw(&stream, &(10..50), seed, step, 64, 5);
    assert_eq!(draw(1, 2), draw(1, 2));
    assert_ne!(draw(1, 2), draw(1, 3));
    assert_ne!(draw(1, 2), draw(2, 2));
    let mut starts = HashSet::new();
    for step in 0..40 {
        let tokens = draw(3, step);
        assert_eq!(tokens.len(), 64 * 5);
        for window in tokens.chunks(5) {
            starts.insert(window[0]);
            assert!(window.is_sorted_by(|one, next| one + 1 == *next), "{window:?}");
        }
    }
    // Each beginning is drawn, up to the last one of a whole window.
    let mut starts: Vec<_> = starts.into_iter().collect();
    starts.sort_unstable();
    assert_eq!(starts, (10..=45).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn held_out_windows_are_evenly_spaced() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let stream = counting(folder.path(), 100)?;
    let starts = |windows| -> Vec<u32> {
        windows::spaced(&stream, &(50..100), windows, 10).chunks(10).map(|window| window[0]).collect()
    };
    assert_eq!(starts(1), [50]);
    assert_eq!(starts(5), [50, 60, 70, 80, 90]);
    assert_eq!(
        windows::spaced(&stream, &(90..100), 2, 10),
        [(90..100), (90..100)].into_iter().flatten().collect::<Vec<_>>()
    );
    Ok(())
}

#[test]
fn texts_shorter_than_a_window_are_errors() -> Result<()> {
    let parts = windows::split(1000, 0.02, 20)?;
    assert_eq!((parts.training, parts.validation), (0..980, 980..1000));
    assert_eq!(windows::split(20, 0.0, 20)?.validation, 20..20);
    let message = |tokens, share| match windows::split(tokens, share, 129) {
        Ok(parts) => format!("{parts:?}"),
        Err(error) => error.to_string(),
    };
    assert_eq!(
        message(100, 0.0),
        "the text to train on is shorter than one window: it has 100 tokens, a window has 129. Lower \
         --length, or give a longer --text"
    );
    assert_eq!(
        message(3000, 0.02),
        "the text that --validation holds out is shorter than one window: it has 60 tokens, a window has \
         129. Lower --length, or raise --validation, or give --validation 0"
    );
    Ok(())
}
