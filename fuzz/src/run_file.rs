//! Run files that somebody changed: what is done to them, and everything that reads them. Used by the target `run`, and
//! by the program's own tests, which draw their choices from a seeded stream in place of libFuzzer's bytes.

use analysis::{
    Analysis, FleetAnalysis, HostRun, Limit, Metric, RunDiff, SessionAnalysis, Wish, check_plan,
    findings, recommend,
};
use record::{Following, Run, Store, Waiting};
use report::PageRun;
use rusqlite::{Connection, types::Value as Cell};
use serde_json::{Value, json};
use std::path::Path;

/// Gives a number below another.
pub type Choice<'a> = dyn FnMut(u64) -> u64 + 'a;

/// Columns that hold JSON, the most telling first.
const JSON: &[(&str, &str)] = &[
    ("run", "plan"),
    ("run", "plan"),
    ("run", "plan"),
    ("run", "environment"),
    ("event", "data"),
    ("trial", "warnings"),
    ("trial", "applied"),
    ("trial", "reason"),
    ("operation", "service"),
    ("operation", "response"),
    ("transaction_type", "service"),
    ("session", "environment"),
    ("imported", "rate"),
    ("imported", "doubts"),
];

/// Every column that holds something else.
const PLAIN: &[(&str, &[&str])] = &[
    ("run", &["name", "started_at", "state"]),
    ("cell", &["cell", "baseline", "label"]),
    ("trial", &["trial", "round", "cell", "replica", "started_at", "outcome", "reason", "session"]),
    (
        "trial",
        &[
            "span_ns",
            "generator_user_ns",
            "generator_system_ns",
            "generator_threads",
            "generator_busiest_permille",
        ],
    ),
    ("operation", &["trial", "job", "kind", "operations", "bytes", "service", "response"]),
    ("client", &["trial", "job", "client", "operations", "bytes"]),
    ("error", &["trial", "job", "error", "operations"]),
    ("second", &["at", "reads", "writes", "bytes", "p50_ns", "p99_ns", "max_ns", "transactions"]),
    ("counter", &["at", "name", "value"]),
    ("event", &["round", "cell", "kind", "session"]),
    ("session", &["session", "factor", "started_at", "server_program"]),
    ("imported", &["tool", "file", "first_line", "last_line"]),
    ("imported_figure", &["subject", "quantity", "value", "line"]),
    ("transaction_type", &["type", "transactions", "rolled_back"]),
    ("query", &["kind", "queries"]),
    ("retry", &["reason", "transactions"]),
    ("database_check", &["name", "holds", "found"]),
    ("event_log", &["hash", "cut"]),
    ("request", &["process", "op", "start_sector", "sectors", "queued_ns", "done_ns", "merged"]),
    ("request", &["dispatched_ns", "began_ns"]),
    ("head", &["at_ns", "drive", "cylinder"]),
];

/// What a run file has no use for.
const SCHEMA: &[&str] = &[
    "CREATE VIEW v AS SELECT * FROM trial",
    "CREATE TRIGGER t AFTER INSERT ON trial BEGIN DELETE FROM run; END",
    "CREATE TABLE more (a)",
    "ALTER TABLE run ADD COLUMN more TEXT",
    "DROP INDEX second_of_trial",
    "DROP TABLE counter",
    "PRAGMA user_version = 3",
    "PRAGMA user_version = 1",
    "INSERT INTO run SELECT * FROM run",
    "DELETE FROM run",
];

fn of<'a, T>(all: &'a [T], choose: &mut Choice) -> &'a T {
    &all[choose(all.len() as u64) as usize]
}

/// Changes a file, and says how. What SQLite does not let be done is not done.
pub fn change(path: &Path, choose: &mut Choice) -> String {
    if choose(8) == 0 {
        return flip_bits(path, choose);
    }
    let Ok(file) = Connection::open(path) else { return String::new() };
    let _ = file.execute_batch(
        "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA ignore_check_constraints = ON;",
    );
    let mut done = String::new();
    for _ in 0..=choose(3) {
        let what = match choose(16) {
            0..=7 => change_json(&file, choose),
            8..=12 => change_cell(&file, choose),
            13 => change_rows(&file, choose),
            14 => mark_or_drop(&file, choose),
            _ => {
                let sql = *of(SCHEMA, choose);
                let _ = file.execute_batch(sql);
                sql.to_owned()
            }
        };
        done = format!("{done}{what}; ");
    }
    done
}

fn flip_bits(path: &Path, choose: &mut Choice) -> String {
    let Ok(mut bytes) = std::fs::read(path) else { return String::new() };
    let mut places = Vec::new();
    for _ in 0..=choose(8) {
        let at = choose(bytes.len().max(1) as u64) as usize;
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << choose(8);
            places.push(at);
        }
    }
    if choose(10) == 0 {
        bytes.truncate(choose(bytes.len().max(1) as u64) as usize);
    }
    let _ = std::fs::write(path, bytes);
    format!("bits at {places:?}")
}

/// The row of a table that is changed: one, or all of them.
fn rows(file: &Connection, table: &str, choose: &mut Choice) -> String {
    if choose(4) == 0 {
        return "true".to_owned();
    }
    let count = file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0));
    let at = choose(count.unwrap_or(1_i64).max(1) as u64);
    format!("rowid = (SELECT rowid FROM {table} LIMIT 1 OFFSET {at})")
}

fn change_cell(file: &Connection, choose: &mut Choice) -> String {
    let (table, columns) = of(PLAIN, choose);
    let column = of(columns, choose);
    let value = plain(choose);
    let sql =
        format!("UPDATE OR REPLACE {table} SET {column} = ? WHERE {}", rows(file, table, choose));
    let _ = file.execute(&sql, [&value]);
    format!("{sql} {value:?}")
}

fn plain(choose: &mut Choice) -> Cell {
    let whole = [0, 1, -1, 2, 7, i64::MAX, i64::MIN, 1 << 31, 1 << 32, 1 << 49, 1 << 53, 1 << 60];
    let real =
        [0.0, -0.0, 0.5, -1.5, 1e-320, 1e18, 1e308, -1e308, f64::INFINITY, f64::NEG_INFINITY];
    match choose(4) {
        0 | 1 => Cell::Integer(*of(&whole, choose)),
        2 => Cell::Real(*of(&real, choose)),
        _ if choose(6) == 0 => Cell::Null,
        _ if choose(6) == 0 => Cell::Blob(vec![0xff, 0x00, 0x31]),
        _ => Cell::Text(word(choose)),
    }
}

fn word(choose: &mut Choice) -> String {
    let words = [
        "",
        " ",
        "0",
        "-1",
        "valid",
        "void",
        "failed",
        "read",
        "write",
        "none",
        "kernel",
        "scheduler",
        "a\nb: c",
        "\u{1b}[2J",
        "'; true '",
        "µ",
        "\u{202e}",
        "1e999",
        "null",
        "[]",
        "{}",
        "99999999999999999999",
        "server.x",
        "bfq.slice",
        "randread:70",
        "4k",
        "100/s",
        "tpcc,warehouses=0",
        "column x",
        "p99.9",
        "NaN",
    ];
    match choose(30) {
        0 => "x".repeat(5000),
        _ => (*of(&words, choose)).to_owned(),
    }
}

fn change_json(file: &Connection, choose: &mut Choice) -> String {
    let (table, column) = of(JSON, choose);
    let count = file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0));
    let at = choose(count.unwrap_or(1_i64).max(1) as u64);
    let row = format!("SELECT rowid, {column} FROM {table} LIMIT 1 OFFSET {at}");
    let read =
        file.query_row(&row, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)));
    let Ok((rowid, text)) = read else { return String::new() };
    let Ok(mut value) = serde_json::from_str::<Value>(&text) else { return String::new() };
    let mut done = String::new();
    for _ in 0..=choose(2) {
        done = format!("{done} {}", change_value(&mut value, choose));
    }
    let sql = format!("UPDATE {table} SET {column} = ? WHERE rowid = ?");
    let _ = file.execute(&sql, rusqlite::params![value.to_string(), rowid]);
    format!("{table}.{column} of row {rowid}:{done}")
}

/// Changes a part of a value, deep or shallow; says where.
fn change_value(value: &mut Value, choose: &mut Choice) -> String {
    let (length, stop) = match value {
        Value::Array(all) => (all.len(), choose(6) == 0),
        Value::Object(all) => (all.len(), choose(12) == 0),
        _ => (0, true),
    };
    if length == 0 || stop {
        return change_here(value, choose);
    }
    let at = choose(length as u64) as usize;
    match value {
        Value::Array(all) => format!("/{at}{}", change_value(&mut all[at], choose)),
        Value::Object(all) => {
            let Some((name, inner)) = all.iter_mut().nth(at) else { return String::new() };
            format!("/{name}{}", change_value(inner, choose))
        }
        _ => String::new(),
    }
}

fn change_here(value: &mut Value, choose: &mut Choice) -> String {
    match value {
        Value::Array(all) if choose(2) == 0 => match (all.len(), choose(3)) {
            (0, _) | (_, 0) => all.clear(),
            (length, 1) => drop(all.remove(choose(length as u64) as usize)),
            (length, _) => all.push(all[choose(length as u64) as usize].clone()),
        },
        Value::Object(all) if choose(2) == 0 => {
            let name = all.keys().nth(choose(all.len().max(1) as u64) as usize).cloned();
            let gone = name.and_then(|name| all.remove(&name));
            if let (Some(gone), 0) = (gone, choose(2)) {
                all.insert(word(choose), gone);
            }
        }
        _ => *value = any(choose),
    }
    format!("={value}").chars().take(60).collect()
}

fn any(choose: &mut Choice) -> Value {
    let numbers = [
        json!(0),
        json!(1),
        json!(-1),
        json!(3),
        json!(0.5),
        json!(-0.5),
        json!(1e-300),
        json!(1e308),
        json!(u64::MAX),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(4_294_967_295_u64),
        json!(1_u64 << 40),
        json!(1_u64 << 53),
        json!(1_u64 << 60),
        json!(1000),
        json!(1_000_000),
    ];
    match choose(8) {
        0..=4 => of(&numbers, choose).clone(),
        5 => Value::String(word(choose)),
        6 => of(&[Value::Null, json!(true), json!([]), json!({})], choose).clone(),
        _ => json!([[1, 2], [0, u64::MAX]]),
    }
}

fn change_rows(file: &Connection, choose: &mut Choice) -> String {
    let (table, columns) = of(PLAIN, choose);
    let sql = match choose(3) {
        0 => format!("DELETE FROM {table} WHERE {}", rows(file, table, choose)),
        1 => format!("DELETE FROM {table}"),
        _ => {
            let column = of(columns, choose);
            format!(
                "UPDATE OR REPLACE {table} SET {column} = {column} + 1 WHERE typeof({column}) = 'integer'"
            )
        }
    };
    let _ = file.execute_batch(&sql);
    sql
}

/// Trials of one cell, round or kind taken away: what an analysis finds missing.
fn mark_or_drop(file: &Connection, choose: &mut Choice) -> String {
    let at = choose(4);
    let sql = match choose(5) {
        0 => format!("DELETE FROM trial WHERE cell = {at}"),
        1 => format!("DELETE FROM trial WHERE round >= {at}"),
        2 => format!("UPDATE trial SET outcome = 'failed', reason = 'x' WHERE cell = {at}"),
        3 => format!(
            "UPDATE operation SET operations = 0, bytes = 0, service = '[]' WHERE trial % 4 = {at}"
        ),
        _ => format!("UPDATE trial SET span_ns = 0 WHERE trial % 4 = {at}"),
    };
    let _ = file.execute_batch(&sql);
    sql
}

/// Reads a file in every way that the program reads one; gives the run where it is one.
pub fn read_through(path: &Path, other: &Run, choose: &mut Choice) -> Option<Run> {
    let store = Store::open(path).ok()?;
    let _ = (store.started_at(), store.header());
    if choose(8) == 0 {
        let _ = Following::of(path, Waiting::default()).map(|mut it| it.read_on());
    }
    let run = store.read().ok()?;
    let analysis = Analysis::of(&run);
    texts(&run, &analysis);
    let logs: Vec<_> = (0..run.plan.cells.len().min(8))
        .filter_map(|cell| Some((cell, store.event_log((0, cell, 0)).ok()??)))
        .collect();
    for (_, log) in &logs {
        report::events_terminal(log, "cell", None, 80);
        let _ = report::events_svg(log, "cell", None);
    }
    let page = [PageRun { run: &run, analysis: &analysis, logs: &logs }];
    match choose(12) {
        0 => drop(report::html(&page)),
        1 => drop(report::ranking_png(&report::document(&run, &analysis))),
        _ => drop(report::packed(&page)),
    }
    let last = run.last_session();
    conclusions(&last, other, choose);
    Some(last)
}

fn texts(run: &Run, analysis: &Analysis) {
    for text in [
        report::terminal(run, analysis, 80),
        report::markdown(run, analysis),
        report::csv(run, analysis),
        serde_json::to_string(&report::json(run, analysis)).unwrap_or_default(),
    ] {
        let unfit = text.chars().find(|it| it.is_control() && *it != '\n');
        assert_eq!(unfit, None, "a control character in a report: {text:?}");
    }
    if let Some(sessions) = SessionAnalysis::of(run) {
        let _ = sessions.settled();
    }
}

fn conclusions(run: &Run, other: &Run, choose: &mut Choice) {
    let analysis = Analysis::of(run);
    let limits: Vec<Limit> =
        ["p99<20ms", "throughput>1000/s"].iter().filter_map(|it| it.parse().ok()).collect();
    let mut wishes = vec![Wish::default()];
    match choose(3) {
        0 => wishes.push(Wish { limits, ..Wish::default() }),
        1 => wishes.push(Wish { objective: Some(Metric::P99), ..Wish::default() }),
        _ => wishes.push(Wish {
            condition: Some(0),
            objective: Some(Metric::Fairness),
            ..Wish::default()
        }),
    }
    for wish in &wishes {
        let found = recommend(run, &analysis, wish);
        report::recommendation(run, &analysis, &found, 80);
        let _ = serde_json::to_string(&report::recommendation_json(run, &analysis, &found));
    }
    for finding in findings(run, &analysis) {
        let _ = check_plan(run, &finding);
    }
    let theirs = Analysis::of(other);
    let diff = RunDiff::of((other, &theirs), (run, &analysis));
    report::run_diff(&diff, (&other.name, &run.name), 80);
    let _ = serde_json::to_string(&report::run_diff_json(&diff, (&other.name, &run.name)));
    let hosts: Vec<HostRun> = [other, run].iter().filter_map(|it| HostRun::of(it).ok()).collect();
    if let Ok(fleet) = FleetAnalysis::of(&hosts) {
        report::fleet(&fleet, 80);
    }
}
