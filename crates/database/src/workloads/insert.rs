//! Rows with random keys into a table of three secondary indexes (Y. Matsunobu's test of 2009): once
//! the indexes are larger than what caches them, every insert writes random index blocks.

use super::{Client, Clients, DatabaseWorkload, Done, Part, Shape};
use crate::{Arg, Endpoint, QueryKind, Session, SqlError, StatementId};
use random::Stream;
use record::Queries;
use std::{sync::atomic::AtomicBool, time::Instant};
use workload::{DatabaseJob, Dialect, StorageEngine};

/// The table.
pub const TABLE: &str = "aa";

/// Rows of one part that is loaded.
const PART: u64 = 100_000;

/// Its column `c`.
const C: &str = "1111111111111111111111111111111111111111";

/// The workload.
pub struct MultiIndexInsert;

impl DatabaseWorkload for MultiIndexInsert {
    fn data(&self, job: &DatabaseJob) -> String {
        format!("insert, {} rows of 0..{}", job.prefill, job.span)
    }

    fn tables(&self, _: &DatabaseJob) -> Vec<String> {
        vec![TABLE.to_owned()]
    }

    fn create(&self, session: &mut dyn Session, shape: &Shape, _: u64) -> Result<(), SqlError> {
        create(session, shape.engine)
    }

    fn parts(&self, job: &DatabaseJob, seed: u64) -> Vec<Part> {
        parts(job.prefill, job.span, seed)
    }

    fn finish(&self, _: &mut dyn Session, _: &DatabaseJob) -> Result<(), SqlError> {
        Ok(())
    }

    fn clients(
        &'static self,
        job: &DatabaseJob,
        endpoint: &Endpoint,
        clients: u32,
        seed: u64,
    ) -> Result<Clients, SqlError> {
        connect(job, endpoint, clients, seed)
    }
}

/// Makes the empty table, with its indexes: rows that come later do not find them packed.
fn create(session: &mut dyn Session, engine: StorageEngine) -> Result<(), SqlError> {
    match session.dialect() {
        Dialect::MySql => session.script(&format!(
            "CREATE TABLE {TABLE} (id INT AUTO_INCREMENT PRIMARY KEY, b1 INT, b2 INT, b3 INT, \
             c VARCHAR(100), INDEX(b1), INDEX(b2), INDEX(b3)) ENGINE = {engine}"
        )),
        Dialect::PostgreSql => session.script(&format!(
            "CREATE TABLE {TABLE} (id SERIAL PRIMARY KEY, b1 INT, b2 INT, b3 INT, c VARCHAR(100)); \
             CREATE INDEX ON {TABLE}(b1); CREATE INDEX ON {TABLE}(b2); CREATE INDEX ON {TABLE}(b3)"
        )),
    }
}

/// What is in the table before: rows in small groups, so that no bulk load packs the indexes.
fn parts(prefill: u64, span: u64, seed: u64) -> Vec<Part> {
    let starts = (0..prefill).step_by(PART as usize);
    starts
        .map(|first| {
            let rows = (prefill - first).min(PART);
            Part {
                rows,
                lane: 0,
                load: Box::new(move |session: &mut dyn Session, done| {
                    let mut stream = Stream::new(seed, &format!("prefill from {first}"));
                    let mut left = rows;
                    while left > 0 {
                        let group = left.min(500);
                        let mut values = String::new();
                        for row in 0..group {
                            let mut key = || stream.below(span);
                            let comma = if row == 0 { "" } else { "," };
                            values += &format!("{comma}({},{},{},'{C}')", key(), key(), key());
                        }
                        let insert = format!("INSERT INTO {TABLE} (b1, b2, b3, c) VALUES {values}");
                        session.script(&insert)?;
                        left -= group;
                        if !done(group) {
                            break;
                        }
                    }
                    Ok(())
                }),
            }
        })
        .collect()
}

fn connect(
    job: &DatabaseJob,
    endpoint: &Endpoint,
    clients: u32,
    seed: u64,
) -> Result<Clients, SqlError> {
    let measured = (0..clients)
        .map(|client| {
            let mut session = endpoint.connect()?;
            let insert = session.prepare(
                &format!("INSERT INTO {TABLE} (b1, b2, b3, c) VALUES (?, ?, ?, ?)"),
                QueryKind::Write,
            )?;
            let stream = Stream::new(seed, &format!("insert client {client}"));
            let span = job.span;
            Ok(Box::new(InsertClient { session, insert, stream, span, keys: [0; 3] })
                as Box<dyn Client>)
        })
        .collect::<Result<_, SqlError>>()?;
    Ok(Clients { measured, helpers: Vec::new(), types: &["insert"], audit: None })
}

struct InsertClient {
    session: Box<dyn Session>,
    insert: StatementId,
    stream: Stream,
    span: u64,
    keys: [i64; 3],
}

impl Client for InsertClient {
    fn draw(&mut self, _: Instant, _: &AtomicBool) -> bool {
        self.keys = [(); 3].map(|()| self.stream.below(self.span) as i64);
        true
    }

    fn run(&mut self) -> Result<Done, SqlError> {
        let [b1, b2, b3] = self.keys.map(Arg::Int);
        self.session.run(self.insert, &[b1, b2, b3, Arg::Text(C)])?;
        Ok(Done { kind: Some(0), ..Done::default() })
    }

    fn roll_back(&mut self) -> Result<(), SqlError> {
        Ok(())
    }

    fn take_queries(&mut self) -> Queries {
        self.session.take_queries()
    }
}
