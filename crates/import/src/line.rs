//! Lines of a text, with their numbers.

/// A line of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// From 1.
    pub number: u64,
    /// Without what quoting put before it.
    pub text: &'a str,
}

impl Line<'_> {
    /// As a doubt cites it.
    pub fn quoted(&self) -> record::Quoted {
        let text = self.text.trim();
        let cut = text.char_indices().nth(120).map_or(text.len(), |(at, _)| at);
        record::Quoted { line: self.number, text: text[..cut].to_owned() }
    }
}

/// The line of a number, as a doubt cites it.
pub(crate) fn quoted(lines: &[Line<'_>], number: u64) -> record::Quoted {
    let place = lines.partition_point(|line| line.number < number);
    lines.get(place).filter(|line| line.number == number).map(Line::quoted).unwrap_or_default()
}
