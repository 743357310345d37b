//! A server's own counters, once a second beside the device's.

use crate::{Running, ServerCounters, Session};
use std::{collections::BTreeMap, fs, time::Instant};

/// Samples a server.
pub struct ServerSampling {
    session: Option<Box<dyn Session>>,
    name: &'static str,
    pid: Option<u32>,
    before: Option<(Instant, BTreeMap<String, f64>)>,
}

impl ServerSampling {
    /// Begins before the load does.
    pub fn begin(running: &Running) -> ServerSampling {
        let mut sampling = ServerSampling {
            session: running.endpoint.connect().ok(),
            name: running.name,
            pid: running.pid(),
            before: None,
        };
        let growing = sampling.counters().growing;
        sampling.before = Some((Instant::now(), growing));
        sampling
    }

    /// Rates since the last sample, and what is momentary.
    pub fn sample(&mut self) -> BTreeMap<String, f64> {
        let ServerCounters { growing, momentary: mut values } = self.counters();
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

    /// The server's, with its name before theirs, and its processes'.
    fn counters(&mut self) -> ServerCounters {
        let said = self.session.as_mut().map(|session| session.counters()).unwrap_or_default();
        let named = |counters: BTreeMap<String, f64>| -> BTreeMap<String, f64> {
            let name = self.name;
            counters.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)).collect()
        };
        let (mut growing, momentary) = (named(said.growing), named(said.momentary));
        if let Some(pid) = self.pid {
            let used = Used::of(pid);
            growing.insert("server.cpus".to_owned(), used.cpu_seconds);
            growing.insert("server.read_bytes".to_owned(), used.read_bytes);
            growing.insert("server.written_bytes".to_owned(), used.written_bytes);
        }
        ServerCounters { growing, momentary }
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
        // Behind the name in parentheses, which may hold anything: utime, stime, and both of the children that
        // have ended are fields 14 to 17. PostgreSQL's clients end with their load, before the last sample.
        if let Some((_, rest)) = stat.rsplit_once(") ") {
            let fields: Vec<&str> = rest.split(' ').collect();
            let ticks = |at: usize| fields.get(at).and_then(|f| f.parse().ok()).unwrap_or(0.0);
            self.cpu_seconds += (ticks(11) + ticks(12) + ticks(13) + ticks(14)) / TICKS;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_a_child_used_stays_when_it_has_ended() {
        let spin = "for i in $(seq 300000); do :; done";
        let script = format!("sh -c '{spin}'; read wait");
        let mut parent = Command::new("sh")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // The child has used some tenths of a second, and its parent waits for a line.
        let mut used = 0.0;
        for _ in 0..1500 {
            let now = Used::of(parent.id()).cpu_seconds;
            assert!(now >= used, "{now} after {used}");
            used = now;
            let path = format!("/proc/{0}/task/{0}/children", parent.id());
            if used > 0.05 && fs::read_to_string(path).unwrap_or_default().trim().is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let last = Used::of(parent.id()).cpu_seconds;
        drop(parent.stdin.take());
        parent.wait().unwrap();
        assert!(last >= used && last > 0.05, "{last} s");
    }
}
