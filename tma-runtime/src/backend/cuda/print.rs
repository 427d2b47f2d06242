//! The output of kernels that print without a call: see [`ptx_probe::print`].

use super::context::Context;
use super::driver::{self, Driver, PageLocked};
use crate::spec::KernelSpec;
use ptx_probe::print::{Printing, Progress, Reader, Taken, is_needed, without_calls};
use std::io::{self, Write};

/// The size of a ring in 32-bit words. A tile as large as can be printed fits.
const WORDS: usize = 1 << 19;

/// The ring of a kernel. It is host memory, which can be read after the kernel has stopped.
#[derive(Debug)]
pub(super) struct Printer {
    ring: PageLocked<WORDS>,
    reader: Reader,
}

impl Printer {
    /// Returns a ring, with the PTX that prints to it, if the kernel needs one. In any other case
    /// the kernel calls the driver, which costs time, but loses nothing.
    pub(super) fn attach(driver: &'static Driver, spec: &KernelSpec) -> Option<(Self, String)> {
        if !is_needed(spec.ptx) {
            return None;
        }
        let ring = PageLocked::zeroed(driver).ok()?;
        let Printing { ptx, form } = without_calls(spec.ptx, ring.address(), WORDS).ok()?;
        // As the output of a host's `printf`, it appears when the process ends normally.
        driver::at_exit(|| Context::each_open(Context::print_last));
        Some((Self { ring, reader: Reader::new(form) }, ptx))
    }

    /// Prints what launches of the kernel `name` have written since the last call.
    pub(super) fn show(&mut self, name: &str, progress: Progress) {
        let Taken { text, lost } = self.reader.take(|index| self.ring.word(index), progress);
        let _nobody_reads = write(&mut io::stdout().lock(), name, &text, lost);
    }
}

/// Writes the output of a kernel. A program does not fail because nobody reads that.
fn write(out: &mut impl Write, kernel: &str, text: &str, lost: u64) -> io::Result<()> {
    if lost > 0 {
        writeln!(out, "[`{kernel}` printed {lost} records before these, which were lost]")?;
    }
    if !text.is_empty() {
        out.write_all(text.as_bytes())?;
    }
    if lost > 0 || !text.is_empty() { out.flush() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::write;

    #[test]
    fn lost_records_are_reported_before_the_rest() {
        let written = |text, lost| {
            let mut out = Vec::new();
            write(&mut out, "k", text, lost).expect("memory");
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(written("a 1\n", 0), "a 1\n");
        assert_eq!(written("", 0), "");
        let lost = "[`k` printed 7 records before these, which were lost]\na 1\n";
        assert_eq!(written("a 1\n", 7), lost);
    }
}
