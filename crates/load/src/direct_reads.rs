//! Single reads of a file or a device, past the page cache, each timed: for looking at a device, not for load.

use crate::buffer::Buffers;
use random::Stream;
use std::{
    fs::{File, OpenOptions},
    io,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};
use units::Nanos;

/// A read to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectRead {
    /// Where, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
    /// How long to wait before it is sent.
    pub pause: Duration,
}

/// A file or a device, open for reading past the page cache.
#[derive(Debug)]
pub struct DirectReads {
    file: File,
}

impl DirectReads {
    /// Opens it; nothing can be written through it.
    pub fn open(path: &Path) -> io::Result<DirectReads> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
        Ok(DirectReads { file })
    }

    /// Sends the reads in their order, `depth` outstanding at a time, each from a thread of its own. Returns
    /// each read's time and the time of all. A thread's turn to take the next read is a few microseconds, which
    /// is not in a read's time.
    pub fn send(&self, reads: &[DirectRead], depth: u32) -> io::Result<(Vec<Nanos>, Nanos)> {
        let longest = reads.iter().map(|read| read.length).max().unwrap_or(0).max(1);
        let threads = (depth.max(1) as usize).min(reads.len().max(1));
        let next = AtomicUsize::new(0);
        let began = Instant::now();
        let parts: Vec<io::Result<Vec<(usize, Nanos)>>> = std::thread::scope(|scope| {
            let work = || self.take_turns(reads, &next, longest);
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = others.into_iter().map(|other| {
                other.join().unwrap_or_else(|_| Err(io::Error::other("a reading thread ended")))
            });
            std::iter::once(own).chain(others).collect()
        });
        let elapsed = Nanos(began.elapsed().as_nanos() as u64);
        let mut times = vec![Nanos::ZERO; reads.len()];
        for part in parts {
            for (at, time) in part? {
                times[at] = time;
            }
        }
        Ok((times, elapsed))
    }

    fn take_turns(
        &self,
        reads: &[DirectRead],
        next: &AtomicUsize,
        longest: u64,
    ) -> io::Result<Vec<(usize, Nanos)>> {
        let mut buffer = Buffers::new(longest, 1, (true, false), &mut Stream::new(0, "unused"))?;
        let mut times = Vec::new();
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(read) = reads.get(at) else { return Ok(times) };
            if !read.pause.is_zero() {
                std::thread::sleep(read.pause);
            }
            let began = Instant::now();
            let into = buffer.read_into(0);
            // SAFETY: the buffer holds `longest` bytes, at least the read's, and only this thread uses it.
            let got = unsafe {
                libc::pread(
                    self.file.as_raw_fd(),
                    into.cast(),
                    read.length as usize,
                    read.offset as libc::off_t,
                )
            };
            times.push((at, Nanos(began.elapsed().as_nanos() as u64)));
            match u64::try_from(got) {
                Err(_) => return Err(io::Error::last_os_error()),
                Ok(got) if got < read.length => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => (),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_sent_in_turn_and_timed() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let reads = DirectReads::open(file.path()).unwrap();
        let pause = Duration::from_millis(20);
        let four: Vec<DirectRead> =
            (0..4).map(|at| DirectRead { offset: at << 12, length: 4096, pause }).collect();
        let (times, elapsed) = reads.send(&four, 1).unwrap();
        assert_eq!(times.len(), 4);
        assert!(times.iter().all(|time| *time > Nanos::ZERO) && elapsed >= Nanos::from_millis(80));
        // Four threads wait at the same time.
        let (_, together) = reads.send(&four, 4).unwrap();
        assert!(together < elapsed, "{together} for {elapsed}");
        let beyond = DirectRead { offset: 1 << 20, length: 4096, pause: Duration::ZERO };
        assert_eq!(reads.send(&[beyond], 1).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
