//! Texts that end a completion before its tokens do.

/// Looks for the first of some texts in pieces of another.
#[derive(Debug)]
pub(super) struct Stops {
    stops: Vec<String>,
    /// Text that may be the beginning of one of them.
    held: String,
}

impl Stops {
    pub(super) fn new(stops: Vec<String>) -> Self {
        Self { stops, held: String::new() }
    }

    /// Returns the text that can be sent after a further piece, and whether one of the texts
    /// follows. If the piece is the last one, nothing is held back.
    pub(super) fn push(&mut self, piece: &str, is_last: bool) -> (String, bool) {
        self.held.push_str(piece);
        if let Some(at) = self.stops.iter().filter_map(|stop| self.held.find(stop)).min() {
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), true);
        }
        let kept = if is_last { 0 } else { self.beginning() };
        let rest = self.held.split_off(self.held.len() - kept);
        (std::mem::replace(&mut self.held, rest), false)
    }

    /// Returns the length of the longest end of the held text that begins one of the texts.
    fn beginning(&self) -> usize {
        let starts = self.held.char_indices().map(|(at, _)| &self.held[at..]);
        let mut begins = starts.filter(|end| self.stops.iter().any(|stop| stop.starts_with(end)));
        begins.next().map_or(0, str::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(stops: &[&str], pieces: &[&str]) -> (Vec<String>, bool) {
        let mut search = Stops::new(stops.iter().map(|&stop| stop.to_owned()).collect());
        let mut sent = vec![];
        for (i, piece) in pieces.iter().enumerate() {
            let (text, is_stopped) = search.push(piece, i + 1 == pieces.len());
            sent.push(text);
            if is_stopped {
                return (sent, true);
            }
        }
        (sent, false)
    }

    #[test]
    fn text_before_a_stop_is_sent() {
        assert_eq!(all(&["end"], &["the ", "e", "nd of"]), (vec!["the ".into(), "".into(), "".into()], true));
        assert_eq!(all(&["x", "nd"], &["end x"]), (vec!["e".into()], true));
    }

    #[test]
    fn what_only_begins_like_a_stop_is_sent_later() {
        assert_eq!(all(&["end"], &["th e", "n", "t"]), (vec!["th ".into(), "".into(), "ent".into()], false));
        assert_eq!(all(&["end"], &["en"]), (vec!["en".into()], false));
        assert_eq!(all(&[], &["é", "a"]), (vec!["é".into(), "a".into()], false));
    }
}
