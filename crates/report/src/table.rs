//! Tables of aligned columns.

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// Rows of text in aligned columns.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these columns.
    pub fn new(columns: &[(&str, Align)]) -> Table {
        let columns = columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row; cells that are missing are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = cells.into_iter().collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// For a terminal: columns two spaces apart. Where a row would be longer than `width`, its first
    /// cell has a line of its own, cut only if even that is too short.
    pub fn text(&self, width: usize) -> String {
        let mut widths = self.widths();
        let others: usize = widths.iter().skip(1).map(|width| width + 2).sum();
        if let Some(first) = widths.first_mut() {
            *first = (*first).min(width.saturating_sub(others).max(12));
        }
        let header: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let mut out = String::new();
        for row in std::iter::once(&header).chain(&self.rows) {
            let mut row = row.clone();
            let too_long =
                |cell: &String, width: &usize| cell.chars().count() > *width && row.len() > 1;
            if row.first().zip(widths.first()).is_some_and(|(cell, width)| too_long(cell, width)) {
                let alone = std::mem::take(&mut row[0]);
                let length = alone.chars().count().min(width);
                out.push_str(&fit(&alone, length, Align::Left));
                out.push('\n');
            }
            let cells: Vec<String> = row
                .iter()
                .zip(&self.columns)
                .zip(&widths)
                .map(|((cell, (_, align)), &width)| fit(cell, width, *align))
                .collect();
            out.push_str(cells.join("  ").trim_end());
            out.push('\n');
        }
        out
    }

    /// The names of the columns, and then the rows.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Vec<&str>> {
        let names = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(String::as_str).collect());
        std::iter::once(names).chain(rows)
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let header: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let rule: Vec<String> = self
            .columns
            .iter()
            .map(|(_, align)| if *align == Align::Right { "--:" } else { "---" }.to_owned())
            .collect();
        let mut out = line(&header) + &line(&rule);
        for row in &self.rows {
            let escaped: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            out += &line(&escaped);
        }
        out
    }

    fn widths(&self) -> Vec<usize> {
        self.columns
            .iter()
            .enumerate()
            .map(|(place, (name, _))| {
                let cells = self.rows.iter().map(|row| row[place].chars().count());
                cells.chain([name.chars().count()]).max().unwrap_or(0)
            })
            .collect()
    }
}

/// The cell in exactly `width` columns; cut with `…` where it is longer.
fn fit(cell: &str, width: usize, align: Align) -> String {
    let length = cell.chars().count();
    if length > width {
        let kept: String = cell.chars().take(width.saturating_sub(1)).collect();
        return kept + "…";
    }
    let space = " ".repeat(width - length);
    match align {
        Align::Left => format!("{cell}{space}"),
        Align::Right => format!("{space}{cell}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_first_cell_has_a_line_of_its_own() {
        let mut table = Table::new(&[("what", Align::Left), ("figure", Align::Right)]);
        table.row(["short".to_owned(), "1".to_owned()]);
        table.row(["a label that is too long".to_owned(), "2".to_owned()]);
        let text = table.text(24);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].trim_end(), "what              figure");
        assert_eq!(lines[2], "a label that is too long");
        assert_eq!(lines[3].trim(), "2");
        assert!(lines.iter().all(|line| line.chars().count() <= 24), "{text}");
    }
}
