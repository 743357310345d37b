//! Deadlocks: transactions are begun anew and counted, and a trial in which none comes through is void.

use crate::server::Private;
use database::{DatabaseError, Session};
use record::Measurement;
use std::time::{Duration, Instant};
use units::Nanos;

const CLIENTS: u64 = 8;

/// Four updates in no order, of few rows, by many: each adds one to `k`, and nothing else changes `k`.
const JOB: &str = "oltp_write_only,tables=1,rows=8,clients=8,\
                   index_updates=4,non_index_updates=0,delete_inserts=0";

fn number(session: &mut dyn Session, sql: &str) -> u64 {
    let rows = session.ask(sql).unwrap();
    let last = rows[0].last().unwrap().as_deref();
    last.unwrap().parse().unwrap()
}

/// Runs the job; `theirs` asks the server how many deadlocks it saw. Gives what was measured.
fn deadlocks_on(name: &str, theirs: &str) -> Option<(Private, Measurement)> {
    let server = Private::start("deadlocks", name)?;
    server.load(JOB);
    let mut session = server.session();
    if name == "postgresql" {
        // It looks for deadlocks once a second: then hardly anything comes through in a few.
        session.script("ALTER SYSTEM SET deadlock_timeout = '100ms'").unwrap();
        session.script("SELECT pg_reload_conf()").unwrap();
    }
    let sum = "SELECT SUM(k) FROM sbtest1";
    let (sum_before, theirs_before) =
        (number(session.as_mut(), sum), number(session.as_mut(), theirs));
    let measured = server.run(JOB, Nanos::from_secs(3)).unwrap();
    let transactions = measured.transactions.as_ref().unwrap();
    let came = transactions.completed();
    assert!(came > 0, "{transactions:?}");
    // What was cut off by the end may have been committed and not counted, once a client.
    let added = number(session.as_mut(), sum) - sum_before;
    assert!((4 * came..=4 * (came + CLIENTS)).contains(&added), "{came} came through, {added}");
    assert_eq!(added % 4, 0, "all of a transaction or nothing");
    let ours: u64 = transactions
        .retries
        .iter()
        .filter(|(why, _)| why.contains("eadlock"))
        .map(|(_, count)| count)
        .sum();
    assert!(ours > 0, "{:?}", transactions.retries);
    // A server's statistics may come a moment later.
    let begun = Instant::now();
    loop {
        let theirs = number(session.as_mut(), theirs) - theirs_before;
        if (ours..=ours + CLIENTS).contains(&theirs) {
            return Some((server, measured));
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "we counted {ours}, the server {theirs}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Why a trial does not count.
fn void(ended: Result<Measurement, DatabaseError>) -> String {
    match ended {
        Err(DatabaseError::Void(why)) => why,
        other => panic!("it is not void: {other:?}"),
    }
}

#[test]
fn deadlocks_are_begun_anew_on_mariadb_unless_none_comes_through() {
    innodb_deadlocks_on("mariadb", "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'");
}

#[test]
fn deadlocks_are_begun_anew_on_mysql_unless_none_comes_through() {
    innodb_deadlocks_on(
        "mysql",
        "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'",
    );
}

fn innodb_deadlocks_on(name: &str, theirs: &str) {
    let Some((server, _)) = deadlocks_on(name, theirs) else { return };
    let mut session = server.session();
    // Somebody holds all rows, and whoever waits is told so after a second.
    session.script("SET GLOBAL innodb_lock_wait_timeout = 1").unwrap();
    session.script("BEGIN").unwrap();
    session.script("UPDATE sbtest1 SET c = 'mine'").unwrap();
    let why = void(server.run(JOB, Nanos::from_millis(1500)));
    for word in ["not one transaction came through", "Lock wait timeout exceeded", "(1205)"] {
        assert!(why.contains(word), "no '{word}' in: {why}");
    }
    session.script("ROLLBACK").unwrap();
    session
        .script(
            "CREATE TRIGGER always BEFORE UPDATE ON sbtest1 FOR EACH ROW
             SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock found: again'",
        )
        .unwrap();
    let why = void(server.run(JOB, Nanos::from_secs(60)));
    assert!(why.contains("1000 times in a row"), "{why}");
    assert!(why.contains("Deadlock found: again (1213)"), "{why}");
}

#[test]
fn deadlocks_are_begun_anew_on_postgresql_unless_none_comes_through() {
    let theirs = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let Some((server, measured)) = deadlocks_on("postgresql", theirs) else { return };
    // Its deadlock_timeout is within the latency of whoever was begun anew.
    let longest = measured.latency().max().unwrap();
    assert!(longest >= Nanos::from_millis(100), "{longest}");
    let mut session = server.session();
    session
        .script(
            "CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE 'deadlock detected: again' USING ERRCODE = '40P01'; END $$;
             CREATE TRIGGER always BEFORE UPDATE ON sbtest1 FOR EACH ROW EXECUTE FUNCTION again()",
        )
        .unwrap();
    let why = void(server.run(JOB, Nanos::from_secs(60)));
    assert!(why.contains("1000 times in a row"), "{why}");
    assert!(why.contains("deadlock detected: again (40P01)"), "{why}");
}
