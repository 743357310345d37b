//! FUSE over io_uring (fuse-io-uring.rst in the kernel's documentation, Linux 6.14): the kernel lays
//! each request of the one file into an entry that a command gave it, and each answer is the next
//! command of its entry.

use crate::{
    filesystem::{DISK, FILE_NAME, FOREVER, MAX_REQUEST},
    mailbox::Answer,
    queue::{Asked, Mapping, QueueTransport},
};
use device::Op;
use fuser::FopenFlags;
use io_uring::{opcode, squeue::Entry128, types::Fd};
use std::{
    ffi::OsStr,
    io,
    os::fd::{AsRawFd, OwnedFd},
    os::unix::ffi::OsStrExt,
    ptr,
};
use units::Bytes;

// The numbers and structures of linux/fuse.h.
const CMD_REGISTER: u32 = 1;
const CMD_COMMIT_AND_FETCH: u32 = 2;

const LOOKUP: u32 = 1;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const WRITE: u32 = 16;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
const FSYNC: u32 = 20;
const FLUSH: u32 = 25;
const FALLOCATE: u32 = 43;

const ROOT: u64 = 1;

/// A ring takes 32768 commands; one is for the mailbox.
const MAX_COMMANDS: u32 = 32_000;

/// `struct fuse_uring_req_header`: what comes before a request's payload, and before an answer's.
#[repr(C)]
struct Header {
    /// `struct fuse_in_header`, and then `struct fuse_out_header`.
    common: Common,
    /// What is peculiar to the operation.
    op: [u8; 128],
    flags: u64,
    commit: u64,
    payload: u32,
    padding: u32,
    reserved: u64,
}

#[repr(C)]
union Common {
    asked: InHeader,
    answer: OutHeader,
    room: [u8; 128],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct InHeader {
    len: u32,
    opcode: u32,
    unique: u64,
    node: u64,
    uid: u32,
    gid: u32,
    pid: u32,
    extensions: u16,
    padding: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct OutHeader {
    len: u32,
    error: i32,
    unique: u64,
}

/// The beginning of `struct fuse_read_in` and of `struct fuse_write_in`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Span {
    handle: u64,
    offset: u64,
    size: u32,
}

/// The beginning of `struct fuse_fallocate_in`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FallocateIn {
    handle: u64,
    offset: u64,
    length: u64,
    mode: i32,
}

/// `struct fuse_attr`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    ino: u64,
    size: u64,
    blocks: u64,
    times: [u64; 3],
    times_nanos: [u32; 3],
    mode: u32,
    links: u32,
    uid: u32,
    gid: u32,
    rdev: u32,
    block_size: u32,
    flags: u32,
}

/// `struct fuse_entry_out`.
#[repr(C)]
struct EntryOut {
    node: u64,
    generation: u64,
    entry_valid: u64,
    attr_valid: u64,
    entry_valid_nanos: u32,
    attr_valid_nanos: u32,
    attributes: Attributes,
}

/// `struct fuse_attr_out`.
#[repr(C)]
struct AttrOut {
    valid: u64,
    valid_nanos: u32,
    dummy: u32,
    attributes: Attributes,
}

/// `struct fuse_open_out`.
#[repr(C)]
struct OpenOut {
    handle: u64,
    flags: u32,
    backing: i32,
}

/// `struct fuse_statfs_out`.
#[repr(C)]
#[derive(Default)]
struct StatfsOut {
    blocks: u64,
    free: u64,
    available: u64,
    files: u64,
    files_free: u64,
    block_size: u32,
    name_length: u32,
    fragment: u32,
    padding: u32,
    spare: [u32; 6],
}

/// `struct fuse_write_out`.
#[repr(C)]
struct WriteOut {
    size: u32,
    padding: u32,
}

/// The kernel's side of a mounted file: an entry for each tag.
pub struct Entries {
    device: OwnedFd,
    headers: Mapping,
    payloads: Mapping,
    /// Where the kernel is told of headers and payloads.
    places: Vec<[libc::iovec; 2]>,
    /// Entries of each of the kernel's queues, of which there is one a processor.
    each: u32,
    queues: u32,
    size: Bytes,
}

impl Entries {
    /// On the connection `device`, with room for as many requests as may be there at once.
    pub fn new(device: OwnedFd, tags: u32, size: Bytes) -> io::Result<Entries> {
        let queues = possible_processors()?;
        let each = tags.min(MAX_COMMANDS / queues).max(1);
        let count = (queues * each) as usize;
        let headers = Mapping::of_memory(count * size_of::<Header>())?;
        let payloads = Mapping::of_memory(count * MAX_REQUEST.0 as usize)?;
        let mut entries =
            Entries { device, headers, payloads, places: Vec::new(), each, queues, size };
        for tag in 0..queues * each {
            let header =
                libc::iovec { iov_base: entries.header(tag).cast(), iov_len: size_of::<Header>() };
            let payload = libc::iovec {
                iov_base: entries.buffer(tag).cast(),
                iov_len: MAX_REQUEST.0 as usize,
            };
            entries.places.push([header, payload]);
        }
        Ok(entries)
    }

    fn header(&self, tag: u32) -> *mut Header {
        // SAFETY: there is one for each tag.
        unsafe { self.headers.start.as_ptr().cast::<Header>().add(tag as usize) }
    }

    fn command(&self, number: u32, tag: u32, commit: u64) -> opcode::UringCmd80 {
        // `struct fuse_uring_cmd_req`: flags, commit_id, qid.
        let mut words = [0; 80];
        words[8..16].copy_from_slice(&commit.to_ne_bytes());
        words[16..18].copy_from_slice(&((tag / self.each) as u16).to_ne_bytes());
        opcode::UringCmd80::new(Fd(self.device.as_raw_fd()), number).cmd(words)
    }

    /// The payload's beginning as an answer's structure.
    fn lay<T>(&mut self, tag: u32, answer: T) -> Result<Asked, i32> {
        // SAFETY: the tag's own payload, which begins a page and is longer; ours until its answer.
        unsafe { self.buffer(tag).cast::<T>().write(answer) };
        Ok(Asked::Answered(size_of::<T>() as i32))
    }

    fn attributes(&self, node: u64) -> Attributes {
        let disk = node == DISK.0;
        let size = if disk { self.size.0 } else { 0 };
        Attributes {
            ino: node,
            size,
            blocks: size / 512,
            mode: if disk { libc::S_IFREG | 0o600 } else { libc::S_IFDIR | 0o700 },
            links: 1,
            block_size: 4096,
            ..Attributes::default()
        }
    }

    /// What is asked, or the number of an error.
    fn asked(&mut self, tag: u32, asked: InHeader) -> Result<Asked, i32> {
        let header = self.header(tag);
        // SAFETY: the kernel wrote the header before it completed the command, and does not touch it before
        // the answer.
        let (words, payload) = unsafe { (&raw const (*header).op, (*header).payload as usize) };
        let model = |op, offset, length| Ok(Asked::Model { op, offset, length, fua: false });
        match asked.opcode {
            READ => {
                // SAFETY: a read's header has these words; any bytes are some.
                let span = unsafe { words.cast::<Span>().read_unaligned() };
                match self.size.0.saturating_sub(span.offset).min(u64::from(span.size)) {
                    0 => Ok(Asked::Answered(0)),
                    length => model(Op::Read, span.offset, length),
                }
            }
            WRITE => {
                // SAFETY: as above.
                let span = unsafe { words.cast::<Span>().read_unaligned() };
                match span.size as usize <= payload {
                    true => model(Op::Write, span.offset, u64::from(span.size)),
                    false => Err(libc::EINVAL),
                }
            }
            FSYNC => model(Op::Flush, 0, 0),
            FALLOCATE => {
                // SAFETY: as above.
                let FallocateIn { offset, length, mode, .. } =
                    unsafe { words.cast::<FallocateIn>().read_unaligned() };
                let frees = mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0;
                match frees && length > 0 {
                    true => model(Op::Discard, offset, length),
                    false => Err(libc::EOPNOTSUPP),
                }
            }
            LOOKUP => {
                // SAFETY: the tag's own payload, a name with its zero.
                let name = unsafe { std::slice::from_raw_parts(self.buffer(tag), payload) };
                let name = OsStr::from_bytes(name.strip_suffix(&[0]).unwrap_or(name));
                if asked.node != ROOT || name != FILE_NAME {
                    return Err(libc::ENOENT);
                }
                self.lay(
                    tag,
                    EntryOut {
                        node: DISK.0,
                        generation: 0,
                        entry_valid: FOREVER.as_secs(),
                        attr_valid: FOREVER.as_secs(),
                        entry_valid_nanos: 0,
                        attr_valid_nanos: 0,
                        attributes: self.attributes(DISK.0),
                    },
                )
            }
            GETATTR if asked.node == ROOT || asked.node == DISK.0 => self.lay(
                tag,
                AttrOut {
                    valid: FOREVER.as_secs(),
                    valid_nanos: 0,
                    dummy: 0,
                    attributes: self.attributes(asked.node),
                },
            ),
            OPEN if asked.node == DISK.0 => {
                let flags = FopenFlags::FOPEN_DIRECT_IO
                    | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
                    | FopenFlags::FOPEN_NOFLUSH;
                self.lay(tag, OpenOut { handle: 0, flags: flags.bits(), backing: 0 })
            }
            STATFS => self.lay(
                tag,
                StatfsOut {
                    blocks: self.size.0 / 4096,
                    files: 1,
                    block_size: 4096,
                    name_length: 255,
                    fragment: 4096,
                    ..StatfsOut::default()
                },
            ),
            RELEASE | FLUSH => Ok(Asked::Answered(0)),
            _ => Err(libc::ENOSYS),
        }
    }
}

impl QueueTransport for Entries {
    fn tags(&self) -> u32 {
        self.queues * self.each
    }

    fn first(&mut self, tag: u32) -> Entry128 {
        let places = self.places[tag as usize].as_ptr();
        let mut entry = self.command(CMD_REGISTER, tag, 0).addr(Some(places as u64)).build();
        /// Where `len` is in `struct io_uring_sqe`, which the library does not set for commands.
        const LEN_AT: usize = 24;
        // SAFETY: an entry is 128 bytes, as the kernel has them, and `len` takes any.
        unsafe { ptr::from_mut(&mut entry).cast::<u8>().add(LEN_AT).cast::<u32>().write(2) };
        entry
    }

    fn answer(&mut self, answer: Answer) -> Entry128 {
        let header = self.header(answer.tag);
        // SAFETY: ours until the kernel takes the answer; what was asked is still in it.
        let asked = unsafe { (*header).common.asked };
        let mut payload = answer.result.max(0) as u32;
        if asked.opcode == WRITE && answer.result >= 0 {
            let written = WriteOut { size: payload, padding: 0 };
            // SAFETY: the tag's own payload, whose data have been moved.
            unsafe { self.buffer(answer.tag).cast::<WriteOut>().write(written) };
            payload = size_of::<WriteOut>() as u32;
        }
        let len = size_of::<OutHeader>() as u32 + payload;
        let out = OutHeader { len, error: answer.result.min(0), unique: asked.unique };
        // SAFETY: as above.
        let commit = unsafe {
            (*header).common.answer = out;
            (*header).payload = payload;
            (*header).commit
        };
        self.command(CMD_COMMIT_AND_FETCH, answer.tag, commit).build()
    }

    fn accept(&mut self, tag: u32) -> Asked {
        // SAFETY: the kernel wrote it before it completed the command.
        let asked = unsafe { (*self.header(tag)).common.asked };
        self.asked(tag, asked).unwrap_or_else(|number| Asked::Answered(-number))
    }

    fn buffer(&self, tag: u32) -> *mut u8 {
        // SAFETY: there is one for each tag.
        unsafe { self.payloads.start.as_ptr().add(tag as usize * MAX_REQUEST.0 as usize) }
    }
}

/// How many processors this machine may ever have: the kernel has a queue for each.
fn possible_processors() -> io::Result<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<u32>().ok());
    last.map(|last| last + 1)
        .ok_or_else(|| io::Error::other(format!("/sys/devices/system/cpu/possible: {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(size_of::<Header>(), 288);
        assert_eq!(size_of::<InHeader>(), 40);
        assert_eq!(size_of::<OutHeader>(), 16);
        assert_eq!(size_of::<Attributes>(), 88);
        assert_eq!(size_of::<EntryOut>(), 128);
        assert_eq!(size_of::<AttrOut>(), 104);
        assert_eq!(size_of::<OpenOut>(), 16);
        assert_eq!(size_of::<StatfsOut>(), 80);
    }
}
