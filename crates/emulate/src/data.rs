//! An emulated device's data, in a sparse file or in memory. What was never written reads as zeroes and
//! takes no space; what is discarded is freed.

use device::Op;
use rustix::fs::{
    FallocateFlags, FlockOperation, MemfdFlags, SeekFrom, fallocate, flock, ftruncate,
    memfd_create, seek,
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use units::Bytes;

/// Where data are to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    /// In memory that nobody else sees; gone with the server.
    Memory,
    /// In this file, which is there.
    File {
        /// Its path.
        path: PathBuf,
        /// Which file it has to be: another may come under its path at any moment.
        is: FileNumber,
    },
}

/// What tells a file from others of this boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNumber {
    device: u64,
    inode: u64,
}

impl Storage {
    /// In a file that is open.
    pub fn of(path: PathBuf, file: &File) -> io::Result<Storage> {
        Ok(Storage::File { path, is: FileNumber::of(file)? })
    }
}

impl FileNumber {
    fn of(file: &File) -> io::Result<FileNumber> {
        let known = file.metadata()?;
        Ok(FileNumber { device: known.dev(), inode: known.ino() })
    }
}

/// A device's data.
#[derive(Debug)]
pub struct Data {
    file: File,
    size: Bytes,
    in_memory: bool,
    /// Whether `power` is looked at.
    can_fail: AtomicBool,
    power: Mutex<Power>,
}

/// What a power failure would take.
#[derive(Debug, Default)]
struct Power {
    /// It has failed: what is written is gone.
    off: bool,
    /// What stood where something was written since the last flush, in that order.
    before: Vec<(u64, Vec<u8>)>,
}

/// What becomes of a change.
enum Change<'a> {
    /// The power cannot fail.
    Lasts,
    /// What was before is kept. The power fails only when this is dropped.
    Kept { _power: MutexGuard<'a, Power> },
    /// There is no power.
    Lost,
}

/// So much is copied within memory in some 20 µs. Observed.
const MAX_QUICK_COPY: Bytes = Bytes::from_kib(128);
/// The same for memory that is written for the first time.
const MAX_QUICK_FIRST_WRITE: Bytes = Bytes::from_kib(16);

impl Data {
    /// Opens the place, `size` long; nobody else may emulate on the same file.
    pub fn open(place: &Storage, size: Bytes) -> io::Result<Data> {
        let file = match place {
            Storage::Memory => File::from(memfd_create("spindle-data", MemfdFlags::CLOEXEC)?),
            Storage::File { path, is } => locked(path, *is)?,
        };
        if file.metadata()?.len() < size.0 {
            ftruncate(&file, size.0)?;
        }
        let in_memory = *place == Storage::Memory;
        Ok(Data {
            file,
            size,
            in_memory,
            can_fail: AtomicBool::new(false),
            power: Mutex::default(),
        })
    }

    /// How long they are.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Space that they take now.
    pub fn stored(&self) -> Bytes {
        Bytes(self.file.metadata().map_or(0, |meta| meta.blocks() * 512))
    }

    /// Whether a range lies inside.
    pub fn holds(&self, offset: u64, length: u64) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.size.0)
    }

    /// Whether moving the data is quicker than waking another thread for it. Files may block, and so may
    /// large pieces of memory that are written for the first time, or freed.
    pub fn is_quick(&self, op: Op, offset: u64, length: u64) -> bool {
        let there = |at| seek(&self.file, SeekFrom::Data(at)).is_ok_and(|data| data == at);
        self.in_memory
            && length <= MAX_QUICK_COPY.0
            && match op {
                Op::Read => true,
                Op::Write => {
                    length <= MAX_QUICK_FIRST_WRITE.0 || there(offset) && there(offset + length - 1)
                }
                Op::Flush | Op::Discard => false,
            }
    }

    /// Fills `buffer` from `offset`.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    /// Writes all of `bytes` at `offset`.
    pub fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self.keep_before(offset, bytes.len() as u64)? {
            Change::Lasts | Change::Kept { .. } => self.file.write_all_at(bytes, offset),
            Change::Lost => Ok(()),
        }
    }

    /// From now on the power can fail: what stands where something is written is kept until a flush.
    pub fn let_power_fail(&self) {
        self.can_fail.store(true, Ordering::Release);
    }

    /// All that was written before is on the medium.
    pub fn flushed(&self) {
        if self.can_fail.load(Ordering::Acquire) {
            self.locked_power().before.clear();
        }
    }

    /// The power fails: what was written since the last flush is gone, and so is what is written from now on.
    pub fn fail_power(&self) -> io::Result<()> {
        let mut power = self.locked_power();
        power.off = true;
        for (offset, bytes) in std::mem::take(&mut power.before).into_iter().rev() {
            self.file.write_all_at(&bytes, offset)?;
        }
        Ok(())
    }

    /// The power is back.
    pub fn restore_power(&self) {
        self.locked_power().off = false;
    }

    fn locked_power(&self) -> MutexGuard<'_, Power> {
        self.power.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what stands in a range that is about to change, where a power failure could take the change.
    fn keep_before(&self, offset: u64, length: u64) -> io::Result<Change<'_>> {
        if !self.can_fail.load(Ordering::Acquire) {
            return Ok(Change::Lasts);
        }
        let mut power = self.locked_power();
        if power.off {
            return Ok(Change::Lost);
        }
        let mut before = vec![0; length as usize];
        self.file.read_exact_at(&mut before, offset)?;
        power.before.push((offset, before));
        Ok(Change::Kept { _power: power })
    }

    /// Forgets a range: it reads as zeroes and takes no room.
    pub fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        match self.keep_before(offset, length)? {
            Change::Lasts | Change::Kept { .. } => {
                let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                Ok(fallocate(&self.file, how, offset, length)?)
            }
            Change::Lost => Ok(()),
        }
    }
}

/// Opens a file for reading and writing, and holds it against other servers.
fn locked(path: &Path, is: FileNumber) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    if FileNumber::of(&file)? != is {
        return Err(io::Error::other(
            "it is not the file that was made there: somebody who may write in its folder put another in its \
             place; name a folder in which only you and root may write",
        ));
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        io::Error::new(io::ErrorKind::ResourceBusy, "another emulated device has its data in it")
    })?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with this content.
    fn stored(path: &Path, content: &[u8]) -> Storage {
        std::fs::write(path, content).unwrap();
        Storage::of(path.to_owned(), &File::open(path).unwrap()).unwrap()
    }

    #[test]
    fn another_file_under_the_path_is_left_alone() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let [path, victim] = ["data", "victim"].map(|name| folder.path().join(name));
        let place = stored(&path, b"");
        std::fs::write(&victim, b"others' words").unwrap();
        std::fs::rename(&path, folder.path().join("away")).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        let error = Data::open(&place, Bytes::from_mib(1)).unwrap_err();
        assert!(error.to_string().contains("another in its place"), "{error}");
        assert_eq!(std::fs::read(&victim).unwrap(), b"others' words");
    }

    #[test]
    fn what_is_discarded_reads_as_zeroes_and_takes_no_room() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().join("data");
        for place in [Storage::Memory, stored(&path, b"")] {
            let data = Data::open(&place, Bytes::from_gib(300)).unwrap();
            let at = Bytes::from_gib(299).0;
            let mut buffer = vec![1; 1 << 20];
            data.read(&mut buffer, at).unwrap();
            assert!(buffer.iter().all(|byte| *byte == 0), "never written");
            data.write(&vec![7; 1 << 20], at).unwrap();
            data.read(&mut buffer, at).unwrap();
            assert!(buffer.iter().all(|byte| *byte == 7));
            assert!(data.stored().0 >= 1 << 20);
            data.punch(at, 1 << 20).unwrap();
            data.read(&mut buffer, at).unwrap();
            assert!(buffer.iter().all(|byte| *byte == 0));
            assert!(data.stored().0 < 1 << 20);
        }
    }

    #[test]
    fn a_power_failure_takes_what_was_not_flushed() {
        let data = Data::open(&Storage::Memory, Bytes::from_mib(1)).unwrap();
        let read = |at: u64| {
            let mut byte = [0];
            data.read(&mut byte, at).unwrap();
            byte[0]
        };
        data.write(&[1; 8192], 0).unwrap();
        data.let_power_fail();
        data.write(&[2; 4096], 0).unwrap();
        data.flushed();
        data.write(&[3; 4096], 0).unwrap();
        data.write(&[4; 6000], 2000).unwrap();
        data.punch(4096, 4096).unwrap();
        assert_eq!([0, 2000, 4096].map(read), [3, 4, 0]);
        data.fail_power().unwrap();
        assert_eq!([0, 2000, 4096, 8191].map(read), [2, 2, 1, 1]);
        data.write(&[5; 4096], 0).unwrap();
        assert_eq!(read(0), 2, "without power nothing is written");
        data.restore_power();
        data.write(&[6; 4096], 0).unwrap();
        assert_eq!(read(0), 6);
    }

    #[test]
    fn what_may_take_time_is_not_quick() {
        let data = Data::open(&Storage::Memory, Bytes::from_gib(1)).unwrap();
        let soon = |op, offset, length| data.is_quick(op, offset, length);
        assert!(soon(Op::Read, 0, 4096) && soon(Op::Read, 8192, 128 << 10));
        assert!(!soon(Op::Read, 0, 256 << 10), "large");
        assert!(soon(Op::Write, 0, 16 << 10), "never written, but little");
        assert!(!soon(Op::Write, 0, 32 << 10), "never written");
        data.write(&[1; 16 << 10], 0).unwrap();
        assert!(!soon(Op::Write, 0, 32 << 10), "a part was never written");
        data.write(&[1; 16 << 10], 16 << 10).unwrap();
        assert!(soon(Op::Write, 0, 32 << 10));
        assert!(!soon(Op::Discard, 4096, 4096));
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().join("data");
        let file = Data::open(&stored(&path, &[1; 4096]), Bytes::from_mib(1)).unwrap();
        assert!(!file.is_quick(Op::Read, 0, 4096), "a file's");
    }

    #[test]
    fn a_file_serves_one_device() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().join("data");
        let place = stored(&path, b"");
        let _first = Data::open(&place, Bytes::from_mib(1)).unwrap();
        assert!(Data::open(&place, Bytes::from_mib(1)).is_err());
    }
}
