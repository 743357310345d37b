//! The tags of a ublk device (Documentation/block/ublk.rst), each of which brings a request.

use crate::{
    filesystem::MAX_REQUEST,
    mailbox::Answer,
    queue::{Asked, Mapping, QueueTransport},
};
use device::Op;
use io_uring::{opcode, squeue::Entry128, types::Fd};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::AsRawFd,
    ptr,
};

const IO_FETCH_REQ: u8 = 0x20;
const IO_COMMIT_AND_FETCH_REQ: u8 = 0x21;

const OP_READ: u32 = 0;
const OP_WRITE: u32 = 1;
const OP_FLUSH: u32 = 2;
const OP_DISCARD: u32 = 3;
const OP_WRITE_ZEROES: u32 = 5;
const FLAG_FUA: u32 = 1 << 13;

/// Where the first queue's descriptors are in the character device (UBLKSRV_CMD_BUF_OFFSET).
const DESCRIPTORS_AT: u64 = 0;

const PAGE: usize = 4096;

/// `struct ublksrv_io_desc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Descriptor {
    op_flags: u32,
    sectors: u32,
    start: u64,
    address: u64,
}

/// `struct ublksrv_io_cmd`.
#[repr(C)]
struct Command {
    queue: u16,
    tag: u16,
    result: i32,
    address: u64,
}

/// The descriptors of device `file`'s requests, one a tag.
fn descriptors(file: &File, tags: u32) -> io::Result<Mapping> {
    let length = (tags as usize * size_of::<Descriptor>()).next_multiple_of(PAGE);
    let how = MapFlags::SHARED | MapFlags::POPULATE;
    // SAFETY: a new mapping, where the kernel likes.
    let start =
        unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ, how, file, DESCRIPTORS_AT) }?;
    Mapping::at(start.cast(), length)
}

/// The kernel's side of a device: what it writes of requests, and a buffer for each tag.
pub struct Tags {
    file: File,
    descriptors: Mapping,
    buffers: Mapping,
    tags: u32,
    encoded: bool,
}

impl Tags {
    /// Opens device `index`.
    pub fn open(index: u32, tags: u32, encoded: bool) -> io::Result<Tags> {
        let file = open(index)?;
        let descriptors = descriptors(&file, tags)?;
        let buffers = Mapping::of_memory(tags as usize * MAX_REQUEST.0 as usize)?;
        Ok(Tags { descriptors, buffers, file, tags, encoded })
    }

    fn command(&self, number: u8, answer: Answer) -> Entry128 {
        let Answer { tag, result } = answer;
        let address = self.buffer(tag) as u64;
        let command = Command { queue: 0, tag: tag as u16, result, address };
        // SAFETY: 16 bytes of integers without gaps.
        let bytes: [u8; 16] = unsafe { std::mem::transmute(command) };
        let op = if self.encoded { encoded(number) } else { u32::from(number) };
        opcode::UringCmd16::new(Fd(self.file.as_raw_fd()), op).cmd(bytes).build().into()
    }
}

impl QueueTransport for Tags {
    fn tags(&self) -> u32 {
        self.tags
    }

    fn first(&mut self, tag: u32) -> Entry128 {
        self.command(IO_FETCH_REQ, Answer { tag, result: 0 })
    }

    fn answer(&mut self, answer: Answer) -> Entry128 {
        self.command(IO_COMMIT_AND_FETCH_REQ, answer)
    }

    fn accept(&mut self, tag: u32) -> Asked {
        let first: *const Descriptor = self.descriptors.start.as_ptr().cast();
        // SAFETY: there is one for each tag, and the kernel wrote this one before it completed the command.
        let request = unsafe { first.add(tag as usize).read_volatile() };
        match asked(request.op_flags) {
            // Its place is sector -1.
            (Some(Op::Flush), fua) => Asked::Model { op: Op::Flush, offset: 0, length: 0, fua },
            (Some(op), fua) => {
                let length = u64::from(request.sectors) * 512;
                // One that is too large lies outside.
                let offset = request.start.saturating_mul(512);
                Asked::Model { op, offset, length, fua }
            }
            (None, _) => Asked::Answered(-libc::EOPNOTSUPP),
        }
    }

    fn buffer(&self, tag: u32) -> *mut u8 {
        // SAFETY: there is one for each tag.
        unsafe { self.buffers.start.as_ptr().add(tag as usize * MAX_REQUEST.0 as usize) }
    }
}

/// What the kernel asks for, and whether it asks for the medium (FUA); `None` for what no device here
/// was said to do.
fn asked(op_flags: u32) -> (Option<Op>, bool) {
    let op = match op_flags & 0xff {
        OP_READ => Some(Op::Read),
        OP_WRITE => Some(Op::Write),
        OP_FLUSH => Some(Op::Flush),
        OP_DISCARD | OP_WRITE_ZEROES => Some(Op::Discard),
        _ => None,
    };
    (op, op == Some(Op::Write) && op_flags & FLAG_FUA != 0)
}

/// The number as an ioctl's (`_IOWR`): type `u` and the structure's size.
fn encoded(number: u8) -> u32 {
    let size = size_of::<Command>() as u32;
    (3 << 30) | (size << 16) | (u32::from(b'u') << 8) | u32::from(number)
}

/// Opens the device at which requests are had; its node may take a moment.
fn open(index: u32) -> io::Result<File> {
    let path = format!("/dev/ublkc{index}");
    let mut how = OpenOptions::new();
    how.read(true).write(true);
    for _ in 0..100 {
        match how.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            other => return other,
        }
    }
    how.open(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sizes_are_those_of_the_header() {
        // From linux/ublk_cmd.h through the C preprocessor.
        assert_eq!(encoded(IO_FETCH_REQ), 0xc010_7520);
        assert_eq!(encoded(IO_COMMIT_AND_FETCH_REQ), 0xc010_7521);
        assert_eq!(size_of::<Descriptor>(), 24);
    }

    #[test]
    fn what_is_asked_is_in_the_low_byte_and_fua_beside_it() {
        assert_eq!(asked(0), (Some(Op::Read), false));
        assert_eq!(asked(1), (Some(Op::Write), false));
        assert_eq!(asked(1 | 1 << 13), (Some(Op::Write), true));
        assert_eq!(asked(1 << 8 | 2), (Some(Op::Flush), false));
        assert_eq!(asked(1 << 15 | 5), (Some(Op::Discard), false));
        assert_eq!(asked(4).0, None, "WRITE_SAME");
    }
}
