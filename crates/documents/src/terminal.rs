//! Markdown as text for a terminal: the subset that docs/reference uses.

use textwrap::Options;

/// The page laid out in lines of at most `width` columns. Links become their text, comments go,
/// paragraphs and list items are wrapped, code keeps its lines, tables are aligned where they fit
/// and laid out row by row where they do not.
pub fn text(markdown: &str, width: usize) -> String {
    let mut out = String::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("<!--") {
            continue;
        }
        if line.starts_with("```") {
            for code in lines.by_ref().take_while(|line| !line.starts_with("```")) {
                out.push_str(&format!("{code}\n"));
            }
        } else if line.starts_with('|') {
            let mut rows = vec![cells(line)];
            while let Some(next) = lines.next_if(|next| next.starts_with('|')) {
                rows.push(cells(next));
            }
            out.push_str(&table(&rows, width));
        } else if line.starts_with("    ") {
            out.push_str(&format!("{line}\n"));
        } else if let Some(heading) = line.strip_prefix('#') {
            let heading = plain(heading.trim_start_matches('#').trim());
            out.push_str(&format!("{}\n", textwrap::fill(&heading, width)));
        } else if line.trim().is_empty() {
            if !out.is_empty() && !out.ends_with("\n\n") {
                out.push('\n');
            }
        } else {
            let mut paragraph = line.trim_start().to_owned();
            let indent = line.len() - line.trim_start().len();
            let item = paragraph.starts_with("- ");
            while let Some(next) = lines.next_if(|next| continues(next)) {
                paragraph.push(' ');
                paragraph.push_str(next.trim());
            }
            let first = " ".repeat(indent);
            let rest = " ".repeat(indent + if item { 2 } else { 0 });
            let options = Options::new(width).initial_indent(&first).subsequent_indent(&rest);
            out.push_str(&textwrap::fill(&plain(&paragraph), options));
            out.push('\n');
        }
    }
    format!("{}\n", out.trim_end())
}

/// Whether a line goes on with the paragraph before it.
fn continues(line: &str) -> bool {
    let text = line.trim_start();
    !text.is_empty() && !["- ", "|", "#", "<!--"].iter().any(|start| text.starts_with(start))
}

/// Without links' targets, emphasis and code marks.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find("](") {
        let (before, after) = rest.split_at(open);
        let Some(close) = after.find(')') else { break };
        match before.rfind('[') {
            Some(start) => {
                out.push_str(&before[..start]);
                out.push_str(&before[start + 1..]);
            }
            None => out.push_str(before),
        }
        rest = &after[close + 1..];
    }
    out.push_str(rest);
    without_emphasis(&out.replace("**", "")).replace('`', "")
}

/// Without the asterisks that open or close emphasis; one within a word (`read*4`) stays.
fn without_emphasis(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let blank = |at: Option<usize>| {
        at.and_then(|at| letters.get(at)).is_none_or(|c| !c.is_alphanumeric() && *c != '`')
    };
    let marks = |at: usize| {
        letters[at] == '*'
            && (blank(at.checked_sub(1)) != blank(Some(at + 1)) || {
                // `*Factor.*`: punctuation before the closing mark.
                at > 0 && ".,:;)".contains(letters[at - 1])
            })
    };
    (0..letters.len()).filter(|at| !marks(*at)).map(|at| letters[at]).collect()
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner
        .replace("\\|", "\u{0}")
        .split('|')
        .map(|cell| plain(cell.trim()).replace('\u{0}', "|"))
        .collect()
}

fn table(rows: &[Vec<String>], width: usize) -> String {
    let is_rule = |row: &Vec<String>| row.iter().all(|cell| cell.chars().all(|c| "-:".contains(c)));
    let rows: Vec<&Vec<String>> = rows.iter().filter(|row| !is_rule(row)).collect();
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let length = |text: &str| textwrap::core::display_width(text);
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            rows.iter().filter_map(|row| row.get(at)).map(|cell| length(cell)).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    // The last column may be wrapped below itself; the others must fit as they are.
    let (last, before) = widths
        .split_last()
        .map_or((0, 0), |(last, rest)| (*last, rest.iter().map(|width| width + 2).sum::<usize>()));
    if before + last.min(24) > width {
        let heads = rows.first().copied().cloned().unwrap_or_default();
        for row in rows.iter().skip(1) {
            for (at, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
                let head = heads.get(at).filter(|head| at > 0 && !head.is_empty());
                let line = head.map_or_else(|| cell.clone(), |head| format!("{head}: {cell}"));
                let first = if at == 0 { "" } else { "  " };
                let options = Options::new(width).initial_indent(first).subsequent_indent("    ");
                out.push_str(&format!("{}\n", textwrap::fill(&line, options)));
            }
        }
        return out;
    }
    for row in rows {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            if at + 1 == columns {
                let hang = " ".repeat(before);
                let options = Options::new(width).initial_indent(&line).subsequent_indent(&hang);
                line = textwrap::fill(cell, options);
                break;
            }
            line.push_str(cell);
            line.push_str(&" ".repeat(widths[at] + 2 - length(cell)));
        }
        out.push_str(&format!("{}\n", line.trim_end()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_wrapped_and_code_is_kept() {
        let page = "# bfq\n\nShares of [sectors](x.md) **instead**\nof `time`.\n\n    a  b\n- one\n  two\n";
        assert_eq!(
            text(page, 24),
            "bfq\n\nShares of sectors\ninstead of time.\n\n    a  b\n- one two\n"
        );
    }

    #[test]
    fn a_table_fits_or_is_laid_out_by_rows() {
        let page = "| name | meaning |\n|---|---|\n| a | one two three four five six seven |\n";
        assert_eq!(
            text(page, 32),
            "name  meaning\na     one two three four five\n      six seven\n"
        );
        let wide =
            "| name | first meaning | second |\n|---|---|---|\n| a | one two three four | five |\n";
        assert_eq!(text(wide, 24), "a\n  first meaning: one two\n    three four\n  second: five\n");
    }

    #[test]
    fn fenced_code_is_kept() {
        assert_eq!(text("a\n\n```text\nx  y\n  z\n```\n\nb\n", 20), "a\n\nx  y\n  z\n\nb\n");
    }

    #[test]
    fn emphasis_goes_and_asterisks_within_words_stay() {
        assert_eq!(
            plain("*Factor.* The *margin* of `read*4` is **3**"),
            "Factor. The margin of read*4 is 3"
        );
    }

    #[test]
    fn comments_are_left_out() {
        assert_eq!(text("<!-- generated x -->\n\ntext\n\n<!-- end -->\n", 20), "text\n");
    }
}
