//! sysbench beside ours: tables that either uses, and the same statements in the same order.

use crate::server::Private;
use skipped::{Need, skip};
use std::{path::Path, process::Command};
use units::Nanos;

/// Runs sysbench on a private server; false where it is not here.
fn sysbench(place: &database::Place, words: &[&str]) -> bool {
    let socket = format!("--mysql-socket={}", place.run.join("socket").display());
    let output = Command::new("sysbench")
        .args([socket.as_str(), "--mysql-user=root", "--mysql-db=sbtest"])
        .args(words)
        .output();
    match output {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "sysbench {words:?}: {said}");
            true
        }
        Err(error) => {
            skip(Need::Program, &format!("sysbench: {error}"));
            false
        }
    }
}

/// Numbers and texts of a statement differ each time; the statement does not.
fn plain(statement: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    let mut word = String::new();
    let flush = |word: &mut String, out: &mut String| {
        let number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let table = word.strip_prefix("sbtest").is_some_and(|n| n.parse::<u32>().is_ok());
        out.push_str(if number {
            "N"
        } else if table {
            "TABLE"
        } else {
            word
        });
        word.clear();
    };
    for c in statement.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                if !quoted {
                    out.push_str("'S'");
                }
            }
            _ if quoted => {}
            c if c.is_ascii_alphanumeric() || c == '_' => word.push(c),
            c => {
                flush(&mut word, &mut out);
                out.push(c);
            }
        }
    }
    flush(&mut word, &mut out);
    out
}

/// The statements in the server's general log that were not the connecting's or the preparing's.
fn logged(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines()
        .filter_map(|line| {
            let statement = ["Execute\t", "Query\t"]
                .iter()
                .find_map(|word| line.split_once(word).map(|(_, statement)| statement))?;
            Some(plain(statement))
        })
        .filter(|statement| !statement.contains("general_log") && !statement.contains("@@"))
        .collect()
}

#[test]
fn ours_and_sysbenchs_statements_and_tables_are_the_same_on_mariadb() {
    same_as_sysbench("mariadb");
}

#[test]
fn ours_and_sysbenchs_statements_and_tables_are_the_same_on_mysql() {
    same_as_sysbench("mysql");
}

fn same_as_sysbench(server: &str) {
    let Some(server) = Private::start("statements", server) else { return };
    let mut session = server.session();
    let place = &server.place;
    // Tables of ours, used by sysbench; then the other way round.
    server.load("oltp_read_write,tables=2,rows=500");
    let made = |session: &mut Box<dyn database::Session>| {
        let rows = session.ask("SHOW CREATE TABLE sbtest2").unwrap();
        let text = rows[0][1].clone().unwrap();
        let (before, after) = text.split_once(" AUTO_INCREMENT=").unwrap();
        format!("{before} {}", after.split_once(' ').unwrap().1)
    };
    let ours = made(&mut session);
    let run = ["--tables=2", "--table-size=500", "--events=20", "--time=0", "run"];
    let words = |first: &'static str| [&[first][..], &run[..]].concat();
    if !sysbench(place, &words("oltp_read_write")) {
        return;
    }
    session.script("DROP TABLE sbtest1").unwrap();
    session.script("DROP TABLE sbtest2").unwrap();
    sysbench(place, &["oltp_read_write", "--tables=2", "--table-size=500", "prepare"]);
    assert_eq!(made(&mut session), ours);
    let measured =
        server.run("oltp_read_write,tables=2,rows=500", Nanos::from_millis(500)).unwrap();
    assert!(measured.operations() > 0);
    let queries = measured.transactions.unwrap().queries;
    // One may have been cut off by the end.
    assert!(
        queries.all() >= measured.seconds.iter().map(|s| s.transactions).sum::<u64>() * 20 - 80
    );

    let log = place.run.join("general");
    session.script(&format!("SET GLOBAL general_log_file = '{}'", log.display())).unwrap();
    for kind in
        ["oltp_read_only", "oltp_write_only", "oltp_read_write", "oltp_point_select", "oltp_insert"]
    {
        let mut log_of = |run: &mut dyn FnMut()| {
            session.script("SET GLOBAL general_log = ON").unwrap();
            run();
            session.script("SET GLOBAL general_log = OFF").unwrap();
            let statements = logged(&log);
            std::fs::write(&log, "").unwrap();
            session.script("FLUSH GENERAL LOGS").unwrap();
            statements
        };
        let theirs = log_of(&mut || {
            let once = ["--tables=2", "--table-size=500", "--events=1", "--time=0", "run"];
            sysbench(place, &[&[kind][..], &once[..]].concat());
        });
        let ours = log_of(&mut || {
            let job = format!("{kind},tables=2,rows=500,clients=1");
            server.run(&job, Nanos::from_millis(200)).unwrap();
        });
        let expected = match kind {
            "oltp_read_only" => 16,
            "oltp_write_only" => 6,
            "oltp_read_write" => 20,
            _ => 1,
        };
        assert_eq!(theirs.len(), expected, "{kind}: {theirs:#?}");
        assert_eq!(ours[..expected], theirs, "{kind}");
    }
}

#[test]
fn a_plain_statement_has_neither_numbers_nor_texts() {
    assert_eq!(
        plain("UPDATE sbtest2 SET c='1-2' WHERE id=17"),
        "UPDATE TABLE SET c='S' WHERE id=N"
    );
}
