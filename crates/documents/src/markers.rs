//! Sections of a page that the program writes, between markers:
//!
//! ```text
//! <!-- table data/validation/agreement.csv columns=profile,cells where=why!= -->
//! <!-- end -->
//! <!-- generated exit-codes -->
//! <!-- end -->
//! ```

use crate::DocumentError;
use crate::data::{self, Condition, Selection};
use std::path::Path;

const TABLE: &str = "<!-- table ";
const GENERATED: &str = "<!-- generated ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// The page with its marked sections rendered anew. `root` is the folder that holds data/, `page` is
/// the page's name for messages, `generate` makes the section of a name.
pub fn render(
    root: &Path,
    page: &str,
    text: &str,
    generate: &dyn Fn(&str) -> Option<String>,
) -> Result<String, DocumentError> {
    let mut out = String::new();
    let mut lines = text.split_inclusive('\n').enumerate();
    while let Some((at, line)) = lines.next() {
        out.push_str(line);
        let Some(section) = section(root, page, at + 1, line.trim_end(), generate)? else {
            continue;
        };
        let unclosed = || DocumentError::Unclosed { page: page.to_owned(), line: at + 1 };
        let (_, end) = lines.find(|(_, line)| line.trim_end() == END).ok_or_else(unclosed)?;
        // Blank lines, because Markdown reads what touches a comment as part of it.
        out.push_str(&format!("\n{}\n\n{end}", section.trim_end()));
    }
    Ok(out)
}

/// What belongs below a line, if it is a marker.
fn section(
    root: &Path,
    page: &str,
    line: usize,
    text: &str,
    generate: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, DocumentError> {
    let inside = |opening: &str| text.strip_prefix(opening)?.strip_suffix(CLOSE);
    if let Some(name) = inside(GENERATED) {
        let unknown = || DocumentError::UnknownSection {
            page: page.to_owned(),
            line,
            section: name.to_owned(),
        };
        return generate(name).ok_or_else(unknown).map(Some);
    }
    let Some(words) = inside(TABLE) else { return Ok(None) };
    let mut words = words.split_whitespace();
    let path = root.join(words.next().unwrap_or_default());
    let mut selection = Selection::default();
    for word in words {
        if let Some(columns) = word.strip_prefix("columns=") {
            selection.columns = columns.split(',').map(str::to_owned).collect();
        } else if let Some(condition) = word.strip_prefix("where=").and_then(condition) {
            selection.conditions.push(condition);
        } else {
            return Err(DocumentError::UnknownOption {
                page: page.to_owned(),
                line,
                option: word.to_owned(),
            });
        }
    }
    let table = data::table(&path)?;
    let markdown = table.markdown(&selection).map_err(|unknown| DocumentError::UnknownColumn {
        page: page.to_owned(),
        line,
        column: unknown.column,
        known: table.entry.columns.iter().map(|(id, _)| id.clone()).collect(),
    })?;
    Ok(Some(markdown))
}

/// `column=value` or `column!=value`.
fn condition(text: &str) -> Option<Condition> {
    let (column, value) = text.split_once('=')?;
    let (column, equal) = match column.strip_suffix('!') {
        Some(column) => (column, false),
        None => (column, true),
    };
    Some(Condition { column: column.to_owned(), value: value.to_owned(), equal })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MANIFEST: &str = "
        [[table]]
        file = 'a.csv'
        title = 'a'
        commit = 'unknown'
        kernel = 'unknown'
        cpu = 'unknown'
        date = 'unknown'
        command = 'unknown'
        columns = [['name', 'device'], ['rate', 'rate, /s'], ['why', '']]
    ";

    fn rendered(text: &str) -> Result<String, DocumentError> {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("manifest.toml"), MANIFEST).unwrap();
        std::fs::write(root.path().join("a.csv"), "name,rate,why\ndisk,172,\nflash,35000,w\n")
            .unwrap();
        render(root.path(), "page.md", text, &|name| (name == "x").then(|| "made".to_owned()))
    }

    #[test]
    fn a_table_is_rendered_from_its_file() {
        let text = rendered("A\n<!-- table a.csv columns=name,rate -->\nold\n<!-- end -->\nB\n");
        let table = "| device | rate, /s |\n|---|--:|\n| disk | 172 |\n| flash | 35000 |";
        let want =
            format!("A\n<!-- table a.csv columns=name,rate -->\n\n{table}\n\n<!-- end -->\nB\n");
        assert_eq!(text.unwrap(), want);
    }

    #[test]
    fn rows_are_selected() {
        let text =
            rendered("<!-- table a.csv columns=name where=why!= -->\n<!-- end -->\n").unwrap();
        assert!(text.contains("flash") && !text.contains("disk"), "{text}");
        let text = rendered("<!-- table a.csv where=name=disk -->\n<!-- end -->\n").unwrap();
        assert!(!text.contains("flash") && text.contains("disk"), "{text}");
    }

    #[test]
    fn rendering_twice_changes_nothing() {
        let once = rendered("<!-- generated x -->\n<!-- end -->\n").unwrap();
        assert_eq!(once, "<!-- generated x -->\n\nmade\n\n<!-- end -->\n");
        assert_eq!(rendered(&once).unwrap(), once);
    }

    #[test]
    fn mistakes_name_page_and_line() {
        let message = |text: &str| rendered(text).unwrap_err().to_string();
        assert!(message("\n<!-- generated y -->\n<!-- end -->\n").starts_with("page.md:2:"));
        assert!(message("<!-- table a.csv columns=b -->\n<!-- end -->\n").contains("name, rate"));
        assert!(message("<!-- table a.csv sort=b -->\n<!-- end -->\n").contains("sort=b"));
        assert!(message("<!-- table a.csv -->\n").contains("<!-- end -->"));
    }
}
