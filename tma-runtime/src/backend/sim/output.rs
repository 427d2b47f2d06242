//! Output that kernels print.

use std::io::Write;

use ptx_sim::{PRINTED_BYTES, Report};

/// Prints the output of a launch, with a notice if it exceeded a GPU's buffer.
///
/// A launch does not fail because standard output is closed: the output is lost, as on a GPU, where
/// the driver prints it.
pub(super) fn show(out: &mut impl Write, kernel: &str, report: &Report) {
    if report.printed.is_empty() {
        return;
    }
    let cut = match report.printed_lost {
        0 => String::new(),
        lost => format!(
            "[`{kernel}` printed {lost} more bytes before these: the print buffer of a launch keeps the last \
             {PRINTED_BYTES}]\n"
        ),
    };
    let _nobody_reads = write!(out, "{cut}{}", report.printed).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(printed: &str, printed_lost: u64) -> Report {
        Report { printed: printed.to_owned(), printed_lost, ..Report::default() }
    }

    #[test]
    fn truncated_output_is_reported() {
        let mut out = Vec::new();
        show(&mut out, "k", &report("seven 7\n", 0));
        assert_eq!(out, b"seven 7\n");
        show(&mut out, "k", &report("eight 8\n", 12));
        let text = String::from_utf8_lossy(&out).into_owned();
        let wanted = "[`k` printed 12 more bytes before these: the print buffer of a launch keeps the last \
                      1048576]\neight 8\n";
        assert_eq!(text, format!("seven 7\n{wanted}"));
    }

    /// A standard output whose reader has exited.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn a_closed_output_stops_nothing() {
        show(&mut Closed, "k", &report("seven 7\n", 1));
    }
}
