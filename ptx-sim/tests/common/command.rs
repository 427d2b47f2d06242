//! Runs the command `ptx-sim`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the path of a file that belongs to this test.
pub(crate) fn output_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

pub(crate) fn file(name: &str, content: impl AsRef<[u8]>) -> String {
    let path = output_path(name);
    fs::write(&path, content).expect("the folder can be written");
    path.to_string_lossy().into_owned()
}

/// Runs the command with `paths`, followed by the space-separated `words`.
pub(crate) fn run(paths: &[&str], words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptx-sim"));
    // Findings name source files relative to the repository's root.
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    command.arg("run").args(paths).args(words.split_whitespace()).output().expect("it starts")
}

/// Returns the output, and checks the exit code.
pub(crate) fn printed(output: &Output, code: i32) -> String {
    let [out, error] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert_eq!(output.status.code(), Some(code), "{out}\n{error}");
    assert!(!error.contains("panicked"), "{error}");
    out + &error
}

/// The shape and arguments of `tma_copy` on a matrix of 90×520.
pub(crate) const COPY: &str = "--grid 3,3 --block 128 --shared 16392 --buffer random:f16:90x520:5 --buffer zeros:f16:90x520 \
                    --arg map:0:f16:extents=90x520:box=32x256 --arg map:1:f16:extents=90x520:box=32x256";

/// Changes the PTX of `tma_copy` to expect fewer bytes than are copied.
pub(crate) fn wrong_bytes(text: &str) -> String {
    // The number also occurs as an address. Only the count of bytes is moved to a register.
    let wrong: Vec<_> = text
        .lines()
        .map(|line| if line.contains("mov.b32") { line.replace("16384", "16368") } else { line.to_owned() })
        .collect();
    let wrong = wrong.join("\n");
    assert_ne!(text.trim_end(), wrong);
    wrong
}
