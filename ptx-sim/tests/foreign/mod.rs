//! PTX from nvcc and Triton: under several seeds the simulator must reproduce the results of an
//! H200, and find nothing wrong.

mod compare;
mod inputs;
mod manifest;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use manifest::{Case, Value};
use ptx_sim::tensor_map::{Fill, Interleave, Mode, Swizzle};
use ptx_sim::{Arg, Checks, GlobalMemory, LaunchConfig, Module, TensorMap, launch};

const SEEDS: u64 = 8;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// The result of a case: the bytes of the compared buffers, and the printed text.
struct Outcome {
    buffers: Vec<Vec<u8>>,
    printed: String,
}

/// Returns the argument for a parameter. `addresses` are those of the case's buffers.
fn argument(case: &Case, value: &Value, addresses: &[u64]) -> Arg {
    match value {
        Value::Buffer(name) => Arg::Address(addresses[case.buffer(name)]),
        Value::Scalar(scalar) => Arg::Bytes(scalar.bytes()),
        Value::Map(map) => {
            let of = case.buffer(&map.map);
            let element = map.element.unwrap_or_else(|| case.buffers[of].ty.element());
            let inner_first = |extents: &[u32]| extents.iter().rev().copied().collect::<Vec<u32>>();
            let extents: Vec<u64> = map.extents.iter().rev().copied().collect();
            let mut dense = 1;
            let mut strides: Vec<u64> = Vec::new();
            for (dimension, extent) in extents[1..].iter().zip(&extents).map(|(_, extent)| extent).enumerate()
            {
                let given = map.strides.iter().rev().nth(dimension);
                dense = given.copied().unwrap_or(dense * extent);
                strides.push(dense * u64::from(element.bytes()));
            }
            Arg::Map(TensorMap {
                element,
                address: addresses[of],
                byte_strides: strides,
                mode: Mode::Tiled { box_extents: inner_first(&map.tile) },
                interleave: Interleave::None,
                element_strides: map.steps.as_deref().map_or(vec![1; extents.len()], inner_first),
                swizzle: match map.swizzle {
                    Some(32) => Swizzle::B32,
                    Some(64) => Swizzle::B64,
                    Some(_) => Swizzle::B128,
                    None => Swizzle::None,
                },
                fill: if map.outside.is_some() { Fill::Nan } else { Fill::Zeros },
                extents,
            })
        }
    }
}

/// Runs a case. The error describes a mistake in the kernel or its launch.
fn run(case: &Case, ptx: &str, seed: u64) -> Result<Outcome, String> {
    // Variables keep their values between launches, so each run has a module of its own.
    let module = Module::load(ptx).map_err(|error| error.to_string())?;
    let mut memory = GlobalMemory::default();
    let mut addresses = Vec::new();
    for (index, buffer) in case.buffers.iter().enumerate() {
        let bytes = inputs::contents(index, buffer);
        let address = memory.allocate(bytes.len() as u64, true).expect("there is room");
        memory.write(address, &bytes).expect("it was just allocated");
        addresses.push(address);
    }
    let args: Vec<Arg> = case.args.iter().map(|value| argument(case, value, &addresses)).collect();
    let config = LaunchConfig {
        grid: manifest::extents(&case.grid),
        block: manifest::extents(&case.block),
        cluster: manifest::extents(&case.cluster),
        dynamic_shared_bytes: case.shared,
        seed,
        checks: Checks::ALL,
        cooperative: case.cooperative,
        ..LaunchConfig::default()
    };
    let report =
        launch(&module, &mut memory, &case.kernel, &config, &args).map_err(|error| error.to_string())?;
    let kinds: BTreeSet<String> = report.findings.iter().map(|finding| finding.kind.to_string()).collect();
    if kinds != case.finds.iter().cloned().collect() {
        let found = report.findings.render(&module.sources(|_| None));
        return Err(format!("expected {:?}, found\n{found}", case.finds));
    }
    let compared = case.buffers.iter().zip(addresses).filter(|(buffer, _)| buffer.compare.is_some());
    let buffers = compared.map(|(buffer, address)| {
        let mut bytes = vec![0; buffer.bytes()];
        memory.read(address, &mut bytes).expect("it is still there");
        bytes
    });
    Ok(Outcome { buffers: buffers.collect(), printed: report.printed })
}

/// Runs a case under a seed, and compares the result with the GPU's.
fn judge(case: &Case, ptx: &str, seed: u64, wanted: &[&[u8]], text: &str) -> Result<(), String> {
    let outcome = run(case, ptx, seed)?;
    let compared = case.buffers.iter().filter(|buffer| buffer.compare.is_some());
    for (buffer, (wanted, found)) in compared.zip(wanted.iter().zip(&outcome.buffers)) {
        compare::check(buffer, wanted, found)?;
    }
    let wanted = if case.prints { text } else { "" };
    if outcome.printed == wanted {
        Ok(())
    } else {
        Err(format!("it prints\n{}where the GPU prints\n{wanted}", outcome.printed))
    }
}

/// Checks all cases of a topic: the name of a folder and of a file, without its extension.
fn check(topic: &str) {
    let read = |ending: &str| fs::read(corpus().join(format!("{topic}.{ending}")));
    let text = |ending: &str| Some(String::from_utf8(read(ending).ok()?).expect("it is text"));
    let ptx = text("ptx").expect("the PTX is there");
    let cases = manifest::read(&text("json").expect("the manifest is there"));
    let printed = text("txt").unwrap_or_default();
    let outputs = read("out").expect("the GPU's outputs are there");
    let mut rest = outputs.as_slice();
    let mut wrong = Vec::new();
    for case in &cases {
        let compared = case.buffers.iter().filter(|buffer| buffer.compare.is_some());
        let wanted: Vec<&[u8]> = compared
            .map(|buffer| rest.split_off(..buffer.bytes()).expect("the GPU's outputs are whole"))
            .collect();
        assert!(case.prints || !wanted.is_empty(), "{} compares nothing", case.name());
        let failed = (0..SEEDS)
            .find_map(|seed| judge(case, &ptx, seed, &wanted, &printed).err().map(|error| (seed, error)));
        wrong.extend(failed.map(|(seed, error)| format!("{} under seed {seed}: {error}", case.name())));
    }
    assert!(wrong.is_empty(), "{} of {} cases\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(rest.is_empty(), "the GPU's outputs are {} bytes longer than the manifest says", rest.len());
}

macro_rules! topics {
    ($($folder:ident: $($topic:ident)*;)*) => {
        $(mod $folder {
            $(#[test]
            fn $topic() {
                super::check(concat!(stringify!($folder), "/", stringify!($topic)));
            })*
        })*

        const TOPICS: &[&str] = &[$($(concat!(stringify!($folder), "/", stringify!($topic))),*),*];
    };
}

topics! {
    cuda: atomics bulk cluster cub elementwise fourier functions halves integers matrix norms pipeline reduce rounding scan
        sort stencil tensor transpose warp;
    triton: add floats8 histogram layer_norm reduce scan softmax sort stages transpose;
}

#[test]
fn every_topic_of_the_corpus_is_tested() {
    let mut found = Vec::new();
    for folder in ["cuda", "triton"] {
        for entry in fs::read_dir(corpus().join(folder)).expect("the folder is there") {
            let name = entry.expect("it can be read").file_name().into_string().expect("names are text");
            found.extend(name.strip_suffix(".ptx").map(|topic| format!("{folder}/{topic}")));
        }
    }
    found.sort();
    assert_eq!(found, TOPICS);
}
