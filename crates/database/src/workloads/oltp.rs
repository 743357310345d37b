//! sysbench's OLTP: the same tables, the same statements in the same order.
//!
//! From its manual and from the general log of sysbench 1.0.20: statements are prepared, BEGIN and
//! COMMIT too; a table is drawn for each group of statements; only oltp_insert sends text.

use super::{
    Client, Clients, DatabaseWorkload, Done, Part, Shape, distribution::Keys, text::digit_groups,
};
use crate::{Arg, Endpoint, QueryKind, Session, SqlError, StatementId};
use random::Stream;
use record::Queries;
use std::{sync::atomic::AtomicBool, time::Instant};
use workload::{DatabaseJob, DatabaseKind, Dialect, StorageEngine};

/// Rows of one part of a table that is loaded.
const PART: u64 = 50_000;

/// sysbench's oltp workloads: one set of tables, transactions that differ.
pub struct Oltp {
    /// The one type of transaction, by name.
    pub types: [&'static str; 1],
}

impl DatabaseWorkload for Oltp {
    fn data(&self, job: &DatabaseJob) -> String {
        format!("oltp, {} tables of {} rows", job.tables, job.rows)
    }

    fn tables(&self, job: &DatabaseJob) -> Vec<String> {
        (1..=job.tables).map(|n| format!("sbtest{n}")).collect()
    }

    fn create(&self, session: &mut dyn Session, shape: &Shape, _: u64) -> Result<(), SqlError> {
        create(session, shape.job.tables, shape.engine)
    }

    fn parts(&self, job: &DatabaseJob, seed: u64) -> Vec<Part> {
        parts(job.tables, job.rows, seed)
    }

    fn finish(&self, session: &mut dyn Session, job: &DatabaseJob) -> Result<(), SqlError> {
        finish(session, job.tables)
    }

    fn clients(
        &'static self,
        job: &DatabaseJob,
        endpoint: &Endpoint,
        clients: u32,
        seed: u64,
    ) -> Result<Clients, SqlError> {
        connect(job, endpoint, clients, seed, &self.types)
    }
}

/// Makes the empty tables.
fn create(session: &mut dyn Session, tables: u32, engine: StorageEngine) -> Result<(), SqlError> {
    for table in 1..=tables {
        let (id, suffix) = match session.dialect() {
            Dialect::MySql => ("INTEGER NOT NULL AUTO_INCREMENT", format!(" ENGINE = {engine}")),
            Dialect::PostgreSql => ("SERIAL", String::new()),
        };
        session.script(&format!(
            "CREATE TABLE sbtest{table}(id {id}, k INTEGER DEFAULT '0' NOT NULL, \
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, \
             PRIMARY KEY (id)){suffix}"
        ))?;
    }
    Ok(())
}

/// What can be loaded side by side.
fn parts(tables: u32, rows: u64, seed: u64) -> Vec<Part> {
    let mut parts = Vec::new();
    for table in 1..=tables {
        for first in (0..rows).step_by(PART as usize) {
            let last = (first + PART).min(rows);
            parts.push(Part {
                rows: last - first,
                // A table's parts are loaded one after the other: its end is one place.
                lane: table as usize,
                load: Box::new(move |session: &mut dyn Session, done| {
                    let mut stream = Stream::new(seed, &format!("sbtest{table} from {first}"));
                    let mut text = String::new();
                    let mut id = first;
                    session.fill(&format!("sbtest{table}"), "id, k, c, pad", &mut |row| {
                        if id == last || !done(1) {
                            return false;
                        }
                        id += 1;
                        row.begin();
                        row.int(id as i64);
                        row.int(1 + stream.below(rows) as i64);
                        digit_groups(&mut stream, 10, &mut text);
                        row.text(&text);
                        digit_groups(&mut stream, 5, &mut text);
                        row.text(&text);
                        row.end();
                        true
                    })
                }),
            });
        }
    }
    parts
}

/// The secondary indexes, made after the load as sysbench does.
fn finish(session: &mut dyn Session, tables: u32) -> Result<(), SqlError> {
    for table in 1..=tables {
        session.script(&format!("CREATE INDEX k_{table} ON sbtest{table}(k)"))?;
        if session.dialect() == Dialect::PostgreSql {
            // Rows came with their numbers; the next one must follow them.
            session.script(&format!(
                "SELECT setval('sbtest{table}_id_seq', (SELECT COALESCE(MAX(id), 1) FROM sbtest{table}))"
            ))?;
        }
    }
    analyze(session, tables)
}

/// Statistics: without them PostgreSQL begins with none, and its autovacuum makes them in a trial.
fn analyze(session: &mut dyn Session, tables: u32) -> Result<(), SqlError> {
    if session.dialect() == Dialect::PostgreSql {
        for table in 1..=tables {
            session.script(&format!("VACUUM ANALYZE sbtest{table}"))?;
        }
    }
    Ok(())
}

fn connect(
    job: &DatabaseJob,
    endpoint: &Endpoint,
    clients: u32,
    seed: u64,
    types: &'static [&'static str],
) -> Result<Clients, SqlError> {
    let keys = Keys::new(job.distribution, job.rows);
    let measured = (0..clients)
        .map(|client| {
            let session = endpoint.connect()?;
            let stream = Stream::new(seed, &format!("oltp client {client}"));
            let client = OltpClient::new(job, session, keys.clone(), stream)?;
            Ok(Box::new(client) as Box<dyn Client>)
        })
        .collect::<Result<_, SqlError>>()?;
    Ok(Clients { measured, helpers: Vec::new(), types, audit: None })
}

/// A table's statements.
#[derive(Clone, Copy)]
struct Prepared {
    point: StatementId,
    /// Simple, sum, order, distinct.
    ranges: Option<[StatementId; 4]>,
    /// Index update, other update, delete, insert.
    writes: Option<[StatementId; 4]>,
}

struct OltpClient {
    job: DatabaseJob,
    session: Box<dyn Session>,
    keys: Keys,
    stream: Stream,
    /// The stream as it was before the transaction's draws.
    before: Stream,
    begin: Option<StatementId>,
    commit: Option<StatementId>,
    tables: Vec<Prepared>,
    c: String,
    pad: String,
}

impl OltpClient {
    fn new(
        job: &DatabaseJob,
        mut session: Box<dyn Session>,
        keys: Keys,
        stream: Stream,
    ) -> Result<OltpClient, SqlError> {
        use DatabaseKind::{
            OltpInsert, OltpPointSelect, OltpReadOnly, OltpReadWrite, OltpWriteOnly,
        };
        let reads = matches!(job.kind, OltpReadOnly | OltpReadWrite);
        let writes = matches!(job.kind, OltpWriteOnly | OltpReadWrite);
        let (mut begin, mut commit) = (None, None);
        if !job.statements.skip_trx && (reads || writes) {
            begin = Some(session.prepare("BEGIN", QueryKind::Other)?);
            commit = Some(session.prepare("COMMIT", QueryKind::Other)?);
        }
        let mut tables = Vec::new();
        let prepared = if job.kind == OltpInsert { 0 } else { job.tables };
        for table in 1..=prepared {
            tables.push(prepare(
                session.as_mut(),
                table,
                reads || job.kind == OltpPointSelect,
                reads,
                writes,
            )?);
        }
        Ok(OltpClient {
            job: job.clone(),
            session,
            keys,
            before: stream.clone(),
            stream,
            begin,
            commit,
            tables,
            c: String::new(),
            pad: String::new(),
        })
    }

    fn key(&mut self) -> i64 {
        self.keys.draw(&mut self.stream) as i64
    }

    fn table(&mut self) -> Prepared {
        let count = self.tables.len() as u64;
        self.tables[self.stream.below(count) as usize]
    }

    fn point_selects(&mut self, count: u32) -> Result<(), SqlError> {
        let table = self.table();
        for _ in 0..count {
            let id = self.key();
            self.session.run(table.point, &[Arg::Int(id)])?;
        }
        Ok(())
    }

    fn reads(&mut self) -> Result<(), SqlError> {
        let wanted = self.job.statements;
        if wanted.point_selects > 0 {
            self.point_selects(wanted.point_selects)?;
        }
        let counts =
            [wanted.simple_ranges, wanted.sum_ranges, wanted.order_ranges, wanted.distinct_ranges];
        for (which, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let Some(statements) = self.table().ranges else { continue };
            for _ in 0..count {
                let id = self.key();
                let last = id + i64::from(wanted.range_size) - 1;
                self.session.run(statements[which], &[Arg::Int(id), Arg::Int(last)])?;
            }
        }
        Ok(())
    }

    fn writes(&mut self) -> Result<(), SqlError> {
        let wanted = self.job.statements;
        for (count, step) in [
            (wanted.index_updates, Step::IndexUpdate),
            (wanted.non_index_updates, Step::Update),
            (wanted.delete_inserts, Step::DeleteInsert),
        ] {
            if count == 0 {
                continue;
            }
            let Some([index, update, delete, insert]) = self.table().writes else { continue };
            for _ in 0..count {
                let id = self.key();
                match step {
                    Step::IndexUpdate => self.session.run(index, &[Arg::Int(id)])?,
                    Step::Update => {
                        digit_groups(&mut self.stream, 10, &mut self.c);
                        self.session.run(update, &[Arg::Text(&self.c), Arg::Int(id)])?
                    }
                    Step::DeleteInsert => {
                        let k = self.key();
                        digit_groups(&mut self.stream, 10, &mut self.c);
                        digit_groups(&mut self.stream, 5, &mut self.pad);
                        self.session.run(delete, &[Arg::Int(id)])?;
                        let (c, pad) = (Arg::Text(&self.c), Arg::Text(&self.pad));
                        self.session.run(insert, &[Arg::Int(id), Arg::Int(k), c, pad])?
                    }
                };
            }
        }
        Ok(())
    }

    /// A row at the table's end, as text.
    fn insert(&mut self) -> Result<(), SqlError> {
        let table = 1 + self.stream.below(u64::from(self.job.tables));
        let k = self.key();
        digit_groups(&mut self.stream, 10, &mut self.c);
        digit_groups(&mut self.stream, 5, &mut self.pad);
        let (c, pad) = (&self.c, &self.pad);
        let insert = match self.session.dialect() {
            Dialect::MySql => {
                format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (0, {k}, '{c}', '{pad}')")
            }
            Dialect::PostgreSql => {
                format!("INSERT INTO sbtest{table} (k, c, pad) VALUES ({k}, '{c}', '{pad}')")
            }
        };
        self.session.text(&insert, QueryKind::Write)
    }
}

#[derive(Clone, Copy)]
enum Step {
    IndexUpdate,
    Update,
    DeleteInsert,
}

fn prepare(
    session: &mut dyn Session,
    table: u32,
    points: bool,
    reads: bool,
    writes: bool,
) -> Result<Prepared, SqlError> {
    let range = "WHERE id BETWEEN ? AND ?";
    let mut read = |sql: String| session.prepare(&sql, QueryKind::Read);
    let mut point = StatementId(usize::MAX);
    if points {
        point = read(format!("SELECT c FROM sbtest{table} WHERE id=?"))?;
    }
    let mut ranges = None;
    if reads {
        ranges = Some([
            read(format!("SELECT c FROM sbtest{table} {range}"))?,
            read(format!("SELECT SUM(k) FROM sbtest{table} {range}"))?,
            read(format!("SELECT c FROM sbtest{table} {range} ORDER BY c"))?,
            read(format!("SELECT DISTINCT c FROM sbtest{table} {range} ORDER BY c"))?,
        ]);
    }
    let mut write = |sql: String| session.prepare(&sql, QueryKind::Write);
    let mut all_writes = None;
    if writes {
        all_writes = Some([
            write(format!("UPDATE sbtest{table} SET k=k+1 WHERE id=?"))?,
            write(format!("UPDATE sbtest{table} SET c=? WHERE id=?"))?,
            write(format!("DELETE FROM sbtest{table} WHERE id=?"))?,
            write(format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)"))?,
        ]);
    }
    Ok(Prepared { point, ranges, writes: all_writes })
}

impl Client for OltpClient {
    fn draw(&mut self, _: Instant, _: &AtomicBool) -> bool {
        self.before = self.stream.clone();
        true
    }

    fn run(&mut self) -> Result<Done, SqlError> {
        self.stream = self.before.clone();
        let done = Done { kind: Some(0), ..Done::default() };
        match self.job.kind {
            DatabaseKind::OltpPointSelect => return self.point_selects(1).map(|()| done),
            DatabaseKind::OltpInsert => return self.insert().map(|()| done),
            _ => {}
        }
        if let Some(begin) = self.begin {
            self.session.run(begin, &[])?;
        }
        if self.job.kind != DatabaseKind::OltpWriteOnly {
            self.reads()?;
        }
        if self.job.kind != DatabaseKind::OltpReadOnly {
            self.writes()?;
        }
        if let Some(commit) = self.commit {
            self.session.run(commit, &[])?;
        }
        Ok(done)
    }

    /// Two that delete and insert the same row: under READ COMMITTED the second finds nothing to
    /// delete and a row where it inserts. sysbench retries that, too.
    fn expects_duplicates(&self) -> bool {
        self.job.kind != DatabaseKind::OltpInsert
    }

    fn roll_back(&mut self) -> Result<(), SqlError> {
        self.session.roll_back()
    }

    fn take_queries(&mut self) -> Queries {
        self.session.take_queries()
    }
}
