//! A package with an operator for Python: its mistakes, and its wheel.

mod common;

use std::fs;
use std::process::Command;

use common::{environment, has, new_package, new_package_with, printed};

/// Runs `cargo tma wheel` with a compiler that is quick to build, and returns what it prints.
fn wheel(folder: &std::path::Path, line: &str, ptx: Option<&str>, code: i32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-tma"));
    command.args(["tma", "wheel"]).args(line.split_whitespace());
    environment(&mut command, folder);
    command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    ptx.map(|ptx| command.env("TMA_PTX", ptx));
    let output = command.output().unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    if code == 2 { err } else { out }
}

#[test]
fn a_package_without_a_c_library_is_refused() {
    let folder = new_package("no-wheel");
    let said = printed(&folder, "wheel", 2);
    has(
        &said,
        &["the package `no-wheel` is no C library; add `[lib]` with `crate-type = [\"cdylib\", \"rlib\"]`"],
    );
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    let library = "\n[lib]\ncrate-type = [\"cdylib\"]\n[package.metadata.tma-wheel]\nname = \"no-wheel\"\n";
    fs::write(&manifest, text + library).unwrap();
    has(&printed(&folder, "wheel", 2), &["`no-wheel` is no name of a Python module; set another one"]);
}

#[test]
fn a_new_package_becomes_a_wheel() {
    let folder = new_package_with("hello-torch", "--torch");
    let mut test = Command::new(env!("CARGO"));
    environment(&mut test, &folder);
    let tested = test.arg("test").output().unwrap();
    let text = String::from_utf8_lossy(&[tested.stdout, tested.stderr].concat()).into_owned();
    assert!(tested.status.success(), "{text}");
    has(&text, &["scale_doubles ... ok"]);

    let said = wheel(&folder, "", Some("off"), 2);
    has(&said, &["the library has kernels without PTX: ", "or keep the PTX with `cargo tma ptx --keep`"]);

    let said = wheel(&folder, "--out wheels --format json", None, 0);
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(json["operators"], serde_json::json!(["scale(Tensor x, float factor) -> Tensor"]));
    assert_eq!(json["kernels"], serde_json::json!(["scale"]));
    let path = json["wheel"].as_str().unwrap();
    has(path, &["wheels/hello_torch-0.1.0-py3-none-", ".whl"]);
    let wheel_bytes = fs::read(folder.join(path)).unwrap();
    assert_eq!(json["bytes"], wheel_bytes.len());
    let names = String::from_utf8_lossy(&wheel_bytes);
    has(&names, &["hello_torch/library.so", "hello_torch/_torch.py", "hello_torch-0.1.0.dist-info/RECORD"]);

    // Mistakes of declarations are found by the command.
    let operators = folder.join("src/operators.rs");
    let text = fs::read_to_string(&operators).unwrap();
    fs::write(&operators, text.replace("empty_like(x)", "empty_like(z)")).unwrap();
    let said = wheel(&folder, "", None, 2);
    has(
        &said,
        &[
            "have mistakes:\n  `scale`: `z` is neither an argument nor an element type; arguments are x, factor",
        ],
    );
    fs::write(&operators, text.replace("tma_python::library!(Scale);", "")).unwrap();
    has(&wheel(&folder, "", None, 2), &["the library of `hello-torch` has no operators; declare them"]);
}
