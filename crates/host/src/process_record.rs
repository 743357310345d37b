//! The kernel's own record of processes as they begin, by its tracing: what `/proc` no longer shows of one
//! that has ended.
//!
//! A ring buffer of our own (a tracing instance) that nobody reads until something is asked of it.

use crate::{Changes, ProcessName, Result, error::io_error, trace_instance::TraceInstance};
use std::fs;

/// Of each processor: enough for a thousand processes.
const BUFFER_KIB: u32 = 128;

/// The tracepoints: a process is made, and begins another program.
const EVENTS: [&str; 2] = ["sched/sched_process_fork", "sched/sched_process_exec"];

/// A record that is being made, until the changes that it is one of are undone.
#[derive(Debug)]
pub struct ProcessRecord {
    instance: TraceInstance,
}

/// What the record has of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Begun {
    pub name: Option<String>,
    /// The file of the program that it ran last.
    pub program: Option<String>,
    pub parent: Option<ProcessName>,
}

impl Changes {
    /// Begins to record processes; the record ends with these changes.
    pub fn record_processes(&mut self) -> Result<ProcessRecord> {
        let (instance, entry) = self.trace_instance()?;
        let record = ProcessRecord { instance };
        match record.begin() {
            Ok(()) => Ok(record),
            Err(error) => {
                self.unmake(entry)?;
                Err(error)
            }
        }
    }
}

impl ProcessRecord {
    fn begin(&self) -> Result<()> {
        self.instance.set("buffer_size_kb", &BUFFER_KIB.to_string())?;
        for event in EVENTS {
            self.instance.set(&format!("events/{event}/enable"), "1")?;
        }
        Ok(())
    }

    /// What was recorded of a process, if it began since the record did.
    pub(crate) fn process(&self, pid: u32) -> Result<Begun> {
        let path = self.instance.path().join("trace");
        let text = fs::read_to_string(&path).map_err(io_error("read", &path))?;
        Ok(begun(&text, pid))
    }
}

/// Reads lines such as `sh-7 [001] ..... 1.5: sched_process_exec: filename=/bin/sh pid=7 old_pid=7`;
/// names may hold spaces.
fn begun(trace: &str, pid: u32) -> Begun {
    let mut found = Begun::default();
    let between = |text: &str, from: &str, to: &str| -> Option<String> {
        let rest = text.split_once(from)?.1;
        Some(rest.rsplit_once(to).map_or(rest, |(value, _)| value).to_owned())
    };
    for line in trace.lines().filter(|line| !line.starts_with('#')) {
        if let Some((_, event)) = line.split_once(": sched_process_exec: ") {
            if event.contains(&format!(" pid={pid} old_pid=")) {
                found.program = between(event, "filename=", " pid=");
                let name = found.program.as_deref().and_then(|it| it.rsplit('/').next());
                // As the kernel shortens it.
                found.name = name.map(|name| name.chars().take(15).collect());
            }
        } else if let Some((_, event)) = line.split_once(": sched_process_fork: ")
            && let Some((parent, child)) = event.split_once(" child_comm=")
            && let Some((name, child_pid)) = child.rsplit_once(" child_pid=")
            && child_pid.trim().parse() == Ok(pid)
        {
            found.name = Some(name.to_owned());
            let of_parent = parent.rsplit_once(" pid=");
            found.parent = of_parent.and_then(|(comm, pid)| {
                let name = comm.strip_prefix("comm=")?.to_owned();
                Some(ProcessName { pid: pid.trim().parse().ok()?, name })
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_of_a_process() {
        let trace = "# tracer: nop\n#\n\
            (udev-worker)-70 [000] ....1 1.1: sched_process_fork: comm=(udev-worker) pid=70 child_comm=(udev-worker) child_pid=77\n\
            <...>-77 [001] ..... 1.2: sched_process_exec: filename=/usr/bin/my tool pid=77 old_pid=77\n\
            a b-78 [001] ..... 1.3: sched_process_fork: comm=a b pid=78 child_comm=a b child_pid=79\n";
        let one = begun(trace, 77);
        assert_eq!(one.name.as_deref(), Some("my tool"));
        assert_eq!(one.program.as_deref(), Some("/usr/bin/my tool"));
        assert_eq!(one.parent, Some(ProcessName { pid: 70, name: "(udev-worker)".to_owned() }));
        let other = begun(trace, 79);
        assert_eq!(other.parent, Some(ProcessName { pid: 78, name: "a b".to_owned() }));
        assert_eq!(begun(trace, 7), Begun::default());
    }
}
