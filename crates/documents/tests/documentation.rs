//! The documentation of this repository.

#![allow(clippy::unwrap_used)]

use documents::checks;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_relative_link_leads_somewhere() {
    let broken = checks::broken_links(&root()).unwrap();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_is_reachable_from_the_front() {
    let lost = checks::unreachable(&root()).unwrap();
    assert!(lost.is_empty(), "no link leads to {lost:?}; docs/README.md is the index");
}

#[test]
fn every_table_of_data_says_where_it_comes_from() {
    let wrong = checks::undescribed(&root()).unwrap();
    assert!(wrong.is_empty(), "file without manifest entry, or entry without file: {wrong:?}");
}

/// Words outside tables that the pages below a path may have together.
const BUDGETS: [(&str, usize); 7] = [
    ("README.md", 600),
    ("CONTRIBUTING.md", 700),
    ("docs/guide", 7300),
    ("docs/science", 3000),
    ("docs/classics", 2500),
    ("docs/design/emulated.md", 1200),
    ("docs/design", 9000),
];

/// Words that one scheduler's page may have.
const SCHEDULER_BUDGET: usize = 1200;

#[test]
fn pages_are_no_longer_than_agreed() {
    let root = root();
    let pages = checks::pages(&root).unwrap();
    let words = |page: &Path| checks::words(&checks::read(&root, page).unwrap());
    for (path, budget) in BUDGETS {
        let inside = pages.iter().filter(|page| page.starts_with(path));
        let total: usize = inside.map(|page| words(page)).sum();
        assert!(total <= budget, "{path} has {total} words; {budget} were agreed");
    }
    for page in pages.iter().filter(|page| page.starts_with("docs/reference/schedulers")) {
        let count = words(page);
        assert!(count <= SCHEDULER_BUDGET, "{} has {count} words", page.display());
    }
}

#[test]
fn shares_of_the_agreement_follow_from_its_cells() {
    let folder = root().join("data/validation");
    let agreement = documents::data::table(&folder.join("agreement.csv")).unwrap();
    let cells = documents::data::table(&folder.join("cells.csv")).unwrap();
    let column = |table: &documents::data::DataTable, id: &str| {
        table.entry.columns.iter().position(|(known, _)| known == id).unwrap()
    };
    let (profile, beyond) = (column(&cells, "profile"), column(&cells, "beyond"));
    for row in &agreement.rows {
        let of_profile: Vec<_> = cells.rows.iter().filter(|cell| cell[profile] == row[0]).collect();
        assert_eq!(of_profile.len().to_string(), row[column(&agreement, "cells")], "{}", row[0]);
        for figure in ["throughput", "median", "p99"] {
            let misses = |cell: &&&Vec<String>| cell[beyond].split(' ').any(|it| it == figure);
            let misses = of_profile.iter().filter(misses).count();
            let share = 100.0 * (1.0 - misses as f64 / of_profile.len() as f64);
            let stated: f64 = row[column(&agreement, &format!("{figure}_within"))].parse().unwrap();
            assert!((share - stated).abs() <= 0.6, "{} {figure}: {share} and {stated}", row[0]);
        }
    }
}
