//! Lines of labelled boxes, as text and as SVG.

use std::fmt;

/// Height of a line in pixels, and the distance from the left edge to the boxes.
const HEIGHT: u64 = 22;
const MARGIN: u64 = 56;

/// A box.
pub(super) struct Cell {
    /// A colour in SVG syntax.
    pub(super) fill: String,
    pub(super) label: String,
}

/// Rows of boxes, with their headings and legend.
pub(super) struct Drawing {
    pub(super) title: String,
    /// The heading of each column.
    pub(super) heads: Vec<String>,
    /// The label of each line, and its boxes. `None` is an empty position.
    pub(super) lines: Vec<(String, Vec<Option<Cell>>)>,
    /// The width of a box in pixels.
    pub(super) width: u64,
    /// The meaning of the colours, drawn as a line below the others, where one is needed.
    pub(super) legend: Vec<Cell>,
}

/// Returns one of eight colours.
pub(super) fn colour(number: u32) -> String {
    shade(number, 80)
}

/// Returns one of eight colours, with a lightness in percent.
pub(super) fn shade(number: u32, light: u32) -> String {
    format!("hsl({},70%,{light}%)", number % 8 * 45)
}

impl Drawing {
    /// Renders the drawing as SVG.
    pub(super) fn svg(&self) -> String {
        let columns = self.heads.len() as u64;
        let below = HEIGHT * (self.lines.len() as u64 + 1);
        let legend = if self.legend.is_empty() { 0 } else { HEIGHT * 3 / 2 };
        let (width, height) = (MARGIN + self.width * columns + 1, below + legend + 1);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" \
             font-size=\"11\">\n<title>{}</title>\n",
            self.title
        );
        for (column, head) in (0..).zip(&self.heads) {
            let x = MARGIN + column * self.width + self.width / 2;
            svg += &format!("<text x=\"{x}\" y=\"15\" text-anchor=\"middle\">{head}</text>\n");
        }
        for (line, (head, cells)) in (1..).zip(&self.lines) {
            let y = HEIGHT * line;
            svg +=
                &format!("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{head}</text>\n", MARGIN - 6, y + 15);
            for (column, cell) in (0..).zip(cells) {
                svg += &boxed(cell.as_ref(), MARGIN + column * self.width, y, self.width);
            }
        }
        for (column, cell) in (0..).zip(&self.legend) {
            svg += &boxed(Some(cell), MARGIN + column * self.width, below + HEIGHT / 2, self.width);
        }
        svg + "</svg>\n"
    }
}

/// Renders a box at this corner, with its label in the middle.
fn boxed(cell: Option<&Cell>, x: u64, y: u64, width: u64) -> String {
    let (fill, label) = cell.map_or(("white", ""), |cell| (&cell.fill, &cell.label));
    format!(
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" fill=\"{fill}\" stroke=\"black\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{label}</text>\n",
        x + width / 2,
        y + 15
    )
}

/// Formats the drawing as text: the boxes of each line side by side, in columns.
impl fmt::Display for Drawing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        let labels = self.lines.iter().flat_map(|(_, cells)| cells).flatten().map(|cell| cell.label.len());
        let width = labels.chain(self.heads.iter().map(String::len)).max().unwrap_or(0);
        writeln!(f, "{}", row(" ".repeat(7), self.heads.iter().map(String::as_str), width))?;
        for (head, cells) in &self.lines {
            let labels = cells.iter().map(|cell| cell.as_ref().map_or("-", |cell| &cell.label));
            writeln!(f, "{}", row(format!("{head:>6}:"), labels, width))?;
        }
        Ok(())
    }
}

/// Formats a line of labels, padded to the same width.
fn row<'a>(head: String, labels: impl Iterator<Item = &'a str>, width: usize) -> String {
    let row = labels.fold(head, |row, label| row + &format!(" {label:<width$}"));
    row.trim_end().to_owned()
}
