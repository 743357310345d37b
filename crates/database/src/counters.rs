//! A server's own counters, once a second beside the device's.

use crate::{Running, Session};
use std::{collections::BTreeMap, fs, time::Instant};
use workload::Dialect;

/// MariaDB's and MySQL's counters that only grow: those that there are become rates.
const GROWING: [&str; 26] = [
    "Innodb_data_reads",
    "Innodb_data_writes",
    "Innodb_data_read",
    "Innodb_data_written",
    "Innodb_data_fsyncs",
    "Innodb_buffer_pool_reads",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_wait_free",
    "Innodb_buffer_pool_pages_flushed",
    "Innodb_log_waits",
    "Innodb_os_log_written",
    "Innodb_dblwr_pages_written",
    "Innodb_dblwr_writes",
    "Innodb_row_lock_waits",
    "Key_reads",
    "Key_read_requests",
    "Key_writes",
    "Key_write_requests",
    "Aria_pagecache_reads",
    "Aria_pagecache_read_requests",
    "Aria_pagecache_writes",
    "Aria_pagecache_write_requests",
    "Handler_commit",
    "Handler_rollback",
    "Questions",
    "Sort_merge_passes",
];

/// Those that are what they are at the moment.
const MOMENTARY: [&str; 9] = [
    "Innodb_data_pending_reads",
    "Innodb_data_pending_writes",
    "Innodb_data_pending_fsyncs",
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_buffer_pool_pages_free",
    "Innodb_checkpoint_age",
    "Key_blocks_not_flushed",
    "Aria_pagecache_blocks_not_flushed",
    "Threads_running",
];

/// PostgreSQL's views of counters that only grow; which there are differs by version.
const VIEWS: [(&str, &str); 4] = [
    ("pg_stat_wal", ""),
    ("pg_stat_bgwriter", ""),
    ("pg_stat_checkpointer", ""),
    ("pg_stat_database", "WHERE datname = current_database()"),
];

/// Samples a server.
pub struct ServerSampling {
    session: Option<Box<dyn Session>>,
    name: &'static str,
    pid: Option<u32>,
    views: Vec<(&'static str, &'static str)>,
    before: Option<(Instant, BTreeMap<String, f64>)>,
}

impl ServerSampling {
    /// Begins before the load does.
    pub fn begin(running: &Running) -> ServerSampling {
        let mut sampling = ServerSampling {
            session: running.endpoint.connect().ok(),
            name: running.name,
            pid: running.pid(),
            views: VIEWS.to_vec(),
            before: None,
        };
        let growing = sampling.growing().0;
        sampling.before = Some((Instant::now(), growing));
        sampling
    }

    /// Rates since the last sample, and what is momentary.
    pub fn sample(&mut self) -> BTreeMap<String, f64> {
        let (growing, mut values) = self.growing();
        let now = Instant::now();
        if let Some((then, before)) = &self.before {
            let seconds = (now - *then).as_secs_f64().max(1e-9);
            for (name, value) in &growing {
                let Some(was) = before.get(name) else { continue };
                // A process that ended takes its counters with it.
                let rate = (value - was).max(0.0) / seconds;
                match name.as_str() {
                    "server.cpus" => values.insert(name.clone(), rate),
                    _ => values.insert(format!("{name}/s"), rate),
                };
            }
        }
        self.before = Some((now, growing));
        values
    }

    fn growing(&mut self) -> (BTreeMap<String, f64>, BTreeMap<String, f64>) {
        let (mut growing, momentary) = match self.session.as_ref().map(|session| session.dialect())
        {
            Some(Dialect::MySql) => self.mysql(),
            Some(Dialect::PostgreSql) => (self.postgresql(), BTreeMap::new()),
            None => Default::default(),
        };
        if let Some(pid) = self.pid {
            let used = Used::of(pid);
            growing.insert("server.cpus".to_owned(), used.cpu_seconds);
            growing.insert("server.read_bytes".to_owned(), used.read_bytes);
            growing.insert("server.written_bytes".to_owned(), used.written_bytes);
        }
        (growing, momentary)
    }

    fn mysql(&mut self) -> (BTreeMap<String, f64>, BTreeMap<String, f64>) {
        let names: Vec<String> =
            GROWING.iter().chain(&MOMENTARY).map(|name| format!("'{name}'")).collect();
        let ask = format!("SHOW GLOBAL STATUS WHERE variable_name IN ({})", names.join(","));
        let (mut growing, mut momentary) = (BTreeMap::new(), BTreeMap::new());
        let rows = self.session.as_mut().and_then(|session| session.ask(&ask).ok());
        for row in rows.into_iter().flatten() {
            let [Some(name), Some(value)] = row.as_slice() else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            if name == "Innodb_data_fsyncs" {
                growing.insert(format!("{}.fsyncs", self.name), value);
            }
            let full = format!("{}.{name}", self.name);
            match MOMENTARY.contains(&name.as_str()) {
                true => momentary.insert(full, value),
                false => growing.insert(full, value),
            };
        }
        (growing, momentary)
    }

    fn postgresql(&mut self) -> BTreeMap<String, f64> {
        let mut growing = BTreeMap::new();
        let Some(session) = &mut self.session else { return growing };
        let name = self.name;
        // A view that this version does not have is not asked again.
        self.views.retain(|(view, filter)| {
            let ask = format!(
                "SELECT key, value FROM (SELECT * FROM {view} {filter}) v, \
                 jsonb_each_text(to_jsonb(v))"
            );
            let Ok(rows) = session.ask(&ask) else { return false };
            for row in rows {
                let [Some(key), Some(value)] = row.as_slice() else { continue };
                let Ok(value) = value.parse::<f64>() else { continue };
                if key == "wal_sync" {
                    growing.insert(format!("{name}.fsyncs"), value);
                }
                if !matches!(key.as_str(), "datid" | "numbackends") {
                    growing.insert(format!("{name}.{key}"), value);
                }
            }
            true
        });
        growing
    }
}

/// What a server's processes have used.
#[derive(Default)]
struct Used {
    cpu_seconds: f64,
    read_bytes: f64,
    written_bytes: f64,
}

impl Used {
    /// Of a process and its children: PostgreSQL's are processes, MariaDB has none.
    fn of(pid: u32) -> Used {
        let mut used = Used::default();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let all = children.split_whitespace().filter_map(|child| child.parse().ok()).chain([pid]);
        for pid in all {
            used.add(pid);
        }
        used
    }

    fn add(&mut self, pid: u32) {
        /// USER_HZ of proc_pid_stat(5).
        const TICKS: f64 = 100.0;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Behind the name in parentheses, which may hold anything: utime and stime are fields 14, 15.
        if let Some((_, rest)) = stat.rsplit_once(") ") {
            let fields: Vec<&str> = rest.split(' ').collect();
            let ticks = |at: usize| fields.get(at).and_then(|f| f.parse().ok()).unwrap_or(0.0);
            self.cpu_seconds += (ticks(11) + ticks(12)) / TICKS;
        }
        let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let value = |name: &str| {
            let line = io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or(0.0)
        };
        self.read_bytes += value("read_bytes");
        self.written_bytes += value("write_bytes");
    }
}
