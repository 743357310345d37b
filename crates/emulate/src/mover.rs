//! A thread that moves data where that may take long: in files, and large pieces.

use crate::{
    data::Data,
    mailbox::{Mailbox, Message},
};
use device::Op;
use std::{
    io, slice,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    thread,
};

/// A piece of a tag's buffer, usable until the tag is answered.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    start: *mut u8,
    length: usize,
}

// SAFETY: `Buffer::new` promises that nobody else uses the memory until the job is done.
unsafe impl Send for Buffer {}

impl Buffer {
    /// `length` bytes from `start`.
    ///
    /// # Safety
    ///
    /// The range must be valid for reads and writes, and nobody else may use it, until the job that it
    /// is part of has run.
    pub unsafe fn new(start: *mut u8, length: usize) -> Buffer {
        Buffer { start, length }
    }
}

/// Data to be moved for a tag's request.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The tag.
    pub tag: u32,
    /// A read, a write or a discard.
    pub op: Op,
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// The data of a write, or where the data of a read go.
    pub buffer: Buffer,
}

impl Job {
    /// Moves the data; an error is its number.
    pub fn run(self, data: &Data) -> Result<(), i32> {
        let Buffer { start, length } = self.buffer;
        // SAFETY: promised to `Buffer::new`.
        let buffer = unsafe { slice::from_raw_parts_mut(start, length) };
        match self.op {
            Op::Read => data.read(buffer, self.offset),
            Op::Write => data.write(buffer, self.offset),
            Op::Flush | Op::Discard => data.punch(self.offset, self.length),
        }
        .map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
    }
}

/// The thread. It ends with its owner.
#[derive(Debug)]
pub struct Mover(Sender<Job>);

impl Mover {
    /// Starts it; it sends a message when a job is done.
    pub fn start(data: Arc<Data>, mailbox: Arc<Mailbox>) -> io::Result<Mover> {
        let (give, take) = channel::<Job>();
        thread::Builder::new().name("mover".to_owned()).spawn(move || {
            for job in take {
                mailbox.put(Message::DataMoved(job.tag, job.run(&data)));
            }
        })?;
        Ok(Mover(give))
    }

    /// Queues a job.
    pub fn push(&self, job: Job) {
        // The thread ends only when this is dropped.
        let _ = self.0.send(job);
    }
}
