//! A device's requests as completions of io_uring commands, one a tag; each answer is the next command
//! of its tag. ublk and FUSE over io_uring both work so.
//!
//! The thread that holds the ring also runs the model: the kernel takes commands from it alone, and an
//! answer waits for no other thread. The call that hands one over brings what has come meanwhile. Data
//! are moved when a request arrives, by this thread where that is soon done, by the [`mover`] where it
//! is not.

use crate::{
    clock,
    data::Data,
    filesystem::{REQUEST_MAX, sectors},
    mover::{Buffer, Job, Mover},
    pacer::{Due, Pacer, Ready, Runner},
    softirq::Softirqs,
};
use device::Op;
use io_uring::{
    IoUring, cqueue, opcode,
    squeue::Entry128,
    types::{Fd, SubmitArgs, Timespec},
};
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
    mm::{MapFlags, ProtFlags, mmap_anonymous, munmap},
};
use std::{
    collections::VecDeque,
    io,
    os::fd::AsRawFd,
    ptr::{self, NonNull},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Names the completion that wakes the thread; the others are named by their tags.
const WAKE: u64 = u64::MAX;

/// What one call may bring takes up to so many nanoseconds: the kernel lays out as many as twenty
/// requests. Not begun in so many before the model's next event, but waits no longer than that: not
/// each event is an answer.
const RECEIVING: u64 = 25_000;
/// One request takes up to so long, its data included.
const ACCEPTING: u64 = 3_000;

/// A request at the model: its tag, and what its answer says when it lay inside the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slip {
    /// The tag.
    pub tag: u32,
    /// Bytes, or an error's negative number.
    pub result: i32,
}

impl Slip {
    /// The same, as an I/O error if it lay outside the device.
    pub fn told(self, inside: bool) -> Slip {
        Slip { result: if inside { self.result } else { -libc::EIO }, ..self }
    }
}

/// What other threads tell the queue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// An answer: the model was left out, or has been changed.
    Answer(Slip),
    /// The data of a tag's request have been moved, or could not be, for the reason of that number.
    Moved(u32, Result<(), i32>),
}

/// Where they put it.
#[derive(Debug)]
pub struct Desk {
    notes: Mutex<Vec<Note>>,
    /// Some lie there.
    some: AtomicBool,
    /// The queue's thread sleeps, or is about to.
    sleeps: AtomicBool,
    bell: OwnedFd,
}

impl Desk {
    /// An empty one.
    pub fn new() -> io::Result<Desk> {
        Ok(Desk {
            notes: Mutex::default(),
            some: AtomicBool::new(false),
            sleeps: AtomicBool::new(false),
            bell: eventfd(0, EventfdFlags::CLOEXEC)?,
        })
    }

    /// Puts a note down, and wakes who sleeps.
    pub fn put(&self, note: Note) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        self.some.store(true, Ordering::SeqCst);
        if self.sleeps.swap(false, Ordering::SeqCst) {
            // A counter that is read whenever it is not zero cannot overflow.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    /// All that lies there.
    fn take(&self, notes: &mut Vec<Note>) {
        if self.some.swap(false, Ordering::SeqCst) {
            notes.append(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Says that the thread will sleep; `false` when a note has come meanwhile.
    fn may_sleep(&self) -> bool {
        self.sleeps.store(true, Ordering::SeqCst);
        let empty = !self.some.load(Ordering::SeqCst);
        if !empty {
            self.awake();
        }
        empty
    }

    fn awake(&self) {
        self.sleeps.store(false, Ordering::SeqCst);
    }
}

/// What the kernel asks with a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Something that takes the model's time.
    Model {
        /// What is to be done.
        op: Op,
        /// Where, in bytes.
        offset: u64,
        /// How much.
        length: u64,
        /// On the medium before it is answered.
        fua: bool,
    },
    /// Something else, with what its answer says.
    Answered(i32),
}

/// What a transport makes of tags.
pub trait Port {
    /// How many there are.
    fn tags(&self) -> u32;
    /// The command that asks for the first request of a tag.
    fn first(&mut self, tag: u32) -> Entry128;
    /// The command that answers a request and asks for the next.
    fn answer(&mut self, slip: Slip) -> Entry128;
    /// A request has come with this tag.
    fn accept(&mut self, tag: u32) -> Asked;
    /// The data that a write has brought, and where a read's data go: [`REQUEST_MAX`] long, this
    /// tag's alone, and the kernel leaves it alone until its answer.
    fn buffer(&self, tag: u32) -> *mut u8;
}

/// The queue: its ring, and what came of it so far.
pub struct Queue<P> {
    // First, so that the kernel lets go of the buffers before they are unmapped.
    ring: IoUring<Entry128, cqueue::Entry>,
    port: P,
    desk: Arc<Desk>,
    /// Where the bell's number goes.
    rung: Box<u64>,
    /// Tags with which a request has come, in that order.
    arrived: VecDeque<u32>,
    /// Tags whose commands the kernel has given back for good.
    ended: u32,
    /// The last reason for that.
    why: Option<i32>,
}

impl<P: Port> Queue<P> {
    /// Waits for requests on all tags: the calling thread is the queue's from now on.
    pub fn open(port: P, desk: Arc<Desk>) -> io::Result<Queue<P>> {
        // One entry more, for the bell.
        let entries = port.tags() + 1;
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(entries)
            // Linux before 6.1 interrupts the thread to complete commands.
            .or_else(|_| IoUring::builder().build(entries))?;
        let (rung, arrived) = (Box::new(0), VecDeque::new());
        let mut queue = Queue { ring, port, desk, rung, arrived, ended: 0, why: None };
        queue.listen()?;
        for tag in 0..queue.port.tags() {
            let first = queue.port.first(tag);
            queue.push(first.user_data(tag.into()))?;
        }
        queue.enter(0)?;
        queue.reap()?;
        match queue.why {
            Some(number) => Err(io::Error::from_raw_os_error(number)),
            None => Ok(queue),
        }
    }

    /// Serves until the device is stopped, and all commands have been given back.
    pub fn run(self, pacer: &Pacer<Slip>, data: &Arc<Data>) -> io::Result<()> {
        let mover = Mover::start(Arc::clone(data), Arc::clone(&self.desk))?;
        let moving = vec![Moving::Done(Ok(())); self.port.tags() as usize];
        let softirqs = Softirqs::new()?;
        let notes = Vec::new();
        let (until, since) = (None, None);
        let queue = self;
        pacer.run(&mut Hands { queue, pacer, data, mover, moving, softirqs, notes, until, since })
    }

    /// Hands over what was said, and takes nothing: the next answer may be due.
    fn hand_over(&self) -> io::Result<()> {
        let said = self.ring.submitter();
        // SAFETY: what has been said is in the ring; no argument is given.
        taken(unsafe { said.enter::<libc::sigset_t>(u32::MAX, 0, 0, None) })
    }

    /// Hands over what was said, and waits for so many completions.
    fn enter(&self, wait: usize) -> io::Result<()> {
        taken(self.ring.submit_and_wait(wait))
    }

    /// The same, for one completion or until a moment.
    fn enter_until(&self, moment: u64) -> io::Result<()> {
        let left = moment.saturating_sub(clock::now());
        if left == 0 {
            return self.enter(0);
        }
        let left = Timespec::from(Duration::from_nanos(left));
        taken(self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&left)))
    }

    /// Takes all completions.
    fn reap(&mut self) -> io::Result<()> {
        let mut rung = false;
        for done in self.ring.completion() {
            match (done.user_data(), done.result()) {
                (WAKE, _) => rung = true,
                (tag, 0) => self.arrived.push_back(tag as u32),
                // The device ends, or whatever else keeps the kernel from giving it work.
                (_, result) => {
                    self.ended += 1;
                    self.why = Some(-result);
                }
            }
        }
        if rung { self.listen() } else { Ok(()) }
    }

    /// Waits for the bell.
    fn listen(&mut self) -> io::Result<()> {
        let bell = Fd(self.desk.bell.as_raw_fd());
        let read = opcode::Read::new(bell, (&raw mut *self.rung).cast(), 8).build();
        self.push(Entry128::from(read).user_data(WAKE))
    }

    fn say(&mut self, slip: Slip) -> io::Result<()> {
        let answer = self.port.answer(slip);
        self.push(answer.user_data(slip.tag.into()))
    }

    fn push(&mut self, entry: Entry128) -> io::Result<()> {
        loop {
            // SAFETY: what entries point to, the buffers and the bell's number, lives as long as the
            // ring.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return Ok(());
            }
            self.enter(0)?;
        }
    }
}

fn taken(entered: io::Result<usize>) -> io::Result<()> {
    // Out of time, interrupted, short of memory, or full of completions: what has come is taken first.
    let soon = [libc::ETIME, libc::EINTR, libc::EAGAIN, libc::EBUSY];
    match entered {
        Err(error) if error.raw_os_error().is_some_and(|it| soon.contains(&it)) => Ok(()),
        other => other.map(drop),
    }
}

/// A tag's data.
#[derive(Clone, Copy, Debug)]
enum Moving {
    /// They have been moved, or could not be, for the reason of that number.
    Done(Result<(), i32>),
    /// The mover is at it.
    Busy,
    /// The same, and the answer waits for it.
    Awaited(Slip, Option<Due>),
}

/// A queue at work.
struct Hands<'a, P> {
    queue: Queue<P>,
    pacer: &'a Pacer<Slip>,
    data: &'a Data,
    mover: Mover,
    /// Of each tag.
    moving: Vec<Moving>,
    softirqs: Softirqs,
    notes: Vec<Note>,
    until: Option<u64>,
    /// When something was first seen that has not been taken.
    since: Option<u64>,
}

impl<P: Port> Hands<'_, P> {
    /// A request has come: its data are moved, and the model is asked when it is done.
    fn accept(&mut self, tag: u32) -> io::Result<()> {
        let came = clock::now();
        let (op, offset, length, fua) = match self.queue.port.accept(tag) {
            Asked::Model { op, offset, length, fua } => (op, offset, length, fua),
            Asked::Answered(result) => return self.queue.say(Slip { tag, result }),
        };
        let buffered = matches!(op, Op::Read | Op::Write);
        if !self.data.holds(offset, length) || (buffered && length > REQUEST_MAX.0) {
            return self.queue.say(Slip { tag, result: -libc::EIO });
        }
        if op != Op::Flush {
            let room = if buffered { length as usize } else { 0 };
            let buffer = Buffer::of(self.queue.port.buffer(tag), room);
            let job = Job { tag, op, offset, length, buffer };
            self.moving[tag as usize] = if self.data.is_soon_moved(op, offset, length) {
                Moving::Done(job.run(self.data))
            } else {
                self.mover.give(job);
                Moving::Busy
            };
        }
        let slip = Slip { tag, result: if buffered { length as i32 } else { 0 } };
        let (start, count) = sectors(offset, length);
        self.pacer.submit(came, op, start, count, fua, slip);
        Ok(())
    }

    /// Answers a request that the model was done with when it was `due`, if it was asked, unless its
    /// data are still being moved.
    fn answer(&mut self, slip: Slip, due: Option<Due>) -> io::Result<()> {
        let moving = &mut self.moving[slip.tag as usize];
        let Moving::Done(moved) = *moving else {
            *moving = Moving::Awaited(slip, due);
            return Ok(());
        };
        *moving = Moving::Done(Ok(()));
        self.queue.say(moved.map_or_else(|number| Slip { result: -number, ..slip }, |()| slip))?;
        if let Some(due) = due {
            // The kernel completes the request as it takes this in.
            let now = clock::now();
            self.queue.hand_over()?;
            self.softirqs.run();
            self.pacer.handed_on(now, due);
        }
        Ok(())
    }

    /// Heeds what another thread has told.
    fn heed(&mut self, note: Note) -> io::Result<()> {
        match note {
            Note::Answer(slip) => self.answer(slip, None),
            Note::Moved(tag, moved) => {
                let moving = &mut self.moving[tag as usize];
                match std::mem::replace(moving, Moving::Done(moved)) {
                    Moving::Awaited(slip, due) => self.answer(slip, due),
                    Moving::Done(_) | Moving::Busy => Ok(()),
                }
            }
        }
    }
}

impl<P: Port> Runner<Slip> for Hands<'_, P> {
    fn look(&mut self) -> io::Result<bool> {
        self.since = None;
        self.queue.desk.take(&mut self.notes);
        for note in std::mem::take(&mut self.notes) {
            self.heed(note)?;
        }
        let submission = self.queue.ring.submission();
        let (brings, takes) = (submission.taskrun(), !submission.is_empty());
        drop(submission);
        if takes || (brings && self.queue.arrived.is_empty()) {
            self.queue.enter(0)?;
        }
        if takes {
            self.softirqs.run();
        }
        self.queue.reap()?;
        if self.queue.ended >= self.queue.port.tags() {
            return Ok(false);
        }
        // One at a time: an answer may be due before the next.
        if let Some(tag) = self.queue.arrived.pop_front() {
            self.accept(tag)?;
        }
        Ok(true)
    }

    fn hand_on(&mut self, ready: &mut Vec<Ready<Slip>>) -> io::Result<()> {
        for Ready { name, inside, due } in ready.drain(..) {
            self.answer(name.told(inside), Some(due))?;
        }
        Ok(())
    }

    fn sees_something(&mut self, left: u64) -> bool {
        let arrived = !self.queue.arrived.is_empty();
        let (_, submission, completion) = self.queue.ring.split();
        let there = arrived
            || submission.taskrun()
            || !completion.is_empty()
            || self.queue.desk.some.load(Ordering::Relaxed);
        if !there {
            return false;
        }
        let now = clock::now();
        let since = *self.since.get_or_insert(now);
        left > if arrived { ACCEPTING } else { RECEIVING } || now - since > RECEIVING
    }

    fn wake_at(&mut self, moment: Option<u64>) {
        self.until = moment;
    }

    fn sleep(&mut self) -> io::Result<()> {
        if self.queue.desk.may_sleep() && !self.sees_something(u64::MAX) {
            match self.until {
                Some(moment) => self.queue.enter_until(moment)?,
                None => self.queue.enter(1)?,
            }
        }
        self.queue.desk.awake();
        Ok(())
    }
}

/// A range of memory that is mapped for as long as this lives.
pub struct Mapping {
    /// Where it begins.
    pub start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    /// Memory that takes room only once it is written.
    pub fn of_memory(length: usize) -> io::Result<Mapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let how = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, where the kernel likes.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), length, access, how) }?;
        Mapping::at(start.cast(), length)
    }

    /// What was mapped at `start`.
    pub fn at(start: *mut u8, length: usize) -> io::Result<Mapping> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_wakes_who_sleeps_and_only_then() {
        let desk = Desk::new().unwrap();
        let slip = Slip { tag: 3, result: 4096 };
        let mut notes = Vec::new();
        let rings = || {
            let mut count = [0; 8];
            let mut polled = [rustix::event::PollFd::new(&desk.bell, rustix::event::PollFlags::IN)];
            let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
            let there = rustix::event::poll(&mut polled, Some(&now)).unwrap() == 1;
            there && rustix::io::read(&desk.bell, &mut count).is_ok()
        };
        desk.put(Note::Answer(slip));
        assert!(!rings(), "nobody sleeps");
        assert!(!desk.may_sleep(), "an answer lies there");
        desk.take(&mut notes);
        assert!(desk.may_sleep());
        desk.put(Note::Answer(slip.told(false)));
        desk.put(Note::Moved(4, Ok(())));
        assert!(rings());
        desk.take(&mut notes);
        let error = Slip { result: -libc::EIO, ..slip };
        assert_eq!(notes, [Note::Answer(slip), Note::Answer(error), Note::Moved(4, Ok(()))]);
    }
}
