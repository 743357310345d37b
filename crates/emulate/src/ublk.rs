//! The queue of a ublk device (Documentation/block/ublk.rst): requests come as completions of io_uring
//! commands, one a tag, and each answer is the next command of its tag.
//!
//! The kernel takes commands of a queue from one thread only, so the pacing thread lays completions on
//! a desk and wakes the queue's. Data are moved when a request arrives; its answer leaves when the
//! model is done.

use crate::{
    clock,
    data::Data,
    filesystem::REQUEST_MAX,
    pacer::{Due, Handed, Pacer},
};
use device::Op;
use io_uring::{IoUring, opcode, squeue, types::Fd};
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
    mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap},
};
use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::AsRawFd,
    ptr::{self, NonNull},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use units::Sectors;

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

/// Names the completion that wakes the queue's thread; the others are named by their tags.
const WAKE: u64 = u64::MAX;

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

/// A request at the model: its tag, and what its answer says when it lay inside the device.
#[derive(Clone, Copy, Debug)]
pub struct Slip {
    tag: u16,
    result: i32,
}

/// Where answers are put for the queue's thread.
#[derive(Debug)]
pub struct Desk {
    answers: Mutex<Vec<(Slip, Option<Due>)>>,
    /// The queue's thread sleeps, or is about to.
    sleeps: AtomicBool,
    bell: OwnedFd,
}

impl Desk {
    /// An empty one.
    pub fn new() -> io::Result<Desk> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(Desk { answers: Mutex::default(), sleeps: AtomicBool::new(false), bell })
    }

    /// Puts an answer down; one that lay outside the device is an I/O error.
    pub fn put(&self, slip: Slip, inside: bool, due: Option<Due>) -> Handed {
        let result = if inside { slip.result } else { -libc::EIO };
        let answer = (Slip { result, ..slip }, due);
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        if self.sleeps.swap(false, Ordering::SeqCst) {
            // A counter that is read whenever it is not zero cannot overflow.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
        Handed::ToAnother
    }

    /// All that lies there.
    fn take(&self, answers: &mut Vec<(Slip, Option<Due>)>) {
        let mut there = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.append(&mut there);
    }

    /// Says that the thread will sleep; `false` when an answer has come meanwhile.
    fn may_sleep(&self) -> bool {
        self.sleeps.store(true, Ordering::SeqCst);
        let empty = self.answers.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if !empty {
            self.sleeps.store(false, Ordering::SeqCst);
        }
        empty
    }
}

/// A range of memory that is mapped for as long as this lives.
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    fn of_file(file: &File, length: usize) -> io::Result<Mapping> {
        // SAFETY: a new mapping, where the kernel likes.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::SHARED | MapFlags::POPULATE,
                file,
                DESCRIPTORS_AT,
            )
        }?;
        Mapping::at(start.cast(), length)
    }

    /// Memory that takes room only once it is written.
    fn of_memory(length: usize) -> io::Result<Mapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let how = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, where the kernel likes.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), length, access, how) }?;
        Mapping::at(start.cast(), length)
    }

    fn at(start: *mut u8, length: usize) -> io::Result<Mapping> {
        let start = NonNull::new(start).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Mapping { start, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing that was lent out lives longer than the mapping's owner.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// The queue: its ring, what the kernel writes of requests, and a buffer for each tag.
pub struct Queue {
    // First, so that the kernel lets go of the buffers before they are unmapped.
    ring: IoUring,
    file: File,
    descriptors: Mapping,
    buffers: Mapping,
    tags: u16,
    encoded: bool,
    rung: Box<u64>,
    data: Arc<Data>,
    desk: Arc<Desk>,
    /// Tags whose commands the kernel has given back for good.
    ended: u32,
}

impl Queue {
    /// Opens device `index` and waits for requests on all its tags: the calling thread is the queue's
    /// from now on.
    pub fn open(
        index: u32,
        tags: u16,
        encoded: bool,
        data: Arc<Data>,
        desk: Arc<Desk>,
    ) -> io::Result<Queue> {
        let file = open(index)?;
        let length = usize::from(tags) * size_of::<Descriptor>();
        let mut queue = Queue {
            // One entry more, for the bell.
            ring: IoUring::new(u32::from(tags) + 1)?,
            descriptors: Mapping::of_file(&file, length.next_multiple_of(PAGE))?,
            buffers: Mapping::of_memory(usize::from(tags) * REQUEST_MAX.0 as usize)?,
            file,
            tags,
            encoded,
            rung: Box::new(0),
            data,
            desk,
            ended: 0,
        };
        queue.listen()?;
        for tag in 0..tags {
            queue.say(IO_FETCH_REQ, Slip { tag, result: 0 })?;
        }
        queue.ring.submit()?;
        let refused = queue.ring.completion().find(|done| done.result() < 0);
        match refused {
            Some(done) => Err(io::Error::from_raw_os_error(-done.result())),
            None => Ok(queue),
        }
    }

    /// Serves until the device is stopped, and all commands have been given back.
    pub fn run(mut self, pacer: &Pacer<Slip>) -> io::Result<()> {
        let mut answers: Vec<(Slip, Option<Due>)> = Vec::new();
        let mut arrived: Vec<u16> = Vec::new();
        loop {
            self.desk.take(&mut answers);
            if !answers.is_empty() {
                for (slip, _) in &answers {
                    self.say(IO_COMMIT_AND_FETCH_REQ, *slip)?;
                }
                // The kernel completes the requests as it takes these in.
                let now = clock::now();
                self.enter(0)?;
                pacer.handed_on(now, answers.drain(..).filter_map(|(_, due)| due));
            } else if self.desk.may_sleep() {
                self.enter(1)?;
                self.desk.sleeps.store(false, Ordering::SeqCst);
            }
            let rung = self.reap(&mut arrived);
            if self.ended >= u32::from(self.tags) {
                return Ok(());
            }
            if rung {
                self.listen()?;
            }
            for tag in arrived.drain(..) {
                self.accept(tag, pacer);
            }
        }
    }

    /// Hands over what was said, and waits for so many completions.
    fn enter(&self, wait: usize) -> io::Result<()> {
        let soon = [libc::EINTR, libc::EAGAIN, libc::EBUSY];
        match self.ring.submit_and_wait(wait) {
            // Interrupted, short of memory, or full of completions: what has come is taken first.
            Err(error) if error.raw_os_error().is_some_and(|it| soon.contains(&it)) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Takes all completions; tells whether the bell has rung.
    fn reap(&mut self, arrived: &mut Vec<u16>) -> bool {
        let mut rung = false;
        for done in self.ring.completion() {
            match (done.user_data(), done.result()) {
                (WAKE, _) => rung = true,
                (tag, 0) => arrived.push(tag as u16),
                // UBLK_IO_RES_ABORT, or whatever else keeps the kernel from giving it work.
                (_, _) => self.ended += 1,
            }
        }
        rung
    }

    /// Waits for the bell.
    fn listen(&mut self) -> io::Result<()> {
        let bell = Fd(self.desk.bell.as_raw_fd());
        let read = opcode::Read::new(bell, (&raw mut *self.rung).cast(), 8).build();
        self.push(&read.user_data(WAKE))
    }

    fn say(&mut self, number: u8, slip: Slip) -> io::Result<()> {
        let Slip { tag, result } = slip;
        let address = self.buffer(tag) as u64;
        let command = Command { queue: 0, tag, result, address };
        // SAFETY: 16 bytes of integers without gaps.
        let bytes: [u8; 16] = unsafe { std::mem::transmute(command) };
        let op = if self.encoded { encoded(number) } else { u32::from(number) };
        let entry = opcode::UringCmd16::new(Fd(self.file.as_raw_fd()), op).cmd(bytes).build();
        self.push(&entry.user_data(tag.into()))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: what entries point to, the buffers and the bell's counter, lives as long as the
            // ring.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.enter(0)?;
        }
    }

    fn buffer(&self, tag: u16) -> *mut u8 {
        // SAFETY: there is one for each tag.
        unsafe { self.buffers.start.as_ptr().add(usize::from(tag) * REQUEST_MAX.0 as usize) }
    }

    /// A request has come: its data are moved, and the model is asked when it is done.
    fn accept(&mut self, tag: u16, pacer: &Pacer<Slip>) {
        let first: *const Descriptor = self.descriptors.start.as_ptr().cast();
        // SAFETY: the kernel keeps one for each tag, and wrote this one before it told us.
        let request = unsafe { first.add(usize::from(tag)).read_volatile() };
        let came = clock::now();
        let (op, fua) = asked(request.op_flags);
        match op.ok_or(libc::EOPNOTSUPP).and_then(|op| Ok((op, self.moved(tag, request, op)?))) {
            Ok((Op::Flush, result)) => {
                // Its place is sector -1.
                let nothing = Sectors(0);
                pacer.submit(came, Op::Flush, nothing, nothing, false, Slip { tag, result });
            }
            Ok((op, result)) => {
                let (start, count) = (Sectors(request.start), Sectors(request.sectors.into()));
                pacer.submit(came, op, start, count, fua, Slip { tag, result });
            }
            Err(number) => {
                self.desk.put(Slip { tag, result: -number }, true, None);
            }
        }
    }

    /// Moves a request's data; gives what its answer will say, or an error's number.
    fn moved(&mut self, tag: u16, request: Descriptor, op: Op) -> Result<i32, i32> {
        if op == Op::Flush {
            return Ok(0);
        }
        let length = u64::from(request.sectors) * 512;
        let offset = request.start.checked_mul(512).ok_or(libc::EIO)?;
        let moves = op != Op::Discard;
        if !self.data.holds(offset, length) || (moves && length > REQUEST_MAX.0) {
            return Err(libc::EIO);
        }
        let buffered = if moves { length as usize } else { 0 };
        // SAFETY: the tag's own buffer, which the kernel leaves alone until the tag's next command.
        let buffer = unsafe { std::slice::from_raw_parts_mut(self.buffer(tag), buffered) };
        match op {
            Op::Read => self.data.read(buffer, offset),
            Op::Write => self.data.write(buffer, offset),
            Op::Flush | Op::Discard => self.data.punch(offset, length),
        }
        .map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
        // Of a discard only the sign of its answer is looked at.
        Ok(buffered as i32)
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

    #[test]
    fn an_answer_wakes_who_sleeps_and_only_then() {
        let desk = Desk::new().unwrap();
        let slip = Slip { tag: 3, result: 4096 };
        let mut answers = Vec::new();
        let rings = || {
            let mut count = [0; 8];
            let mut polled = [rustix::event::PollFd::new(&desk.bell, rustix::event::PollFlags::IN)];
            let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
            let there = rustix::event::poll(&mut polled, Some(&now)).unwrap() == 1;
            there && rustix::io::read(&desk.bell, &mut count).is_ok()
        };
        assert_eq!(desk.put(slip, true, None), Handed::ToAnother);
        assert!(!rings(), "nobody sleeps");
        assert!(!desk.may_sleep(), "an answer lies there");
        desk.take(&mut answers);
        assert!(desk.may_sleep());
        desk.put(slip, false, None);
        desk.put(slip, true, None);
        assert!(rings());
        desk.take(&mut answers);
        let results: Vec<i32> = answers.iter().map(|(slip, _)| slip.result).collect();
        assert_eq!(results, [4096, -libc::EIO, 4096]);
    }
}
