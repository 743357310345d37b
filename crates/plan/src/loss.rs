//! What a server's settings can lose of what it said is safe.

use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};
use units::Bytes;
use workload::{PrivateServer, WordError};

/// Something that can be lost though the server said that it is safe. Data alone: `report` has the
/// words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "loss", rename_all = "snake_case")]
pub enum Loss {
    /// All data: nothing is flushed.
    Everything {
        /// The variable that says so.
        variable: String,
    },
    /// Pages, when power fails while they are written: a torn page cannot be repaired.
    TornPages,
    /// The same, unless writes are atomic: the kernel promises that here for writes that ask for it.
    TornPagesUnlessAsked,
    /// Pages, as with [`Loss::TornPages`]; the server notices, and cannot repair them.
    TornPagesNoticed,
    /// What data files hold, when power fails: they are not flushed before their log goes.
    DataFiles,
    /// What a file grew by, when power fails.
    FileGrowth,
    /// The last commits, when the server crashes.
    CommitsAtCrash(Window),
    /// The last commits, when the operating system crashes or power fails.
    CommitsAtPowerFailure(Window),
    /// The last events of the binary log, when the operating system crashes or power fails.
    Binlog {
        /// At most so many groups of commits; none where the operating system decides.
        groups: Option<u64>,
    },
    /// Completed writes, when power fails: the filesystem is mounted without barriers or the like.
    Mount {
        /// The option.
        option: String,
    },
}

/// What kind of thing is lost, by the word that accepts it: `--risk commits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// All data.
    Everything,
    /// Pages that are being written.
    TornPages,
    /// What data files hold.
    DataFiles,
    /// What a file grew by.
    FileGrowth,
    /// The last commits.
    Commits,
    /// The last events of the binary log.
    Binlog,
    /// Completed writes of the whole filesystem.
    Mount,
}

impl LossKind {
    /// All, the worst first.
    pub const ALL: [LossKind; 7] = [
        LossKind::Everything,
        LossKind::Mount,
        LossKind::DataFiles,
        LossKind::TornPages,
        LossKind::FileGrowth,
        LossKind::Commits,
        LossKind::Binlog,
    ];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            LossKind::Everything => "everything",
            LossKind::TornPages => "torn-pages",
            LossKind::DataFiles => "data-files",
            LossKind::FileGrowth => "file-growth",
            LossKind::Commits => "commits",
            LossKind::Binlog => "binlog",
            LossKind::Mount => "mount",
        }
    }
}

impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for LossKind {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        LossKind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let all = LossKind::ALL.map(LossKind::name).join(", ");
            WordError::new(format!("'{text}' is no risk that is known: they are {all}"))
        })
    }
}

impl Loss {
    /// What kind of thing is lost.
    pub fn kind(&self) -> LossKind {
        match self {
            Loss::Everything { .. } => LossKind::Everything,
            Loss::TornPages | Loss::TornPagesUnlessAsked | Loss::TornPagesNoticed => {
                LossKind::TornPages
            }
            Loss::DataFiles => LossKind::DataFiles,
            Loss::FileGrowth => LossKind::FileGrowth,
            Loss::CommitsAtCrash(_) | Loss::CommitsAtPowerFailure(_) => LossKind::Commits,
            Loss::Binlog { .. } => LossKind::Binlog,
            Loss::Mount { .. } => LossKind::Mount,
        }
    }
}

/// How far back commits can be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// InnoDB flushes its log every innodb_flush_log_at_timeout seconds (1), not exactly.
    LogTimeout,
    /// PostgreSQL's WAL writer takes up to three times wal_writer_delay (200 ms).
    WalWriter,
    /// InnoDB's log is synced at checkpoints alone.
    Checkpoint,
    /// What the operating system had not yet written of the binary log: recovery rolls back a transaction that the
    /// binary log does not have, whatever InnoDB's log holds. At most so many groups of commits; none where the
    /// operating system decides.
    Binlog(Option<u64>),
}

/// What a server with these variables can lose. What it does without them loses nothing: Spindle pins
/// that. `atomic` is the largest write that is atomic when asked for.
///
/// Seen by counting the syncs of 200 commits and of a checkpoint on MySQL 9.7.4 and MariaDB 10.11.19 and 11.8.9:
/// `nosync` leaves out those of InnoDB's log alone, and on 11.8 none; `littlesync` none; `O_DIRECT_NO_FSYNC` those of data
/// files that do not grow, and MariaDB 11.8 makes innodb_doublewrite=ON `fast` by it.
pub fn losses(
    product: PrivateServer,
    version: Option<&str>,
    variables: &BTreeMap<String, String>,
    atomic: Option<Bytes>,
) -> BTreeSet<Loss> {
    let value = |name: &str| variables.get(name).map(|value| value.to_ascii_lowercase());
    let is = |name: &str, words: &[&str]| value(name).is_some_and(|it| words.contains(&&*it));
    let off = |name: &str| is(name, OFF);
    let torn = |page: Bytes| match atomic.is_some_and(|max| max >= page) {
        true => Loss::TornPagesUnlessAsked,
        false => Loss::TornPages,
    };
    let mut all = BTreeSet::new();
    let mariadb = product == PrivateServer::MariaDb;
    match product {
        PrivateServer::MySql | PrivateServer::MariaDb => {
            if is("innodb_flush_log_at_trx_commit", &["0", "2"]) {
                all.insert(Loss::CommitsAtPowerFailure(Window::LogTimeout));
            }
            if off("innodb_flush_log_at_trx_commit") {
                all.insert(Loss::CommitsAtCrash(Window::LogTimeout));
            }
            let page = value("innodb_page_size").and_then(|text| text.parse().ok());
            if off("innodb_doublewrite") {
                all.insert(torn(page.unwrap_or(Bytes::from_kib(16))));
            }
            if is("innodb_doublewrite", &["detect_only"]) {
                all.insert(Loss::TornPagesNoticed);
            }
            if is("innodb_doublewrite", &["fast"]) {
                all.insert(Loss::DataFiles);
            }
            let method = |words: &[&str]| is("innodb_flush_method", words);
            if method(&["o_direct_no_fsync"]) {
                all.insert(if mariadb { Loss::DataFiles } else { Loss::FileGrowth });
            }
            let syncs_all = mariadb && version.and_then(major_minor) >= Some((11, 8));
            if method(&["nosync"]) && !syncs_all {
                all.insert(Loss::CommitsAtPowerFailure(Window::Checkpoint));
            }
            if let Some(groups) = binlog(variables) {
                all.insert(Loss::CommitsAtPowerFailure(Window::Binlog(groups)));
                all.insert(Loss::Binlog { groups });
            }
        }
        PrivateServer::PostgreSql => {
            if off("fsync") {
                all.insert(Loss::Everything { variable: "fsync".to_owned() });
            }
            if off("full_page_writes") {
                all.insert(torn(Bytes::from_kib(8)));
            }
            if off("synchronous_commit") {
                all.insert(Loss::CommitsAtCrash(Window::WalWriter));
                all.insert(Loss::CommitsAtPowerFailure(Window::WalWriter));
            }
        }
    }
    all
}

/// The first two numbers of a server's version, such as those of `MariaDB 11.8.9`.
fn major_minor(version: &str) -> Option<(u32, u32)> {
    let number =
        version.split_whitespace().find(|it| it.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = number.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

const OFF: &[&str] = &["0", "off", "false", "no"];

/// How much of the binary log can be lost: so many groups of commits, or what the operating system had not written;
/// `None` where nothing can, or there is none.
fn binlog(variables: &BTreeMap<String, String>) -> Option<Option<u64>> {
    let log = variables.get("log_bin")?.to_ascii_lowercase();
    if OFF.contains(&&*log) {
        return None;
    }
    // Spindle pins sync_binlog=0.
    match variables.get("sync_binlog").map_or(Ok(0), |text| text.parse::<u64>()) {
        Ok(1) => None,
        Ok(0) | Err(_) => Some(None),
        Ok(groups) => Some(Some(groups)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(product: PrivateServer, pairs: &[(&str, &str)], atomic: Option<Bytes>) -> Vec<Loss> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        losses(product, None, &pairs.iter().map(owned).collect(), atomic).into_iter().collect()
    }

    #[test]
    fn durable_settings_lose_nothing() {
        let innodb = [
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_doublewrite", "DETECT_AND_RECOVER"),
            ("innodb_flush_method", "O_DSYNC"),
            ("sync_binlog", "0"),
        ];
        assert_eq!(of(PrivateServer::MySql, &innodb, None), [], "without a binary log");
        let postgresql = [("synchronous_commit", "on"), ("wal_sync_method", "open_sync")];
        assert_eq!(of(PrivateServer::PostgreSql, &postgresql, None), []);
    }

    #[test]
    fn what_loses_more_contains_what_loses_less() {
        let level = |value| [("innodb_flush_log_at_trx_commit", value)];
        let two = of(PrivateServer::MySql, &level("2"), None);
        let zero = of(PrivateServer::MySql, &level("0"), None);
        assert_eq!(two, [Loss::CommitsAtPowerFailure(Window::LogTimeout)]);
        assert!(two.iter().all(|loss| zero.contains(loss)) && zero.len() == 2, "{zero:?}");
        let off = of(PrivateServer::PostgreSql, &[("synchronous_commit", "off")], None);
        assert_eq!(off.len(), 2);
    }

    #[test]
    fn each_unsafe_level_is_known() {
        let one = |product, name, value| of(product, &[(name, value)], None);
        let mariadb = |name, value| one(PrivateServer::MariaDb, name, value);
        let mysql = |name, value| one(PrivateServer::MySql, name, value);
        assert_eq!(mysql("innodb_doublewrite", "0"), [Loss::TornPages]);
        assert_eq!(mysql("innodb_doublewrite", "DETECT_ONLY"), [Loss::TornPagesNoticed]);
        assert_eq!(mysql("innodb_doublewrite", "fast"), [Loss::DataFiles]);
        assert_eq!(mysql("innodb_flush_method", "O_DIRECT_NO_FSYNC"), [Loss::FileGrowth]);
        assert_eq!(mariadb("innodb_flush_method", "O_DIRECT_NO_FSYNC"), [Loss::DataFiles]);
        let checkpoint = Loss::CommitsAtPowerFailure(Window::Checkpoint);
        let nosync = |product| one(product, "innodb_flush_method", "nosync");
        assert!(nosync(PrivateServer::MySql).iter().eq([&checkpoint]));
        assert!(nosync(PrivateServer::MariaDb).iter().eq([&checkpoint]));
        assert_eq!(mysql("innodb_flush_method", "littlesync"), []);
        let nosync = [("innodb_flush_method".to_owned(), "nosync".to_owned())].into();
        for (version, count) in [("MariaDB 11.8.9", 0), ("MariaDB 10.11.19", 1)] {
            let found = losses(PrivateServer::MariaDb, Some(version), &nosync, None);
            assert_eq!(found.len(), count, "{version}");
        }
        assert!(matches!(
            one(PrivateServer::PostgreSql, "fsync", "off")[..],
            [Loss::Everything { .. }]
        ));
        let with_log =
            |sync| of(PrivateServer::MySql, &[("log_bin", "b"), ("sync_binlog", sync)], None);
        assert_eq!(with_log("1"), []);
        for (sync, groups) in [("0", None), ("100", Some(100))] {
            let commits = Loss::CommitsAtPowerFailure(Window::Binlog(groups));
            assert_eq!(with_log(sync), [commits, Loss::Binlog { groups }]);
        }
    }

    #[test]
    fn a_promise_covers_pages_up_to_its_size() {
        let off = [("innodb_doublewrite", "OFF")];
        let of_page = |kib| of(PrivateServer::MySql, &off, Some(Bytes::from_kib(kib)));
        assert_eq!(of_page(16), [Loss::TornPagesUnlessAsked]);
        assert_eq!(of_page(8), [Loss::TornPages]);
        let small = [("innodb_doublewrite", "OFF"), ("innodb_page_size", "4k")];
        let promised = of(PrivateServer::MySql, &small, Some(Bytes::from_kib(8)));
        assert_eq!(promised, [Loss::TornPagesUnlessAsked]);
    }
}
