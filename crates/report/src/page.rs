//! Text that keeps within a width.

use crate::words;

/// Paragraphs, headings and items within a width.
pub(crate) struct Page {
    text: String,
    width: usize,
}

impl Page {
    pub fn new(width: usize) -> Page {
        Page { text: String::new(), width }
    }

    pub fn text(self) -> String {
        self.text
    }

    pub fn head(&mut self, text: &str) {
        self.text += &format!("\n{text}\n");
    }

    /// A name and its value, the value's further lines below it.
    pub fn item(&mut self, name: &str, value: &str) {
        const COLUMN: usize = 28;
        self.wrapped(&format!("  {name:<width$}", width = COLUMN - 2), COLUMN, value);
    }

    /// A paragraph, its further lines two columns in.
    pub fn line(&mut self, indent: usize, text: &str) {
        self.wrapped(&" ".repeat(indent), indent + 2, text);
    }

    /// A line of a table, which is as wide as it is.
    pub fn raw(&mut self, text: &str) {
        self.text += text.trim_end();
        self.text.push('\n');
    }

    fn wrapped(&mut self, start: &str, hang: usize, text: &str) {
        self.text += words::wrap_after(start, text, self.width, hang).trim_end();
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_within_the_width_and_words_stay_whole() {
        let mut page = Page::new(80);
        page.line(6, &"word ".repeat(40));
        page.item("name", &"value ".repeat(30));
        page.line(2, &"x".repeat(100));
        let text = page.text();
        let mut lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.pop().map(str::trim), Some("x".repeat(100).as_str()));
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
        assert!(text.starts_with("      word word"));
    }
}
