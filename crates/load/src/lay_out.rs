//! Laying a file out: writing all of it, with random data, so that later reads find data and later
//! writes overwrite instead of allocating.

use crate::error::LoadError;
use crate::target::{DirectAlignment, Target, direct_alignment, open, size_of};
use random::Stream;
use std::{
    ffi::CString,
    fs::{self, File},
    io,
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, fs::FileExt, fs::FileTypeExt, fs::MetadataExt},
    },
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};
use units::Bytes;

/// Bytes to a write.
const CHUNK: usize = 1 << 20;
/// What must stay free beside the file, at least.
const MIN_MARGIN: Bytes = Bytes::from_mib(64);

/// What to lay out.
#[derive(Clone, Copy, Debug)]
pub struct LayOut<'a> {
    /// A file to make, an empty one that is held, or a block device to write over. A device is written only in
    /// `[0, size)`; that it may be is for the caller to make sure.
    pub target: &'a Target,
    /// Decides the data.
    pub seed: u64,
    /// The caller knows that what is there is its own and was laid out to the end. A file is used again
    /// if its size fits and all of it is allocated, else written again; a device, which cannot be asked,
    /// is used again. Without this, a file that exists is an error, and a device is written over.
    pub reuse: bool,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaidOut {
    /// All was written.
    Written,
    /// What was there is used again.
    Reused,
}

/// Writes `size` random bytes and makes them durable, past the page cache where the filesystem
/// allows. `progress` gets the bytes written, about every mebibyte. When `stop` becomes true, or
/// the filesystem becomes full, or anything else goes wrong, what was made is removed (of a device,
/// nothing can be; a file that is held is empty again).
pub fn lay_out(
    plan: &LayOut,
    progress: &mut dyn FnMut(Bytes),
    stop: &AtomicBool,
) -> Result<LaidOut, LoadError> {
    let wrong =
        |doing| move |source| LoadError::Target { doing, path: plan.target.path.clone(), source };
    let path = plan.target.open_path();
    let existing = match fs::metadata(&path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(wrong("look at")(error)),
    };
    let is_device = existing.as_ref().is_some_and(|known| known.file_type().is_block_device());
    match &existing {
        Some(known) if plan.reuse && (is_device || is_complete(known, plan.target.size)) => {
            return Ok(LaidOut::Reused);
        }
        Some(known) if !(is_device || may_be_written(plan, known)) => {
            return Err(LoadError::Refused(format!(
                "{} exists, and is not known to be a file that was laid out for this: remove it or \
                 name another",
                plan.target.path.display()
            )));
        }
        _ => {}
    }
    if !is_device {
        let allocated = existing.as_ref().map_or(0, |known| known.blocks() * 512);
        check_space(plan, Bytes(allocated))?;
    }
    let file = create(plan, is_device).map_err(wrong("create"))?;
    let outcome = write_all(plan, &file, is_device, progress, stop);
    if outcome.is_ok() {
        return Ok(LaidOut::Written);
    }
    let removed = !is_device
        && match &plan.target.held {
            // Its name is for those who made it to take away.
            Some(_) => file.set_len(0).is_ok(),
            None => fs::remove_file(&path).is_ok(),
        };
    drop(file);
    Err(match outcome {
        Err(Trouble::Stopped) => LoadError::Stopped,
        Err(Trouble::Failed { written, error })
            if !is_device && matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT)) =>
        {
            LoadError::Full {
                path: plan.target.path.clone(),
                written,
                size: plan.target.size,
                removed,
            }
        }
        Err(Trouble::Failed { error, .. }) => wrong("write")(error),
        Ok(()) => return Ok(LaidOut::Written),
    })
}

/// Whether a file that is there may be written: one that was made for this.
fn may_be_written(plan: &LayOut, known: &fs::Metadata) -> bool {
    known.is_file() && (plan.reuse || plan.target.held.is_some() && known.len() == 0)
}

/// Whether a regular file has the size and no holes. Filesystems that compress or share blocks do
/// not account for them in this way, so a little less allocated counts as a hole: written again.
fn is_complete(known: &fs::Metadata, size: Bytes) -> bool {
    known.is_file() && known.len() == size.0 && known.blocks() * 512 >= size.0
}

fn check_space(plan: &LayOut, allocated: Bytes) -> Result<(), LoadError> {
    let path = plan.target.open_path();
    let asked = match (&plan.target.held, path.parent()) {
        (Some(_), _) => path.as_path(),
        (None, Some(parent)) if !parent.as_os_str().is_empty() => parent,
        (None, _) => Path::new("."),
    };
    let free = free_space(asked).map_err(|source| LoadError::Target {
        doing: "find the free space of",
        path: plan.target.path.clone(),
        source,
    })?;
    // A hundredth for the filesystem's own needs.
    let margin = MIN_MARGIN.max(Bytes(plan.target.size.0 / 100));
    let needed = Bytes(plan.target.size.0.saturating_sub(allocated.0)) + margin;
    if free >= needed {
        return Ok(());
    }
    Err(LoadError::NoSpace { path: plan.target.path.clone(), size: plan.target.size, margin, free })
}

/// Bytes that somebody without privileges could still write where a file or a folder is.
fn free_space(path: &Path) -> io::Result<Bytes> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: zeroes are a valid statvfs, and the call fills it.
    unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        match libc::statvfs(path.as_ptr(), &mut about) {
            0 => Ok(Bytes(about.f_bavail * about.f_frsize)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Opens it for writing: a new file exclusively, so that nobody's file and nobody's link is followed
/// by surprise; with O_DIRECT where that works.
fn create(plan: &LayOut, is_device: bool) -> io::Result<File> {
    let path = plan.target.open_path();
    let mut flags = libc::O_WRONLY | libc::O_CLOEXEC;
    if !is_device && plan.target.held.is_none() {
        if plan.reuse {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        flags |= libc::O_CREAT | libc::O_EXCL;
    }
    let file = File::from(open(&path, flags)?);
    let direct = match direct_alignment(&path) {
        Ok(DirectAlignment::Multiple(multiple)) => (CHUNK as u64).is_multiple_of(multiple.0),
        Ok(DirectAlignment::Unknown) => true,
        _ => false,
    };
    if direct {
        // SAFETY: integers only. Where the filesystem refuses, the file stays buffered.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_DIRECT) };
    }
    Ok(file)
}

enum Trouble {
    Stopped,
    Failed { written: Bytes, error: io::Error },
}

fn write_all(
    plan: &LayOut,
    file: &File,
    is_device: bool,
    progress: &mut dyn FnMut(Bytes),
    stop: &AtomicBool,
) -> Result<(), Trouble> {
    let failed = |written| move |error| Trouble::Failed { written: Bytes(written), error };
    if is_device {
        let there =
            size_of(&File::open(plan.target.open_path()).map_err(failed(0))?).map_err(failed(0))?;
        if there < plan.target.size {
            let error = io::Error::other(format!("the device has only {there}"));
            return Err(failed(0)(error));
        }
    }
    let mut stream = Stream::new(plan.seed, "lay out");
    let mut chunk = AlignedChunk::new();
    let mut written = 0;
    while written < plan.target.size.0 {
        if stop.load(Relaxed) {
            return Err(Trouble::Stopped);
        }
        stream.fill(chunk.bytes());
        let length = (plan.target.size.0 - written).min(CHUNK as u64) as usize;
        write_chunk(file, &chunk.bytes()[..length], written).map_err(failed(written))?;
        written += length as u64;
        progress(Bytes(written));
    }
    file.sync_all().map_err(failed(written))?;
    // Where it went through the page cache after all, that must not help the first reader.
    // SAFETY: integers only; advice.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    Ok(())
}

/// Writes, and where O_DIRECT is refused after all (an odd tail, a filesystem that only says so
/// now), goes on through the page cache.
fn write_chunk(file: &File, data: &[u8], offset: u64) -> io::Result<()> {
    match file.write_all_at(data, offset) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            // SAFETY: integers only.
            unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) };
            file.write_all_at(data, offset)
        }
        outcome => outcome,
    }
}

/// Memory aligned for O_DIRECT.
#[derive(Clone)]
#[repr(C, align(4096))]
struct AlignedPage([u8; 4096]);

struct AlignedChunk(Vec<AlignedPage>);

impl AlignedChunk {
    fn new() -> Self {
        AlignedChunk(vec![AlignedPage([0; 4096]); CHUNK / 4096])
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: pages lie one after another without gaps, as their size is their alignment.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), CHUNK) }
    }
}
