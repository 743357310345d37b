//! Writes that are made durable one at a time, as a log's are, each timed.
//!
//! Not a job of [`run`](crate::run()): each writer has a file of its own, which may grow.

use crate::buffer::Buffers;
use crate::engines::{Action, Engine, Operation, sync::Sync};
use crate::error::{LoadError, Stage};
use crate::target::{Target, open, operation_flags, write_flags};
use random::Stream;
use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    path::Path,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};
use units::{Bytes, Nanos};
use workload::{AfterWrite, SyncMode};

/// What to write, and how.
#[derive(Clone, Copy, Debug)]
pub struct CommitSpec<'a> {
    /// A file a writer.
    pub files: &'a [Target],
    /// Where in them.
    pub place: Place,
    /// Bytes of a write.
    pub block: Bytes,
    /// How a write is made durable; a call follows each write.
    pub sync: SyncMode,
    /// A writer begins no further write after this.
    pub time: Nanos,
    /// Nor after so many writes.
    pub writes_max: u64,
    /// Decides the data.
    pub seed: u64,
}

/// Where writes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// One after the other in `[0, size)`, and again from the beginning. The file has that size already.
    InPlace(Bytes),
    /// At the end of a file that is empty at first and grows to no more than this.
    Appended(Bytes),
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commits {
    /// What each write took until it was durable, of all writers.
    pub times: Vec<Nanos>,
    /// The writers' rates, added up.
    pub per_second: f64,
}

/// Writes and times. [`settle`] the files afterwards, so that what one way of writing leaves to the kernel is no
/// part of another's times.
///
/// # Errors
///
/// What the first writer that failed met; [`LoadError::Stopped`] when `stop` became true.
pub fn commits(spec: &CommitSpec, stop: &AtomicBool) -> Result<Commits, LoadError> {
    let barrier = Barrier::new(spec.files.len());
    let outcomes: Vec<Result<Written, LoadError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = spec
            .files
            .iter()
            .enumerate()
            .map(|(number, file)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let writer = Writer::new(spec, file, number);
                    // Also when it could not be made: others wait for it.
                    barrier.wait();
                    writer.and_then(|mut writer| writer.work(stop))
                })
            })
            .collect();
        let ended = threads.into_iter().enumerate().map(|(client, thread)| {
            let how = || LoadError::Died { client, how: "a panic".to_owned() };
            thread.join().unwrap_or_else(|_| Err(how()))
        });
        ended.collect()
    });
    let mut all = Commits::default();
    for outcome in outcomes {
        let Written { times, elapsed } = outcome?;
        all.per_second += times.len() as f64 / elapsed.as_secs_f64().max(1e-9);
        all.times.extend(times);
    }
    match stop.load(Relaxed) {
        true => Err(LoadError::Stopped),
        false => Ok(all),
    }
}

/// Makes what is in the files durable; those that grow are emptied.
pub fn settle(spec: &CommitSpec) -> Result<(), LoadError> {
    for target in spec.files {
        let wrong =
            |doing| move |source| LoadError::Target { doing, path: target.path.clone(), source };
        let file = File::options().write(true).open(target.open_path()).map_err(wrong("open"))?;
        match spec.place {
            Place::InPlace(_) => file.sync_data().map_err(wrong("sync"))?,
            Place::Appended(_) => {
                file.set_len(0).and_then(|()| file.sync_all()).map_err(wrong("empty"))?;
            }
        }
    }
    Ok(())
}

struct Writer<'a> {
    spec: &'a CommitSpec<'a>,
    path: &'a Path,
    engine: Sync,
    buffers: Buffers,
}

struct Written {
    times: Vec<Nanos>,
    elapsed: Nanos,
}

impl<'a> Writer<'a> {
    fn new(spec: &'a CommitSpec, target: &'a Target, number: usize) -> Result<Self, LoadError> {
        let flags = libc::O_WRONLY | libc::O_CLOEXEC | write_flags(spec.sync);
        let path = target.path.as_path();
        let file: OwnedFd = open(&target.open_path(), flags)
            .map_err(|source| LoadError::Target { doing: "open", path: path.to_owned(), source })?;
        let mut stream = Stream::new(spec.seed, &format!("writer {number} data"));
        let buffers = Buffers::new(spec.block.0, 1, (false, true), &mut stream);
        let buffers = buffers.map_err(|error| LoadError::Client {
            client: number,
            stage: Stage::Allocate,
            errno: errno(&error),
        })?;
        Ok(Writer { spec, path, engine: Sync::new(file, operation_flags(spec.sync)), buffers })
    }

    fn work(&mut self, stop: &AtomicBool) -> Result<Written, LoadError> {
        let CommitSpec { place, block, sync, time, writes_max, .. } = *self.spec;
        let span = match place {
            Place::InPlace(size) | Place::Appended(size) => size.0 / block.0,
        };
        let writes_max = match place {
            Place::InPlace(_) => writes_max,
            Place::Appended(_) => writes_max.min(span),
        };
        let after = match sync.after {
            AfterWrite::None => None,
            AfterWrite::Fsync => Some(Action::Fsync),
            AfterWrite::Fdatasync => Some(Action::Fdatasync),
        };
        let begun = Instant::now();
        let mut times = Vec::new();
        // At least one, however slow: an answer of one is more than none.
        while (times.len() as u64) < writes_max
            && (times.is_empty() || Nanos::from(begun.elapsed()) < time)
            && !stop.load(Relaxed)
        {
            let offset = (times.len() as u64 % span.max(1)) * block.0;
            let buffer = self.buffers.write_from(0, block.0 as u32);
            let start = Instant::now();
            self.operate(Action::Write, offset, buffer)?;
            if let Some(action) = after {
                self.operate(action, offset, buffer)?;
            }
            times.push(Nanos::from(start.elapsed()));
        }
        Ok(Written { times, elapsed: Nanos::from(begun.elapsed()) })
    }

    fn operate(&mut self, action: Action, offset: u64, buffer: *mut u8) -> Result<(), LoadError> {
        let length = self.spec.block.0 as u32;
        let stage = if action == Action::Write { Stage::Write } else { Stage::Sync };
        let failed = |errno| LoadError::Operation {
            path: self.path.to_owned(),
            stage,
            offset: Bytes(offset),
            errno,
        };
        let mut done = Vec::with_capacity(1);
        // SAFETY: the buffer has the block's length, is this writer's, and the engine is done with it when it
        // has been reaped.
        unsafe { self.engine.submit(Operation { action, offset, buffer, length }, 0) };
        self.engine.reap(None, &mut done).map_err(|error| failed(errno(&error)))?;
        match done.first().map(|done| done.result) {
            Some(result) if result < 0 => Err(failed(-result)),
            // A file that is written short has no room for the rest.
            Some(result) if action == Action::Write && result as u32 != length => {
                Err(failed(libc::ENOSPC))
            }
            _ => Ok(()),
        }
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
