//! `cargo tma sass`.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tma_setup::process;
use tma_setup::program::NVDISASM;

use super::assembled::{self, Assembled};
use crate::arguments::Sass;
use crate::kernel::Kernel;
use crate::output::Output;
use crate::package;
use crate::progress;
use crate::style::{bold, source};

/// An instruction, or a label.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    text: String,
    /// File and line of the source.
    at: Option<(u32, usize)>,
}

/// Shows the machine code of the kernels with this name.
pub(crate) fn run(options: &Sass) -> Result<Output> {
    let nvdisasm = assembled::require(&NVDISASM)?;
    let package = package::find(options.build.package.as_deref())?;
    let kernels = package::named(package.kernels(&options.build)?, &options.kernel)?;
    let (mut text, mut json, mut is_clean) = (String::new(), vec![], true);
    for kernel in &kernels {
        let label = format!("assembling {}", kernel.name);
        let assembled = progress::during(&label, || assembled::assemble(kernel))?;
        let mut command = Command::new(&nvdisasm.path);
        command.args(["--print-line-info", "--print-code"]).arg(&assembled.cubin);
        let label = format!("disassembling {}", kernel.name);
        let listing =
            progress::during(&label, || process::output(&mut command)).context("nvdisasm failed")?;
        let lines = read(&listing, kernel);
        text += &format!("{}\n{}{}", bold(&kernel.name), interleaved(&lines, kernel), assembled.text());
        json.push(of_kernel(kernel, &lines, &assembled));
        is_clean &= assembled.ptxas_report.is_clean();
        assembled.remove();
    }
    Ok(Output { text, json: Value::Array(json), is_clean })
}

/// Parses the output of nvdisasm: `//## File "/a/src/lib.rs", line 12`, labels and instructions.
fn read(listing: &str, kernel: &Kernel) -> Vec<Line> {
    let (mut lines, mut at) = (vec![], None);
    for line in listing.lines().map(str::trim_end) {
        if let Some(source_location) = line.trim_start().strip_prefix("//## File ") {
            // For inlined code, the first location is that of the function's source.
            at = source_location_of(source_location, kernel).or(at);
        } else if let Some(instruction) = line.trim_start().strip_prefix("/*") {
            let text = instruction.split_once("*/").map_or(instruction, |(_, rest)| rest);
            let text = text.split_once("/*").map_or(text, |(text, _)| text);
            lines.push(Line { text: format!("    {}", text.trim()), at });
        } else if line.starts_with(".L_") || line.starts_with(".text") {
            lines.push(Line { text: line.to_owned(), at: None });
        }
    }
    lines
}

/// Parses `"/a/src/lib.rs", line 12`. For inlined code, further locations follow.
fn source_location_of(text: &str, kernel: &Kernel) -> Option<(u32, usize)> {
    let (path, rest) = text.strip_prefix('"')?.split_once('"')?;
    let digits: String = rest.strip_prefix(", line ")?.chars().take_while(char::is_ascii_digit).collect();
    Some((kernel.file_number(path)?, digits.parse().ok()?))
}

fn interleaved(lines: &[Line], kernel: &Kernel) -> String {
    let (mut text, mut shown) = (String::new(), None);
    for line in lines {
        if line.at.is_some() && line.at != shown {
            if let Some((source_location, code)) = line.at.and_then(|(file, line)| kernel.source(file, line))
            {
                text += &format!("{}\n", source(format!("// {source_location}: {code}")));
            }
            shown = line.at;
        }
        text += &format!("{}\n", line.text);
    }
    text
}

fn of_kernel(kernel: &Kernel, lines: &[Line], assembled: &Assembled) -> Value {
    let one = |line: &Line| {
        let source_location = line
            .at
            .and_then(|(file, line)| kernel.source(file, line))
            .map(|(source_location, _)| source_location);
        json!({ "text": line.text.trim(), "source": source_location })
    };
    json!({
        "kernel": kernel.name,
        "entry": kernel.entry,
        "target": kernel.target,
        "sass": lines.iter().map(one).collect::<Vec<_>>(),
        "ptxas": assembled.json(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn instructions_get_their_lines() {
        let ptx = "// kernel: k\n.target sm_90a\n.entry k()\n\t.file\t1 \"src/lib.rs\"\n";
        let kernel = Kernel::read("k.ptx".into(), ptx.to_owned(), Path::new("nowhere")).unwrap();
        let listing = "\t.headerflags\t@\"..\"\n.text.k:\n\t//## File \"/a/src/lib.rs\", line 12\n        \
            /*0000*/                   LDC R1, c[0x0][0x28] ;\n\t//## File \"/a/src/lib.rs\", line 14 inlined at \
            \"/a/src/lib.rs\", line 3\n.L_x_0:\n        /*0010*/              @!P0 EXIT ;  /* 0x0 */\n";
        let lines = read(listing, &kernel);
        let line = |text: &str, at| Line { text: text.to_owned(), at };
        let wanted = [
            line(".text.k:", None),
            line("    LDC R1, c[0x0][0x28] ;", Some((1, 12))),
            line(".L_x_0:", None),
            line("    @!P0 EXIT ;", Some((1, 14))),
        ];
        assert_eq!(lines, wanted);
    }
}
