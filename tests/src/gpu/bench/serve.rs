//! Slices on request, for rivals in other processes, such as Python's. They alternate with the
//! kernels of this process, one line of the standard input at a time.
//!
//! A line is `BENCHMARK/CONTESTANT SHAPE`, as in results: `products/bf16/NAME 4096x8192x1024`,
//! `attention/FORM/NAME 16x4096x128`, `attention_backward/MASK/NAME 16x4096x128`,
//! `grouped/bf16/tma_kernels 8x4096x7168`, `few_rows/cold/scaled 8x7168x2048` or `decode/CACHE/NAME
//! 16x32x8x8192`. The response is a JSON line, with `tflops` and the state of the GPU, or with
//! `error`. For `decode` and `few_rows`, `tflops` are terabytes per second. The contestant and its
//! operands are created at the first slice, and kept until another line names a different one.

use std::io::{BufRead, Write};

use anyhow::Context;
use serde_json::{Value, json};
use tma_runtime::prelude::*;

use super::attention::{self, Heads};
use super::attention_backward;
use super::decode;
use super::experts;
use super::few_rows;
use super::products::contestants::{self, Contestant};
use super::products::precision::{Bf16, E4m3, F16, Precision, S8, Tf32};
use super::products::{problem::Problem, shape};
use super::slices::{Instruments, Measured, Slices};

/// Writes a response for each line of `requests` to `responses`.
///
/// # Errors
///
/// Errors of the device outside of a request, which are part of the response, and of the streams.
pub fn serve(
    device: &Device,
    slice_ms: f64,
    requests: impl BufRead,
    mut responses: impl Write,
) -> anyhow::Result<()> {
    let (stream, instruments) = (device.stream()?, Instruments::load(device)?);
    let slices = Slices { stream: &stream, instruments: &instruments, slice_ms };
    let mut current: Option<(String, Server<'_>)> = None;
    for request in requests.lines() {
        let request = request?;
        let mut slice = || {
            if current.as_ref().is_none_or(|(name, _)| *name != request) {
                current = None; // frees its memory before the next is allocated
                current = Some((request.clone(), server(&slices, &request)?));
            }
            let (_, server) = current.as_mut().context("no request")?;
            server()
        };
        let response = match slice() {
            Ok(measured) => json!(measured),
            Err(error) => json!({ "error": format!("{error:#}") }),
        };
        writeln!(responses, "{}", Value::to_string(&response))?;
        responses.flush()?;
    }
    Ok(())
}

/// Runs a slice of the requested contestant.
type Server<'a> = Box<dyn FnMut() -> anyhow::Result<Measured> + 'a>;

fn server<'a>(slices: &'a Slices<'a>, request: &str) -> anyhow::Result<Server<'a>> {
    let (name, extents) = request.split_once(' ').context("a request is a name and a shape")?;
    if let Some(contestant) = name.strip_prefix("decode/") {
        return of_decode(slices, contestant, decode::Shape::parse(extents)?);
    }
    let extents = shape(extents)?;
    if let Some(contestant) = name.strip_prefix("few_rows/") {
        return of_few_rows(slices, contestant, extents);
    }
    let mut parts = name.splitn(3, '/');
    match [parts.next(), parts.next(), parts.next()] {
        [Some("attention"), Some(_), Some(_)] => of_attention(slices, name, extents),
        [Some("attention_backward"), Some(_), Some(_)] => of_gradients(slices, name, extents),
        [Some("grouped" | "scaled"), Some(_), Some(_)] => of_experts(slices, name, extents),
        [Some("products"), Some(precision), Some(kernel)] => match precision {
            F16::NAME => of_product::<F16>(slices, kernel, extents),
            Bf16::NAME => of_product::<Bf16>(slices, kernel, extents),
            Tf32::NAME => of_product::<Tf32>(slices, kernel, extents),
            E4m3::NAME => of_product::<E4m3>(slices, kernel, extents),
            S8::NAME => of_product::<S8>(slices, kernel, extents),
            other => anyhow::bail!("there are no products of `{other}`"),
        },
        _ => anyhow::bail!("`{name}` is no benchmark with slices"),
    }
}

fn of_product<'a, P: Precision>(
    slices: &'a Slices<'a>,
    name: &str,
    shape: [usize; 3],
) -> anyhow::Result<Server<'a>> {
    let found = contestants::kernels::<P>().into_iter().find(|kernel| kernel.name == name);
    let kernel: Contestant<'_, P> = found.with_context(|| format!("there is no kernel `{name}`"))?;
    let mut problem = Problem::<P>::new(slices.stream.device(), shape)?;
    problem.check(&kernel, slices.stream, None)?;
    let operations = problem.operations();
    let slice = slices.prepare(&mut || kernel.multiply(slices.stream, &mut problem.matrices))?;
    Ok(Box::new(move || {
        let mut queue = || kernel.multiply(slices.stream, &mut problem.matrices);
        // SAFETY: the slice was prepared with this problem, which lives as long.
        unsafe { slices.run(&slice, operations, &mut queue) }
    }))
}

fn of_attention<'a>(slices: &'a Slices<'a>, name: &str, shape: [usize; 3]) -> anyhow::Result<Server<'a>> {
    let kernel = attention::CONTESTANTS.iter().find(|kernel| attention::name(kernel) == name);
    let kernel = kernel.with_context(|| format!("there is no kernel `{name}`"))?;
    let mut tensors = Heads::new(slices.stream.device(), shape)?;
    tensors.check(kernel, slices.stream)?;
    let operations = tensors.operations(kernel.form);
    let slice = slices.prepare(&mut || tensors.queue(kernel, slices.stream))?;
    Ok(Box::new(move || {
        let mut queue = || tensors.queue(kernel, slices.stream);
        // SAFETY: the slice was prepared with these tensors, which live as long.
        unsafe { slices.run(&slice, operations, &mut queue) }
    }))
}

fn of_gradients<'a>(slices: &'a Slices<'a>, name: &str, shape: [usize; 3]) -> anyhow::Result<Server<'a>> {
    let form = attention_backward::find(name)?;
    let mut pass = attention_backward::Pass::new(slices.stream, shape, form)?;
    pass.check(slices.stream)?;
    let operations = pass.operations();
    let slice = slices.prepare(&mut || pass.queue(slices.stream))?;
    Ok(Box::new(move || {
        let mut queue = || pass.queue(slices.stream);
        // SAFETY: the slice was prepared with these tensors, which live as long.
        unsafe { slices.run(&slice, operations, &mut queue) }
    }))
}

fn of_decode<'a>(slices: &'a Slices<'a>, name: &str, shape: decode::Shape) -> anyhow::Result<Server<'a>> {
    let contestant = decode::CONTESTANTS.iter().find(|contestant| contestant.name == name);
    let contestant = contestant.with_context(|| format!("there is no contestant `{name}`"))?;
    let mut steps = decode::Steps::new(slices.stream.device(), shape, *contestant)?;
    steps.check(slices.stream)?;
    let bytes = steps.bytes();
    let slice = slices.prepare(&mut || steps.queue(slices.stream))?;
    Ok(Box::new(move || {
        let mut queue = || steps.queue(slices.stream);
        // SAFETY: the slice was prepared with these tensors, which live as long.
        unsafe { slices.run(&slice, bytes, &mut queue) }
    }))
}

fn of_few_rows<'a>(slices: &'a Slices<'a>, name: &str, shape: [usize; 3]) -> anyhow::Result<Server<'a>> {
    let mut task = few_rows::Task::new(slices.stream, shape, few_rows::find(name)?, true)?;
    task.check(slices.stream)?;
    let bytes = task.bytes();
    let slice = slices.prepare(&mut || task.queue(slices.stream))?;
    Ok(Box::new(move || {
        let mut queue = || task.queue(slices.stream);
        // SAFETY: the task has the tensors of the slice, and lives as long.
        unsafe { slices.run(&slice, bytes, &mut queue) }
    }))
}

fn of_experts<'a>(slices: &'a Slices<'a>, name: &str, shape: [usize; 3]) -> anyhow::Result<Server<'a>> {
    let kernel = experts::CONTESTANTS.iter().find(|kernel| kernel.name == name);
    let kernel = kernel.with_context(|| format!("there is no kernel `{name}`"))?;
    let mut task = (kernel.task)(slices.stream.device(), shape)?;
    let operations = task.operations;
    let slice = slices.prepare(&mut || task.queue(slices.stream))?;
    Ok(Box::new(move || {
        let mut queue = || task.queue(slices.stream);
        // SAFETY: the task owns the tensors of the slice, and lives as long.
        unsafe { slices.run(&slice, operations, &mut queue) }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_answered_with_a_slice_or_an_error() {
        let requests = "products/bf16/dense_gemm::bf16_bf16_f32_k_k 8x16x64
products/bf16/dense_gemm::bf16_bf16_f32_k_k 8x16x64
attention/causal/example 1x64x128
attention/causal/example 1x64x64
products/bf16/none 64
products/f64/none 64
copies/tma_copy 64
attention/full/example
scaled/e4m3/tma_kernels 8x16x64
grouped/bf16/none 8x16x64
";
        let mut responses = vec![];
        serve(&Device::simulator(), 1e-3, requests.as_bytes(), &mut responses).unwrap();
        let responses = String::from_utf8(responses).unwrap();
        let responses: Vec<Value> =
            responses.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(responses.len(), 10);
        assert!(
            responses[..3].iter().all(|response| response["tflops"].as_f64() > Some(0.0)),
            "{responses:?}"
        );
        assert!(responses[8]["tflops"].as_f64() > Some(0.0), "{responses:?}");
        let errors = responses[3..8].iter().chain(&responses[9..]);
        let errors: Vec<_> = errors.map(|response| response["error"].as_str().unwrap()).collect();
        let wanted = [
            "heads have 64 elements",
            "no kernel `none`",
            "no products of `f64`",
            "`copies/tma_copy`",
            "a name and",
            "no kernel `grouped/bf16/none`",
        ];
        assert_eq!(errors.len(), wanted.len());
        assert!(errors.iter().zip(wanted).all(|(error, wanted)| error.contains(wanted)), "{errors:?}");
    }
}
