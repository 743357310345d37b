//! The FUSE filesystem of a server: one file, whose bytes are a device's data and whose timing is the
//! model's.
//!
//! The file is opened for direct I/O, with parallel direct writes, or the kernel would let one write
//! in at a time. Data are moved when a request arrives; its answer leaves when the model is done.

use crate::{clock, data::Data, pacer::Pacer};
use device::Op;
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    SessionACL, WriteFlags,
};
use rustix::{
    mount::MountFlags,
    process::{getgid, getuid},
};
use std::{
    ffi::{CString, OsStr},
    io,
    os::fd::{AsRawFd, BorrowedFd},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, UNIX_EPOCH},
};
use units::{Bytes, Sectors};

/// The file's name below the mount point.
pub const FILE_NAME: &str = "disk";
/// What the mount table shows as its source.
pub const SOURCE: &str = "spindle-emulate";

/// The file's inode number.
pub const DISK: INodeNo = INodeNo(2);
/// The kernel may keep what it knows of the file: nothing changes. It also lets a loop device be asked
/// for its file when the server is gone.
pub const FOREVER: Duration = Duration::from_secs(1 << 31);
/// The largest request; the kernel's own limit is 256 pages (fs.fuse.max_pages_limit).
pub const MAX_REQUEST: Bytes = Bytes::from_mib(1);
/// RequestCounts that the kernel may have at the server at once: above any device's tags.
const MAX_BACKGROUND: u16 = 4096;
/// Buffers that are kept for the next reads.
const MAX_KEPT_BUFFERS: usize = 512;

/// An answer that waits for the model.
#[derive(Debug)]
pub enum FuseReply {
    /// Of a read, with its data.
    Read(ReplyData, Vec<u8>),
    /// Of a write of so many bytes.
    Write(ReplyWrite, u32),
    /// Of anything else.
    Done(ReplyEmpty),
}

/// Buffers of answered reads.
#[derive(Debug, Default)]
pub struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    fn get(&self, length: usize) -> Vec<u8> {
        let mut buffer =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        buffer.resize(length, 0);
        buffer
    }

    fn put(&self, buffer: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_KEPT_BUFFERS {
            kept.push(buffer);
        }
    }

    /// Gives an answer to the kernel; one that lay outside the device is an I/O error.
    pub fn answer(&self, answer: FuseReply, inside: bool) {
        match answer {
            FuseReply::Read(reply, buffer) => {
                match inside {
                    true => reply.data(&buffer),
                    false => reply.error(Errno::EIO),
                }
                self.put(buffer);
            }
            FuseReply::Write(reply, length) => match inside {
                true => reply.written(length),
                false => reply.error(Errno::EIO),
            },
            FuseReply::Done(reply) => match inside {
                true => reply.ok(),
                false => reply.error(Errno::EIO),
            },
        }
    }
}

/// The filesystem of one file.
#[derive(Debug)]
pub struct OneFile {
    /// The bytes.
    pub data: Arc<Data>,
    /// The timing.
    pub pacer: Arc<Pacer<FuseReply>>,
    /// Kept buffers.
    pub buffers: Arc<Buffers>,
}

/// How it is mounted, and read by how many threads.
pub fn config(threads: usize) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(SOURCE.to_owned()),
        MountOption::NoExec,
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoAtime,
    ];
    config.acl = SessionACL::Owner;
    config.n_threads = Some(threads);
    config.clone_fd = threads > 1;
    config
}

/// Mounts a connection, that [`fuser`] then begins.
pub fn mount(point: &Path, device: BorrowedFd<'_>) -> io::Result<()> {
    let how = MountFlags::NOEXEC | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOATIME;
    let data = format!(
        "fd={},rootmode=40000,user_id={},group_id={}",
        device.as_raw_fd(),
        getuid().as_raw(),
        getgid().as_raw()
    );
    let data = CString::new(data)?;
    Ok(rustix::mount::mount(SOURCE, point, "fuse", how, Some(data.as_c_str()))?)
}

impl OneFile {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let disk = inode == DISK;
        FileAttr {
            ino: inode,
            size: if disk { self.data.size().0 } else { 0 },
            blocks: if disk { self.data.size().0 / 512 } else { 0 },
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if disk { FileType::RegularFile } else { FileType::Directory },
            perm: if disk { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

/// The sectors that a range of bytes touches.
pub fn sectors(offset: u64, length: u64) -> (Sectors, Sectors) {
    let first = offset / 512;
    (Sectors(first), Sectors((offset + length).div_ceil(512) - first))
}

/// What the kernel and a server agree on, `more` included.
fn agree(config: &mut KernelConfig, more: InitFlags) -> io::Result<()> {
    let wanted = InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_ASYNC_READ | more;
    config.add_capabilities(wanted).map_err(|missing| {
        io::Error::new(io::ErrorKind::Unsupported, format!("this kernel's FUSE lacks {missing:?}"))
    })?;
    let refused = |_| io::Error::other("the kernel takes no requests of 1 MiB");
    config.set_max_write(MAX_REQUEST.0 as u32).map_err(refused)?;
    // Where less is allowed, less is in flight; the model says how much was.
    let _ = config.set_max_background(MAX_BACKGROUND);
    let _ = config.set_congestion_threshold(MAX_BACKGROUND);
    Ok(())
}

/// What the kernel still asks the connection itself for where requests come over io_uring.
#[derive(Debug)]
pub struct Rest;

impl Filesystem for Rest {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        agree(config, InitFlags::FUSE_OVER_IO_URING)
    }
}

impl Filesystem for OneFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        agree(config, InitFlags::empty())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match parent == INodeNo::ROOT && name == FILE_NAME {
            true => reply.entry(&FOREVER, &self.attributes(DISK), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match inode == INodeNo::ROOT || inode == DISK {
            true => reply.attr(&FOREVER, &self.attributes(inode)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // The block size is what the loop device makes its discard granularity.
        reply.statfs(self.data.size().0 / 4096, 0, 0, 1, 0, 4096, 255, 4096);
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (DISK, FileType::RegularFile, FILE_NAME),
        ];
        for (place, (inode, kind, name)) in entries.iter().enumerate().skip(offset as usize) {
            if reply.add(*inode, place as u64 + 1, *kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match inode == DISK {
            true => reply.opened(
                FileHandle(0),
                FopenFlags::FOPEN_DIRECT_IO
                    | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
                    | FopenFlags::FOPEN_NOFLUSH,
            ),
            false => reply.error(Errno::EISDIR),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let came = clock::now();
        let left = self.data.size().0.saturating_sub(offset);
        let length = left.min(u64::from(size));
        if length == 0 {
            return reply.data(&[]);
        }
        let mut buffer = self.buffers.get(length as usize);
        if let Err(error) = self.data.read(&mut buffer, offset) {
            return reply.error(error.into());
        }
        let (start, count) = sectors(offset, length);
        self.pacer.submit(came, Op::Read, start, count, false, FuseReply::Read(reply, buffer));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let came = clock::now();
        if !self.data.holds(offset, bytes.len() as u64) {
            return reply.error(Errno::ENOSPC);
        }
        if let Err(error) = self.data.write(bytes, offset) {
            return reply.error(error.into());
        }
        let (start, count) = sectors(offset, bytes.len() as u64);
        let answer = FuseReply::Write(reply, bytes.len() as u32);
        self.pacer.submit(came, Op::Write, start, count, false, answer);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // The close of a descriptor, not the flush of a device: that is fsync.
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let nothing = Sectors(0);
        self.data.flushed();
        self.pacer.submit(clock::now(), Op::Flush, nothing, nothing, false, FuseReply::Done(reply));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let came = clock::now();
        let frees = mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0;
        if !frees || !self.data.holds(offset, length) || length == 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        if let Err(error) = self.data.punch(offset, length) {
            return reply.error(error.into());
        }
        let (start, count) = sectors(offset, length);
        self.pacer.submit(came, Op::Discard, start, count, false, FuseReply::Done(reply));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_the_sectors_that_they_touch() {
        assert_eq!(sectors(0, 4096), (Sectors(0), Sectors(8)));
        assert_eq!(sectors(512, 512), (Sectors(1), Sectors(1)));
        assert_eq!(sectors(700, 100), (Sectors(1), Sectors(1)));
        assert_eq!(sectors(700, 400), (Sectors(1), Sectors(2)));
    }
}
