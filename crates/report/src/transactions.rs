//! What a database's transactions were: by type, and what one of them cost.

use crate::{Align, Table, words};
use analysis::{CellSummary, Group};

/// Columns of the costs: heading, and the names in `TransactionSummary::per_transaction` that are
/// added up.
const COSTS: [(&str, &[&str]); 7] = [
    ("InnoDB fsyncs", &["InnoDB fsyncs"]),
    ("WAL fsyncs", &["WAL fsyncs"]),
    ("flushes", &["device flushes"]),
    ("reads", &["device reads"]),
    ("writes", &["device writes"]),
    ("KiB", &["device KiB read", "device KiB written"]),
    ("CPU µs", &["server CPU µs"]),
];

fn all(group: &Group) -> impl Iterator<Item = (&CellSummary, &str)> {
    let cells = group.cells.iter().map(|cell| (&cell.summary, "  "));
    std::iter::once((&group.baseline, "* ")).chain(cells)
}

/// What one transaction cost in each cell; none where blocks were measured.
pub(crate) fn costs(group: &Group) -> Option<Table> {
    let known = |name: &str| {
        all(group).any(|(summary, _)| {
            summary.transactions.as_ref().is_some_and(|t| t.per_transaction.contains_key(name))
        })
    };
    let shown: Vec<_> =
        COSTS.into_iter().filter(|(_, names)| names.iter().any(|name| known(name))).collect();
    if shown.is_empty() {
        return None;
    }
    let columns: Vec<(&str, Align)> = std::iter::once(("a transaction", Align::Left))
        .chain(shown.iter().map(|(heading, _)| (*heading, Align::Right)))
        .collect();
    let mut table = Table::new(&columns);
    for (summary, mark) in all(group) {
        let cost = |names: &[&str]| {
            let of = &summary.transactions.as_ref()?.per_transaction;
            let found: Vec<f64> = names.iter().filter_map(|name| of.get(name).copied()).collect();
            (!found.is_empty()).then(|| found.iter().sum::<f64>())
        };
        let figures = shown.iter().map(|(_, names)| match cost(names) {
            Some(value) if value < 9.995 => format!("{value:.2}"),
            Some(value) => words::count(value),
            None => "-".to_owned(),
        });
        table.row(std::iter::once(format!("{mark}{}", summary.label)).chain(figures));
    }
    Some(table)
}

/// Each type of transaction in each cell; none where there is only one type.
pub(crate) fn types(group: &Group) -> Option<Table> {
    use Align::{Left, Right};
    let several = |summary: &CellSummary| {
        summary.transactions.as_ref().is_some_and(|transactions| transactions.types.len() > 1)
    };
    if !all(group).any(|(summary, _)| several(summary)) {
        return None;
    }
    let mut table = Table::new(&[
        ("", Left),
        ("type", Left),
        ("trans/s", Right),
        ("p50", Right),
        ("p99", Right),
        ("max", Right),
    ]);
    let spelled =
        |time: Option<units::Nanos>| time.map_or_else(|| "-".to_owned(), |time| time.to_string());
    for (summary, mark) in all(group) {
        let types = summary.transactions.iter().flat_map(|transactions| &transactions.types);
        for (place, (name, of_type)) in types.enumerate() {
            let label = match place {
                0 => format!("{mark}{}", summary.label),
                _ => String::new(),
            };
            table.row([
                label,
                name.clone(),
                words::count(of_type.per_second),
                spelled(of_type.p50),
                spelled(of_type.p99),
                spelled(of_type.max),
            ]);
        }
    }
    Some(table)
}

/// Transactions that were begun anew, in sentences.
pub(crate) fn retries(group: &Group) -> Vec<String> {
    let of_cell = |(summary, _): (&CellSummary, &str)| {
        let transactions = summary.transactions.as_ref()?;
        let each: Vec<String> = transactions
            .retries_per_second
            .iter()
            .map(|(why, rate)| format!("{} a second for: {why}", words::count(*rate)))
            .collect();
        (!each.is_empty()).then(|| {
            format!(
                "Begun anew under {}, the time of all attempts in the latency: {}.",
                summary.label,
                each.join("; ")
            )
        })
    };
    all(group).filter_map(of_cell).collect()
}
