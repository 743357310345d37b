//! A job: a set of like clients, each repeating one operation.

use crate::{IoPriority, Order, Pattern, Rate, SyncMode, WordError};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use units::Bytes;

/// Operations that a client with a ring prepares before the kernel gets them. One call for all would
/// be cheapest, but leaves the device idle meanwhile: measured at depth 32, 8 gave 5 % more direct
/// reads for 3 % more CPU time.
pub const HAND_OVER_AFTER: usize = 8;

/// A set of like clients, each repeating one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Job {
    /// Where the next operation goes and whether it reads or writes.
    pub pattern: Pattern,
    /// Bytes an operation.
    pub block_size: Bytes,
    /// How writes are made durable and whether the page cache is bypassed.
    pub sync: SyncMode,
    /// How many clients.
    pub clients: u32,
    /// Whether a client is a thread or a process.
    pub client_kind: ClientKind,
    /// Operations that each client keeps outstanding.
    pub depth: u32,
    /// Operations a second of all clients together, offered whether or not the device keeps up;
    /// without it each client issues the next when one completes.
    pub rate: Option<Rate>,
    /// The kernel's I/O priority of the clients; without it, what they inherit.
    pub io_priority: Option<IoPriority>,
}

impl Default for Job {
    /// One client reading 4 KiB blocks at random, past the page cache.
    fn default() -> Self {
        Job {
            pattern: Pattern { order: Order::Random, read_percent: 100 },
            block_size: Bytes::from_kib(4),
            sync: SyncMode::DIRECT,
            clients: 1,
            client_kind: ClientKind::Threads,
            depth: 1,
            rate: None,
            io_priority: None,
        }
    }
}

impl Job {
    /// Why this job can be run nowhere, or nothing.
    pub fn check(&self) -> Result<(), WordError> {
        let wrong = |message: String| Err(WordError::new(message));
        if self.block_size.0 == 0 || !self.block_size.0.is_multiple_of(512) {
            return wrong(format!(
                "block size {} is not a multiple of 512 bytes, the kernel's sector",
                self.block_size
            ));
        }
        if self.block_size > Bytes::from_gib(1) {
            return wrong(format!("block size {} is above 1 GiB", self.block_size));
        }
        if self.clients == 0 || self.clients > 4096 {
            return wrong(format!("{} clients: between 1 and 4096 can be run", self.clients));
        }
        if self.depth == 0 || self.depth > 4096 {
            return wrong(format!("depth {}: between 1 and 4096 can be run", self.depth));
        }
        Ok(())
    }
}

/// Threads share one process. Either has an I/O context of its own, which is what cfq and bfq tell
/// apart (clone(2): a new task shares one only with CLONE_IO, which threads are not made with).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientKind {
    /// One thread a client.
    #[default]
    Threads,
    /// One process a client.
    Processes,
}

impl FromStr for ClientKind {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "threads" => Ok(ClientKind::Threads),
            "processes" => Ok(ClientKind::Processes),
            other => Err(WordError::new(format!("'{other}' is neither 'threads' nor 'processes'"))),
        }
    }
}

impl fmt::Display for ClientKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClientKind::Threads => "threads",
            ClientKind::Processes => "processes",
        })
    }
}

/// A job in one line, as a factor's level and in tables: the pattern, then `key=value` for what
/// differs from [`Job::default`]: `read,block_size=1M,sync=buffered,io_priority=idle`.
impl FromStr for Job {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let mut parts = text.split(',').map(str::trim);
        let mut job = Job { pattern: parts.next().unwrap_or("").parse()?, ..Job::default() };
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(|| {
                WordError::new(format!("'{part}' in job '{text}' is not of the form key=value"))
            })?;
            let number = || {
                value.parse().map_err(|_| {
                    WordError::new(format!("{key}={value} in job '{text}' is not a whole number"))
                })
            };
            match key.trim() {
                "block_size" | "bs" => job.block_size = value.parse().map_err(WordError::from)?,
                "sync" => job.sync = value.parse()?,
                "clients" => job.clients = number()?,
                "client_kind" => job.client_kind = value.parse()?,
                "depth" => job.depth = number()?,
                "rate" => job.rate = Some(value.parse()?),
                "io_priority" | "prio" => job.io_priority = Some(value.parse()?),
                other => {
                    return Err(WordError::new(format!(
                        "'{other}' in job '{text}' is not known: a job has block_size, sync, \
                         clients, client_kind, depth, rate and io_priority"
                    )));
                }
            }
        }
        job.check()?;
        Ok(job)
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = Job { pattern: self.pattern, ..Job::default() };
        write!(f, "{}", self.pattern)?;
        if self.block_size != plain.block_size {
            write!(f, ",block_size={}", self.block_size.to_string().replace(' ', ""))?;
        }
        if self.sync != plain.sync {
            write!(f, ",sync={}", self.sync)?;
        }
        if self.clients != plain.clients {
            write!(f, ",clients={}", self.clients)?;
        }
        if self.client_kind != plain.client_kind {
            write!(f, ",client_kind={}", self.client_kind)?;
        }
        if self.depth != plain.depth {
            write!(f, ",depth={}", self.depth)?;
        }
        if let Some(rate) = self.rate {
            write!(f, ",rate={rate}")?;
        }
        if let Some(priority) = self.io_priority {
            write!(f, ",io_priority={priority}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_read_back_as_written() {
        for text in [
            "randread",
            "read,block_size=1MiB,sync=buffered,io_priority=idle",
            "randrw:70,block_size=16KiB,clients=8,client_kind=processes,depth=4,rate=poisson:2000/s",
        ] {
            assert_eq!(text.parse::<Job>().unwrap().to_string(), text);
        }
        let error = "read,colour=red".parse::<Job>().unwrap_err().to_string();
        assert!(error.contains("'colour'"), "{error}");
        assert!("read,block_size=1000".parse::<Job>().is_err());
        assert!("read,clients=0".parse::<Job>().is_err());
    }
}
