//! Database workloads: what the clients of a database server do.
//!
//! The same words stand for a real server's work and for a model of it.

use crate::{Distribution, Rate, Server, StorageEngine, WordError, word_serde};
use std::{fmt, str::FromStr};
use units::Bytes;

/// The kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::VariantArray)]
pub enum DatabaseKind {
    /// sysbench's reads in a transaction.
    OltpReadOnly,
    /// sysbench's writes in a transaction.
    OltpWriteOnly,
    /// Both in one transaction.
    OltpReadWrite,
    /// One select by primary key, no transaction around it.
    OltpPointSelect,
    /// One insert at the table's end, no transaction around it.
    OltpInsert,
    /// TPC-C's five transactions.
    Tpcc,
    /// Rows with random keys into a table of three secondary indexes.
    Insert,
}

/// Kinds of work on the same tables and with the same keys: one file and one page each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DatabaseFamily {
    /// sysbench's.
    Oltp,
    /// TPC-C's.
    Tpcc,
    /// Rows with random keys.
    Insert,
}

impl DatabaseFamily {
    /// The name of its page in docs/reference/workloads.
    pub const fn name(self) -> &'static str {
        match self {
            DatabaseFamily::Oltp => "oltp",
            DatabaseFamily::Tpcc => "tpcc",
            DatabaseFamily::Insert => "insert",
        }
    }
}

impl DatabaseKind {
    /// All, in the order in which to list them.
    pub const ALL: &'static [DatabaseKind] = <DatabaseKind as strum::VariantArray>::VARIANTS;

    /// Whose tables, keys and documentation it shares.
    pub const fn family(self) -> DatabaseFamily {
        match self {
            DatabaseKind::OltpReadOnly
            | DatabaseKind::OltpWriteOnly
            | DatabaseKind::OltpReadWrite
            | DatabaseKind::OltpPointSelect
            | DatabaseKind::OltpInsert => DatabaseFamily::Oltp,
            DatabaseKind::Tpcc => DatabaseFamily::Tpcc,
            DatabaseKind::Insert => DatabaseFamily::Insert,
        }
    }

    /// Whether it runs on sysbench's tables.
    pub fn is_oltp(self) -> bool {
        self.family() == DatabaseFamily::Oltp
    }
}

impl fmt::Display for DatabaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DatabaseKind::OltpReadOnly => "oltp_read_only",
            DatabaseKind::OltpWriteOnly => "oltp_write_only",
            DatabaseKind::OltpReadWrite => "oltp_read_write",
            DatabaseKind::OltpPointSelect => "oltp_point_select",
            DatabaseKind::OltpInsert => "oltp_insert",
            DatabaseKind::Tpcc => "tpcc",
            DatabaseKind::Insert => "insert",
        })
    }
}

impl FromStr for DatabaseKind {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        DatabaseKind::ALL.iter().copied().find(|kind| kind.to_string() == text).ok_or_else(|| {
            let all: Vec<String> = DatabaseKind::ALL.iter().map(ToString::to_string).collect();
            WordError::new(format!(
                "workload '{text}' is not known: there are {}, with keys such as \
                 oltp_read_write,tables=10,rows=100000",
                all.join(", ")
            ))
        })
    }
}

word_serde!(DatabaseKind);

/// What the clients of a database do, and on what data.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseJob {
    /// The kind of work.
    pub kind: DatabaseKind,
    /// On which server.
    pub server: Server,
    /// How many clients; without it, as many as a block job's.
    pub clients: Option<u32>,
    /// Transactions a second of all clients together, offered whether or not the server keeps up;
    /// without it each client begins the next when one ends.
    pub rate: Option<Rate>,
    /// The tables' storage engine; without it, the server's default.
    pub engine: Option<StorageEngine>,
    /// The server's own cache of pages: `innodb_buffer_pool_size`, `shared_buffers`.
    pub buffer_pool: Option<Bytes>,
    /// Whether a trial begins with the data in the page cache, as far as that has room; else with none.
    pub warm: bool,
    /// oltp: tables.
    pub tables: u32,
    /// oltp: rows a table.
    pub rows: u64,
    /// oltp: how rows are chosen.
    pub distribution: Distribution,
    /// oltp: statements of each kind in a transaction.
    pub statements: Statements,
    /// tpcc: the size of the data.
    pub warehouses: u32,
    /// tpcc: whether terminals take the specification's keying and think times.
    pub think: bool,
    /// tpcc: whether all consistency conditions are checked after a trial, not only the first four.
    pub all_checks: bool,
    /// insert: rows that are in the table before.
    pub prefill: u64,
    /// insert: random keys are in `0..span`.
    pub span: u64,
}

/// Statements of an oltp transaction; names and defaults are sysbench's options'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as sysbench's options, which explain them")]
pub struct Statements {
    pub point_selects: u32,
    pub simple_ranges: u32,
    pub sum_ranges: u32,
    pub order_ranges: u32,
    pub distinct_ranges: u32,
    pub range_size: u32,
    pub index_updates: u32,
    pub non_index_updates: u32,
    pub delete_inserts: u32,
    /// Without BEGIN and COMMIT.
    pub skip_trx: bool,
}

impl Default for Statements {
    fn default() -> Self {
        Statements {
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            range_size: 100,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            skip_trx: false,
        }
    }
}

/// Tables when nothing is said.
const DEFAULT_TABLES: u32 = 10;
/// Rows a table when nothing is said: with ten tables, about 250 MB.
const DEFAULT_ROWS: u64 = 100_000;
/// Warehouses when nothing is said: about 400 MB.
const DEFAULT_WAREHOUSES: u32 = 4;
/// The span of random keys when nothing is said.
const DEFAULT_SPAN: u64 = 1 << 31;
/// The file of a job beside a database is at least this large.
const MIN_BESIDE: Bytes = Bytes::from_mib(64);
/// It is at most this large: laying it out is to take seconds.
const MAX_BESIDE: Bytes = Bytes::from_mib(1024);

impl DatabaseJob {
    /// Of a kind, with what is default.
    pub fn of(kind: DatabaseKind) -> DatabaseJob {
        DatabaseJob {
            kind,
            server: Server::default(),
            clients: None,
            rate: None,
            engine: None,
            buffer_pool: None,
            warm: false,
            tables: DEFAULT_TABLES,
            rows: DEFAULT_ROWS,
            distribution: Distribution::default(),
            statements: Statements::default(),
            warehouses: DEFAULT_WAREHOUSES,
            think: false,
            all_checks: false,
            prefill: 0,
            span: DEFAULT_SPAN,
        }
    }

    /// About how much disk the loaded data takes, indexes included: bytes a row as InnoDB stores
    /// them.
    pub fn data_size(&self) -> Bytes {
        match self.kind.family() {
            DatabaseFamily::Tpcc => Bytes::from_mib(110) * u64::from(self.warehouses),
            DatabaseFamily::Insert => Bytes(self.prefill.saturating_mul(180)),
            DatabaseFamily::Oltp => {
                Bytes(u64::from(self.tables).saturating_mul(self.rows).saturating_mul(250))
            }
        }
    }

    /// About how much disk a trial may take in all: the data, what grows and the server's logs.
    pub fn room(&self) -> Bytes {
        let data = self.data_size();
        Bytes(data.0 / 10 * 13) + self.server.logs()
    }

    /// How large the file is that a job beside the database reads or writes: as large as the data, within
    /// [`MIN_BESIDE`] and [`MAX_BESIDE`].
    pub fn beside_size(&self) -> Bytes {
        self.data_size().clamp(MIN_BESIDE, MAX_BESIDE)
    }

    /// Why this can be run nowhere, or nothing.
    pub fn check(&self) -> Result<(), WordError> {
        let wrong = |message: String| Err(WordError::new(message));
        if let Some(clients) = self.clients
            && !(1..=4096).contains(&clients)
        {
            return wrong(format!("{clients} clients: between 1 and 4096 can be run"));
        }
        if !(1..=10_000).contains(&self.tables) {
            return wrong(format!("{} tables: between 1 and 10000 can be made", self.tables));
        }
        if !(1..=2_000_000_000).contains(&self.rows) {
            return wrong(format!("{} rows: between 1 and 2000000000 can be made", self.rows));
        }
        if !(1..=100_000).contains(&self.warehouses) {
            return wrong(format!(
                "{} warehouses: between 1 and 100000 can be made",
                self.warehouses
            ));
        }
        if !(1..=1 << 31).contains(&self.span) {
            return wrong(format!(
                "span={}: keys are in 0..span, of at most 2147483648",
                self.span
            ));
        }
        if let Some(engine) = self.engine {
            let engines = self.server.engines();
            if engines.is_empty() {
                return wrong(format!(
                    "engine={engine} is MariaDB's and MySQL's; {} has no storage engines",
                    self.server
                ));
            }
            if !engines.contains(&engine) {
                let names: Vec<String> = engines.iter().map(ToString::to_string).collect();
                return wrong(format!(
                    "engine={engine} is not supported by {}: write {}",
                    self.server,
                    names.join(" or ")
                ));
            }
            if self.kind == DatabaseKind::Tpcc && !engine.is_transactional() {
                return wrong(format!(
                    "tpcc rolls transactions back, which {engine} cannot: use engine=innodb"
                ));
            }
        }
        if self.warm && !self.server.is_private() {
            return wrong(format!(
                "start=warm reads the files of servers that Spindle starts, which {} is not: leave it out",
                self.server
            ));
        }
        if self.think && self.rate.is_some() {
            return wrong(
                "think times and an offered rate are two different loads: name one".into(),
            );
        }
        self.statements.check(self.kind)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WordError> {
        let number = |what: &mut u32| match value.parse() {
            Ok(number) => {
                *what = number;
                Ok(())
            }
            Err(_) => Err(not_whole(key, value)),
        };
        let long = || count(value).ok_or_else(|| not_whole(key, value));
        match key {
            "server" => self.server = value.parse()?,
            "clients" | "threads" => {
                self.clients = Some(value.parse().map_err(|_| not_whole(key, value))?);
            }
            "rate" => self.rate = Some(value.parse()?),
            "engine" => self.engine = Some(value.parse()?),
            "buffer_pool" => self.buffer_pool = Some(value.parse().map_err(WordError::from)?),
            "start" => {
                self.warm = match value {
                    "warm" => true,
                    "cold" => false,
                    _ => {
                        let why = format!("start={value} is neither start=cold nor start=warm");
                        return Err(WordError::new(why));
                    }
                };
            }
            "tables" if self.kind.is_oltp() => number(&mut self.tables)?,
            "rows" | "table_size" if self.kind.is_oltp() => self.rows = long()?,
            "distribution" if self.kind.is_oltp() => self.distribution = value.parse()?,
            "warehouses" if self.kind == DatabaseKind::Tpcc => number(&mut self.warehouses)?,
            "think" if self.kind == DatabaseKind::Tpcc => self.think = switch(key, value)?,
            "checks" if self.kind == DatabaseKind::Tpcc => {
                self.all_checks = match value {
                    "all" => true,
                    "default" | "usual" => false,
                    _ => {
                        let why =
                            format!("checks={value} is neither checks=default nor checks=all");
                        return Err(WordError::new(why));
                    }
                };
            }
            "prefill" if self.kind == DatabaseKind::Insert => self.prefill = long()?,
            "span" if self.kind == DatabaseKind::Insert => self.span = long()?,
            "skip_trx" if self.kind.is_oltp() => self.statements.skip_trx = switch(key, value)?,
            _ => match self.statements.named(key).filter(|_| self.kind.is_oltp()) {
                Some(what) => number(what)?,
                None => return Err(self.unknown(key)),
            },
        }
        Ok(())
    }

    fn unknown(&self, key: &str) -> WordError {
        let own = match self.kind.family() {
            DatabaseFamily::Tpcc => "warehouses, think, checks",
            DatabaseFamily::Insert => "prefill, span",
            DatabaseFamily::Oltp => {
                "tables, rows, distribution, point_selects, simple_ranges, sum_ranges, \
                 order_ranges, distinct_ranges, range_size, index_updates, non_index_updates, \
                 delete_inserts, skip_trx"
            }
        };
        WordError::new(format!(
            "'{key}' is no key of workload {}: it has server, clients, rate, engine, buffer_pool, \
             start, {own}",
            self.kind
        ))
    }
}

impl Statements {
    const NAMES: [&str; 9] = [
        "point_selects",
        "simple_ranges",
        "sum_ranges",
        "order_ranges",
        "distinct_ranges",
        "range_size",
        "index_updates",
        "non_index_updates",
        "delete_inserts",
    ];

    fn named(&mut self, name: &str) -> Option<&mut u32> {
        let all = [
            &mut self.point_selects,
            &mut self.simple_ranges,
            &mut self.sum_ranges,
            &mut self.order_ranges,
            &mut self.distinct_ranges,
            &mut self.range_size,
            &mut self.index_updates,
            &mut self.non_index_updates,
            &mut self.delete_inserts,
        ];
        all.into_iter().zip(Statements::NAMES).find(|(_, its)| *its == name).map(|(what, _)| what)
    }

    fn check(&self, kind: DatabaseKind) -> Result<(), WordError> {
        let ranges =
            self.simple_ranges + self.sum_ranges + self.order_ranges + self.distinct_ranges;
        let reads = self.point_selects + ranges;
        let writes = self.index_updates + self.non_index_updates + self.delete_inserts;
        let all = match kind {
            DatabaseKind::OltpReadOnly => reads,
            DatabaseKind::OltpWriteOnly => writes,
            DatabaseKind::OltpReadWrite => reads + writes,
            DatabaseKind::OltpPointSelect
            | DatabaseKind::OltpInsert
            | DatabaseKind::Tpcc
            | DatabaseKind::Insert => return Ok(()),
        };
        if all == 0 || all > 100_000 {
            return Err(WordError::new(format!(
                "{kind} would have {all} statements a transaction: between 1 and 100000 can be run"
            )));
        }
        if self.range_size == 0 {
            return Err(WordError::new("range_size=0: a range has at least one row".to_owned()));
        }
        Ok(())
    }
}

/// A size as a word that reads back as the same size.
fn exact(size: Bytes) -> String {
    let short = size.to_string().replace(' ', "");
    if short.parse() == Ok(size) { short } else { format!("{}B", size.0) }
}

fn not_whole(key: &str, value: &str) -> WordError {
    WordError::new(format!("{key}={value} is not a whole number below the largest possible"))
}

fn switch(key: &str, value: &str) -> Result<bool, WordError> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(WordError::new(format!("{key}={value} is neither {key}=on nor {key}=off"))),
    }
}

/// A whole number, or thousands and millions of one: `250k`, `10M`.
fn count(text: &str) -> Option<u64> {
    let (digits, times) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 1_000),
        b'M' => (&text[..text.len() - 1], 1_000_000),
        b'G' => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(times)
}

/// The kind, then `key=value` for what is not the default: `oltp_read_write,tables=4,rows=1000000`.
impl FromStr for DatabaseJob {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let mut parts = text.split(',').map(str::trim);
        let mut job = DatabaseJob::of(parts.next().unwrap_or("").parse()?);
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(|| {
                WordError::new(format!(
                    "'{part}' in workload '{text}' is not of the form key=value"
                ))
            })?;
            job.set(key.trim(), value.trim())?;
        }
        job.check()?;
        Ok(job)
    }
}

impl fmt::Display for DatabaseJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = DatabaseJob::of(self.kind);
        let mut words = vec![self.kind.to_string()];
        let mut word = |differs: bool, key: &str, value: String| {
            if differs {
                words.push(format!("{key}={value}"));
            }
        };
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        word(self.server != default.server, "server", self.server.to_string());
        word(self.tables != default.tables, "tables", self.tables.to_string());
        word(self.rows != default.rows, "rows", self.rows.to_string());
        let distribution = self.distribution.to_string();
        word(self.distribution != default.distribution, "distribution", distribution);
        word(self.warehouses != default.warehouses, "warehouses", self.warehouses.to_string());
        word(self.think, "think", switch(true));
        word(self.all_checks, "checks", "all".to_owned());
        word(self.prefill != default.prefill, "prefill", self.prefill.to_string());
        word(self.span != default.span, "span", self.span.to_string());
        let (mut ours, mut theirs) = (self.statements, default.statements);
        for name in Statements::NAMES {
            if let (Some(value), Some(default)) = (ours.named(name), theirs.named(name)) {
                word(value != default, name, value.to_string());
            }
        }
        word(self.statements.skip_trx, "skip_trx", switch(true));
        let some = |value: Option<String>| value.unwrap_or_default();
        word(self.clients.is_some(), "clients", some(self.clients.map(|n| n.to_string())));
        word(self.rate.is_some(), "rate", some(self.rate.map(|rate| rate.to_string())));
        word(self.engine.is_some(), "engine", some(self.engine.map(|e| e.to_string())));
        let pool = self.buffer_pool.map(exact);
        word(pool.is_some(), "buffer_pool", some(pool));
        word(self.warm, "start", "warm".to_owned());
        f.pad(&words.join(","))
    }
}

word_serde!(DatabaseJob);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_jobs_read_back_as_written() {
        for text in [
            "oltp_read_write",
            "oltp_read_only,server=postgresql,tables=4,rows=1000000,distribution=zipfian:0.9",
            "oltp_write_only,delete_inserts=0,skip_trx=on,clients=16,rate=fixed:100/s",
            "tpcc,warehouses=2,think=on,checks=all,buffer_pool=64MiB",
            "insert,prefill=1000000,span=1000,engine=myisam",
            "insert,prefill=1000,start=warm",
        ] {
            let job: DatabaseJob = text.parse().unwrap();
            assert_eq!(job.to_string(), text);
            let through: DatabaseJob =
                serde_json::from_str(&serde_json::to_string(&job).unwrap()).unwrap();
            assert_eq!(through, job);
        }
    }

    #[test]
    fn words_that_fit_no_workload() {
        let complains = |text: &str, words: &[&str]| {
            let error = text.parse::<DatabaseJob>().unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
        };
        complains("oltp_readwrite", &["oltp_readwrite", "oltp_read_write", "tpcc", "insert"]);
        complains("tpcc,rows=5", &["'rows'", "warehouses"]);
        complains("oltp_insert,warehouses=5", &["'warehouses'", "tables, rows"]);
        complains("oltp_insert,rows", &["key=value"]);
        complains("oltp_insert,rows=many", &["rows=many"]);
        complains("tpcc,engine=myisam", &["rolls transactions back"]);
        complains("tpcc,server=postgresql,engine=innodb", &["no storage engines"]);
        complains("tpcc,think=on,rate=5/s", &["two different loads"]);
        complains("oltp_read_only,clients=0", &["0 clients"]);
        complains(
            "oltp_write_only,index_updates=0,non_index_updates=0,delete_inserts=0",
            &["0 st"],
        );
        complains("tpcc,checks=most", &["checks=all"]);
    }

    #[test]
    fn counts_in_thousands_and_millions() {
        assert_eq!("oltp_insert,rows=250k".parse::<DatabaseJob>().unwrap().rows, 250_000);
        assert_eq!("insert,prefill=3M".parse::<DatabaseJob>().unwrap().prefill, 3_000_000);
    }
}
