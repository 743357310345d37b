//! SHOW GLOBAL VARIABLES and SHOW GLOBAL STATUS: context of a run, and no figures of it.

use super::{Format, Line, Reading};
use crate::{Piece, PieceKind};

/// The heading of the table, with frames or with tabs.
pub(super) fn begins(line: &str) -> bool {
    let words: Vec<&str> =
        line.split(['|', '\t', ' ']).map(str::trim).filter(|word| !word.is_empty()).collect();
    matches!(
        words[..],
        ["Variable_name" | "variable_name" | "VARIABLE_NAME", "Value" | "value" | "VARIABLE_VALUE"]
    )
}

pub(super) fn read(lines: &[Line<'_>]) -> Reading {
    let framed = lines[0].text.contains('|');
    let mut all = Vec::new();
    let (mut used, mut last) = (1, lines[0].number);
    for line in &lines[1..] {
        let text = line.text.trim();
        if text.starts_with("+-") || (text.is_empty() && all.is_empty()) {
            used += 1;
            continue;
        }
        let Some((name, value)) = row(text, framed) else { break };
        all.push((name.to_owned(), value.to_owned()));
        last = line.number;
        used += 1;
    }
    let pieces = match all.is_empty() {
        true => Vec::new(),
        false => vec![Piece {
            format: Format::Variables,
            tool: "server variables".to_owned(),
            first: lines[0].number,
            last,
            kind: PieceKind::Variables(all),
        }],
    };
    Reading { lines: used, pieces }
}

fn row(text: &str, framed: bool) -> Option<(&str, &str)> {
    let (name, value) = match framed {
        true => text.strip_prefix('|')?.trim_end().strip_suffix('|')?.split_once('|')?,
        false => text.split_once('\t').or_else(|| text.split_once(' ')).unwrap_or((text, "")),
    };
    let name = name.trim();
    let is_name = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    (is_name && name.contains('_')).then_some((name, value.trim()))
}
