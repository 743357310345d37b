//! What mail, forums and logs put before the lines of a text.

use crate::{Format, Text, line::Line, settings::command};

/// Quotations may be quoted.
const LEVELS: usize = 3;

/// A log's clock stands within so many bytes.
const CLOCK_WITHIN: usize = 40;

/// Lines of a log in which its prefix is looked for, and the longest that is.
const LINES_LOOKED_AT: usize = 64;
const LONGEST_PREFIX: usize = 120;

/// Lines without marks of quotation, and without what a log puts before each.
pub(crate) fn unquoted(text: &Text) -> Vec<Line<'_>> {
    let mut lines: Vec<&str> = text.lines.iter().map(String::as_str).collect();
    for _ in 0..LEVELS {
        if !without_marks(&mut lines) {
            break;
        }
    }
    // A comment of a program's output; what a shell prompts for is a command.
    for line in &mut lines {
        if let Some(rest) = line.strip_prefix("# ").filter(|rest| begins(rest.trim_start())) {
            *line = rest;
        }
    }
    without_log_prefixes(&mut lines);
    let numbered = lines.into_iter().enumerate();
    numbered.map(|(place, text)| Line { number: place as u64 + 1, text }).collect()
}

fn begins(line: &str) -> bool {
    Format::ALL.iter().any(|format| format.begins(line))
}

/// Takes one mark from each line of a quotation. A continuation line of a shell begins with the same mark, and is left as it
/// is: a command is read as a whole.
fn without_marks(lines: &mut [&str]) -> bool {
    let mut changed = false;
    let mut at = 0;
    while at < lines.len() {
        let count = lines[at..].iter().take_while(|line| marked(line).is_some()).count();
        let block = at..at + count;
        at = block.end + 1;
        let has_output = lines[block.clone()].iter().filter_map(|line| marked(line)).any(begins);
        let after_command = block.start.checked_sub(1).is_some_and(|before| {
            lines[before].trim_end().ends_with('\\') || command(lines[before]).is_some()
        });
        for line in &mut lines[block] {
            let Some(rest) = marked(line) else { continue };
            let is_option = rest.trim_start().starts_with("--");
            if (has_output && !after_command)
                || (!is_option && (begins(rest) || rest.contains(':')))
            {
                *line = rest;
                changed = true;
            }
        }
    }
    changed
}

/// What follows a mark of quotation.
fn marked(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('>')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// Takes what a log wrote before each of neighbouring lines: a clock, a level, a name. As much of it as they have in common,
/// digits aside, where then most of them begin an output.
fn without_log_prefixes(lines: &mut [&str]) {
    let mut at = 0;
    while at < lines.len() {
        let Some(least) = clock_end(lines[at]).or_else(|| mark_end(lines[at])) else {
            at += 1;
            continue;
        };
        let head = &lines[at][..least];
        let same = |line: &&&str| line.get(..least).is_some_and(|it| masked(it).eq(masked(head)));
        let count = lines[at..].iter().take_while(same).count();
        if count > 1 {
            let block = &mut lines[at..at + count];
            if let Some(cut) = cut(block, least) {
                block.iter_mut().for_each(|line| *line = line.get(cut..).unwrap_or_default());
            }
        }
        at += count;
    }
}

/// Where the lines' own text begins; the first of them show it.
fn cut(block: &[&str], least: usize) -> Option<usize> {
    let block = &block[..block.len().min(LINES_LOOKED_AT)];
    let common = block[1..].iter().fold(block[0].len(), |common, line| {
        let same = masked(block[0]).zip(masked(line)).take_while(|(a, b)| a == b).count();
        common.min(same)
    });
    let ends = (least..=common.min(LONGEST_PREFIX)).filter(|end| {
        block[0].as_bytes()[end - 1] == b' ' && block.iter().all(|line| line.is_char_boundary(*end))
    });
    let count =
        |end: usize| block.iter().filter(|line| line.get(end..).is_some_and(begins)).count();
    ends.map(|end| (count(end), end)).max().filter(|(count, _)| *count > 0).map(|(_, end)| end)
}

/// Where a time such as 20:16:21 ends, near a line's beginning.
fn clock_end(line: &str) -> Option<usize> {
    let near = &line.as_bytes()[..line.len().min(CLOCK_WITHIN)];
    let is_clock = |window: &[u8]| {
        window.iter().zip(b"00:00:00").all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => byte == form,
        })
    };
    let place = near.windows(8).position(is_clock)?;
    line.is_char_boundary(place + 8).then_some(place + 8)
}

/// Where a name ends that a log puts before each line: `db-1  | `, `[stdout] `.
fn mark_end(line: &str) -> Option<usize> {
    let near = line.char_indices().nth(CLOCK_WITHIN).map_or(line, |(at, _)| &line[..at]);
    let begins_word = near.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[');
    let end = ["| ", "] "].into_iter().filter_map(|mark| Some(near.find(mark)? + mark.len())).min();
    end.filter(|_| begins_word)
}

/// Bytes, of which all digits are one.
fn masked(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte })
}
