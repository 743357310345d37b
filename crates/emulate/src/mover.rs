//! A thread that moves data that take their time: a file's, and large ones.

use crate::{
    data::Data,
    queue::{Desk, Note},
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

/// A piece of a tag's memory, which whoever has it may use until the tag is answered.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    start: *mut u8,
    length: usize,
}

// SAFETY: whoever makes a job lends the buffer with it, and looks at it again once the job is done.
unsafe impl Send for Buffer {}

impl Buffer {
    /// So many bytes from `start`.
    pub fn of(start: *mut u8, length: usize) -> Buffer {
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
    /// Where, in bytes.
    pub offset: u64,
    /// How much.
    pub length: u64,
    /// A write's data, or where a read's go.
    pub buffer: Buffer,
}

impl Job {
    /// Does it, or gives an error's number.
    pub fn run(self, data: &Data) -> Result<(), i32> {
        let Buffer { start, length } = self.buffer;
        // SAFETY: it is lent with the job.
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
    /// Begins it; it tells `desk` of each job's end.
    pub fn start(data: Arc<Data>, desk: Arc<Desk>) -> io::Result<Mover> {
        let (give, take) = channel::<Job>();
        thread::Builder::new().name("mover".to_owned()).spawn(move || {
            for job in take {
                desk.put(Note::Moved(job.tag, job.run(&data)));
            }
        })?;
        Ok(Mover(give))
    }

    /// Gives it something to do, behind what it has.
    pub fn give(&self, job: Job) {
        // It ends only when this does.
        let _ = self.0.send(job);
    }
}
