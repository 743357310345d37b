//! HammerDB: result lines, whose two figures changed places between versions.

use super::{Format, Line, Reading};
use crate::{
    Output, Piece, PieceKind,
    text::{number, whole},
};
use record::{Doubt, ImportedRate, Quantity, RateUnit};

pub(super) fn begins(line: &str) -> bool {
    result(line).is_some()
}

/// `TEST RESULT : System achieved 12345 NOPM from 28560 PostgreSQL TPM`, or `… 28560 PostgreSQL TPM at 12345
/// NOPM` before 4.0: new orders and transactions a minute.
fn result(line: &str) -> Option<(f64, f64)> {
    let rest = line.split("System achieved ").nth(1)?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let before = |unit: &str| {
        let place = words.iter().position(|word| word.trim_end_matches(['.', ',']) == unit)?;
        words[..place].iter().rev().find_map(|word| number(word))
    };
    Some((before("NOPM")?, before("TPM")?))
}

pub(super) fn read(lines: &[Line<'_>]) -> Reading {
    let line = lines[0];
    let Some((new_orders, transactions)) = result(line.text) else {
        return Reading { lines: 1, pieces: Vec::new() };
    };
    let mut output = Output::default();
    output.conditions.benchmark = "TPROC-C".to_owned();
    // `Vuser 1:33 Active Virtual Users configured` stands on a line before; the result line has none.
    output.conditions.clients = line
        .text
        .split(" Virtual Users")
        .next()
        .filter(|before| before.len() < line.text.len())
        .and_then(|before| before.split_whitespace().next_back().and_then(whole));
    output.add("NEW_ORDER", Quantity::RatePerMinute, new_orders, line.number);
    output.add("transactions", Quantity::RatePerMinute, transactions, line.number);
    let unit = RateUnit::NewOrdersPerMinute;
    output.rate = Some(ImportedRate { value: new_orders, unit, line: line.number });
    // New orders are 45 % of TPC-C's transactions, of which servers count each commit and more.
    if transactions > 0.0 && new_orders > transactions {
        output.doubts.push(Doubt::Contradiction {
            what: "NOPM, which is part of TPM".to_owned(),
            stated: new_orders,
            computed: transactions,
            at: line.quoted(),
            against: line.quoted(),
        });
    }
    output.doubts.push(Doubt::NotTpc);
    let kind = PieceKind::Run(Box::new(output));
    let (first, last) = (line.number, line.number);
    let tool = "HammerDB".to_owned();
    Reading { lines: 1, pieces: vec![Piece { format: Format::HammerDb, tool, first, last, kind }] }
}
