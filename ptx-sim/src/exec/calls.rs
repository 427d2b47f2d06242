//! Calls and returns, and the functions of CUDA's device runtime: `vprintf` and `__assertfail`.

use super::format::{self, WIDEST};
use super::lanes_of;
use super::step::{Flow, Turn};
use super::warp::Warp;
use crate::isa::{Memory, Row};
use crate::machine::{Order, Site, Space, Stop};
use crate::report::FindingKind;

/// The longest text that is read from memory.
const LONGEST_TEXT: u64 = 64 << 10;

const GENERIC: Memory = Memory::Machine(Space::Generic);

impl Turn<'_, '_> {
    /// `brx.idx`: each lane goes where its index says.
    pub(super) fn branch_indexed(
        &mut self,
        warp: &Warp,
        active: u32,
        index: Row,
        targets: &[u32],
        site: Site,
    ) -> Result<Flow, Stop> {
        let mut places = Vec::new();
        for lane in lanes_of(active) {
            let index = warp.get(self.context, index, lane);
            let Some(target) = targets.get(index as usize) else {
                let message = "an index beyond the list of targets";
                return self.fail(warp, lane, site, message, FindingKind::Execution);
            };
            places.push((*target, 1 << lane));
        }
        Ok(Flow::Scatter(places))
    }

    /// The return of a function: each lane goes back to where it was called.
    pub(super) fn back(&self, warp: &Warp, active: u32, link: Row) -> Flow {
        let back = |lane| (warp.get(self.context, link, lane) as u32, 1 << lane);
        Flow::Scatter(lanes_of(active).map(back).collect())
    }

    pub(super) fn printf(
        &mut self,
        warp: &mut Warp,
        active: u32,
        format: u32,
        args: u32,
        result: Option<u32>,
        site: Site,
    ) -> Result<(), Stop> {
        for lane in lanes_of(active) {
            let format = self.local_number(warp, lane, format, site)?;
            let mut next = self.local_number(warp, lane, args, site)?;
            let format = self.text(warp, lane, format, site)?;
            let mut written = 0;
            for piece in format::pieces(&format) {
                let text = match piece {
                    format::Piece::Text(text) => text.into_owned(),
                    format::Piece::TooWide => {
                        let message = format!(
                            "a conversion of `printf` with a width or a precision of more than {WIDEST} characters"
                        );
                        return self.fail(warp, lane, site, message, FindingKind::Execution);
                    }
                    format::Piece::Value(spec) => {
                        written += 1;
                        let value = self.argument(warp, lane, &mut next, spec.bytes, site)?;
                        if spec.is_text() {
                            let text = self.text(warp, lane, value, site)?;
                            spec.padded(String::from_utf8_lossy(&text).into_owned())
                        } else {
                            spec.number(value)
                        }
                    }
                };
                self.printed.push(&text);
            }
            if let Some(result) = result {
                let (at, written) = (u64::from(result), u32::to_le_bytes(written));
                self.write(warp, lane, Memory::Local, at, &written, Order::Weak, site)?;
            }
        }
        Ok(())
    }

    /// The next argument: a multiple of its own size along.
    fn argument(
        &mut self,
        warp: &Warp,
        lane: u32,
        next: &mut u64,
        bytes: u32,
        site: Site,
    ) -> Result<u64, Stop> {
        let address = next.checked_next_multiple_of(u64::from(bytes)).unwrap_or(0);
        *next = address.wrapping_add(u64::from(bytes));
        let mut wide = [0; 8];
        let out = &mut wide[..bytes as usize];
        self.read(warp, lane, GENERIC, address, out, Order::Weak, site)?;
        Ok(u64::from_le_bytes(wide))
    }

    fn local_number(&mut self, warp: &Warp, lane: u32, offset: u32, site: Site) -> Result<u64, Stop> {
        let mut bytes = [0; 8];
        self.read(warp, lane, Memory::Local, u64::from(offset), &mut bytes, Order::Weak, site)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A text that ends with a zero byte.
    fn text(&mut self, warp: &Warp, lane: u32, address: u64, site: Site) -> Result<Vec<u8>, Stop> {
        let mut text = Vec::new();
        for offset in 0..LONGEST_TEXT {
            let mut byte = [0];
            self.read(warp, lane, GENERIC, address.wrapping_add(offset), &mut byte, Order::Weak, site)?;
            if byte[0] == 0 {
                return Ok(text);
            }
            text.push(byte[0]);
        }
        self.fail(
            warp,
            lane,
            site,
            format!("a text at {address:#x} that does not end"),
            FindingKind::Execution,
        )
    }

    pub(super) fn assert_fail(
        &mut self,
        warp: &Warp,
        active: u32,
        [message, file, line, function]: [u32; 4],
        site: Site,
    ) -> Result<Flow, Stop> {
        let lane = active.trailing_zeros();
        let mut texts = Vec::new();
        for place in [message, file, function] {
            let address = self.local_number(warp, lane, place, site)?;
            let text = if address == 0 { Vec::new() } else { self.text(warp, lane, address, site)? };
            texts.push(String::from_utf8_lossy(&text).into_owned());
        }
        let mut bytes = [0; 4];
        self.read(warp, lane, Memory::Local, u64::from(line), &mut bytes, Order::Weak, site)?;
        let (line, count) = (u32::from_le_bytes(bytes), active.count_ones());
        let [message, file, function] = [0, 1, 2].map(|index| texts[index].as_str());
        let threads = if count == 1 { String::new() } else { format!(", in {count} threads of the warp") };
        let message = format!("assertion failed at {file}:{line} in {function}: {message}{threads}");
        self.fail(warp, lane, site, message, FindingKind::Trap)
    }
}
