//! When a commit is safe. What each level can lose is `plan::losses`.
//!
//! Sources: MySQL's and MariaDB's manuals (innodb_flush_log_at_trx_commit, sync_binlog: 1 in MySQL
//! since 5.7, 0 in MariaDB), PostgreSQL's manual (synchronous_commit). `fsync=off` is no level: it
//! can lose everything.

use super::Draft;
use workload::PrivateServer;

pub(super) fn levels(draft: &mut Draft<'_>) {
    const LOG: &str = "innodb_flush_log_at_trx_commit";
    const BINLOG: &str = "sync_binlog";
    let binlog = match draft.asked.kind {
        PrivateServer::PostgreSql => {
            const COMMIT: &str = "synchronous_commit";
            draft.base(&[(COMMIT, "on")]);
            draft.default_level("on");
            draft.level("off", &[(COMMIT, "off")]);
            return;
        }
        PrivateServer::MySql => "1",
        PrivateServer::MariaDb => "0",
    };
    // Without a binary log sync_binlog would mean nothing.
    draft.resolved.fixed.insert("log_bin".to_owned(), "binlog".to_owned());
    draft.base(&[(LOG, "1"), (BINLOG, binlog)]);
    let name = |log: &str, binlog: &str| format!("log {log}, binlog {binlog}");
    let default = name(draft.base_value(LOG), draft.base_value(BINLOG));
    draft.default_level(&default);
    for (log, binlog) in [("1", "1"), ("1", "0"), ("2", "0"), ("0", "0")] {
        draft.level(&name(log, binlog), &[(LOG, log), (BINLOG, binlog)]);
    }
}
