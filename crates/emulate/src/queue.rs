//! A device's requests as completions of io_uring commands, one for each tag; the answer to a request is
//! its tag's next command. ublk and FUSE over io_uring both work this way.
//!
//! The thread that owns the ring also runs the model: the kernel takes commands from it alone, and no
//! answer waits for another thread. The call that submits an answer also collects new requests. Data are
//! moved when a request arrives: by this thread if that is quick, otherwise by the [`mover`].

use crate::{
    clock::{self, WallInstant},
    data::Data,
    filesystem::{MAX_REQUEST, sectors},
    mailbox::{Answer, Mailbox, Message},
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
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::{
    collections::VecDeque,
    io,
    os::fd::AsRawFd,
    ptr::{self, NonNull},
    sync::Arc,
};
use units::Nanos;

/// The user data of the wake-up completion; the others carry their tags.
const WAKE: u64 = u64::MAX;

/// How long collecting requests may take: the kernel prepares up to about twenty in one call. Not begun
/// within this time before the model's next event, but delayed by no more than that: not every event is a
/// completion. Observed.
const MAX_COLLECT: Nanos = Nanos::from_micros(25);
/// How long accepting one request may take, including its data. Observed.
const MAX_ACCEPT: Nanos = Nanos::from_micros(3);

/// What the kernel asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// An operation of the device, whose time the model determines.
    Model {
        /// The operation.
        op: Op,
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes.
        length: u64,
        /// Force unit access: on the medium before it is answered.
        fua: bool,
    },
    /// Something else, answered with this result.
    Answered(i32),
}

/// How a transport encodes requests and answers.
pub trait QueueTransport {
    /// How many tags there are.
    fn tags(&self) -> u32;
    /// The command that asks for the first request of a tag.
    fn first(&mut self, tag: u32) -> Entry128;
    /// The command that answers a request and asks for the next.
    fn answer(&mut self, answer: Answer) -> Entry128;
    /// Decodes the request that arrived with this tag.
    fn accept(&mut self, tag: u32) -> Asked;
    /// The data of a write, and where the data of a read go: [`MAX_REQUEST`] bytes, for this tag only,
    /// which the kernel does not touch before the answer.
    fn buffer(&self, tag: u32) -> *mut u8;
}

/// The queue: its ring, and the state of its tags.
pub struct Queue<P> {
    // First, so that it is dropped, and the kernel releases the buffers, before they are unmapped.
    ring: IoUring<Entry128, cqueue::Entry>,
    transport: P,
    mailbox: Arc<Mailbox>,
    /// What is read from the mailbox's eventfd.
    rung: Box<u64>,
    /// Tags with a new request, in the order of their arrival.
    arrived: VecDeque<u32>,
    /// Tags whose commands the kernel has ended: the device is going away.
    ended: u32,
    /// The last error number with which it ended one.
    why: Option<i32>,
}

impl<P: QueueTransport> Queue<P> {
    /// Asks for requests on all tags. The calling thread becomes the queue's.
    pub fn open(transport: P, mailbox: Arc<Mailbox>) -> io::Result<Queue<P>> {
        // One entry more, for the mailbox.
        let entries = transport.tags() + 1;
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(entries)
            // Linux before 6.1 has no deferred task work.
            .or_else(|_| IoUring::builder().build(entries))?;
        let (rung, arrived) = (Box::new(0), VecDeque::new());
        let mut queue = Queue { ring, transport, mailbox, rung, arrived, ended: 0, why: None };
        queue.listen()?;
        for tag in 0..queue.transport.tags() {
            let first = queue.transport.first(tag);
            queue.push(first.user_data(tag.into()))?;
        }
        queue.enter(0)?;
        queue.reap()?;
        match queue.why {
            Some(number) => Err(io::Error::from_raw_os_error(number)),
            None => Ok(queue),
        }
    }

    /// Serves until the device is stopped and all commands have ended.
    pub fn run(self, pacer: &Pacer<Answer>, data: &Arc<Data>) -> io::Result<()> {
        let mover = Mover::start(Arc::clone(data), Arc::clone(&self.mailbox))?;
        let moving = vec![Moving::Done(Ok(())); self.transport.tags() as usize];
        let softirqs = Softirqs::new()?;
        let messages = Vec::new();
        let (until, since) = (None, None);
        let queue = self;
        pacer.run(&mut QueueThread {
            queue,
            pacer,
            data,
            mover,
            moving,
            softirqs,
            messages,
            until,
            since,
        })
    }

    /// Submits what was pushed, without collecting requests: the next answer may be due.
    fn submit_only(&self) -> io::Result<()> {
        let submitter = self.ring.submitter();
        // SAFETY: all entries were pushed through `push`; no argument is given.
        ignore_transient(unsafe { submitter.enter::<libc::sigset_t>(u32::MAX, 0, 0, None) })
    }

    /// Submits what was pushed, and waits for so many completions.
    fn enter(&self, wait: usize) -> io::Result<()> {
        ignore_transient(self.ring.submit_and_wait(wait))
    }

    /// The same, for one completion or until a moment.
    fn enter_until(&self, moment: WallInstant) -> io::Result<()> {
        let left = moment.since(clock::now());
        if left == Nanos::ZERO {
            return self.enter(0);
        }
        let left = Timespec::from(left.as_duration());
        ignore_transient(
            self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&left)),
        )
    }

    /// Takes all completions.
    fn reap(&mut self) -> io::Result<()> {
        let mut rung = false;
        for done in self.ring.completion() {
            match (done.user_data(), done.result()) {
                (WAKE, _) => rung = true,
                (tag, 0) => self.arrived.push_back(tag as u32),
                // The device ends, or the kernel cannot give it work for another reason.
                (_, result) => {
                    self.ended += 1;
                    self.why = Some(-result);
                }
            }
        }
        if rung { self.listen() } else { Ok(()) }
    }

    /// Asks to be woken by the mailbox.
    fn listen(&mut self) -> io::Result<()> {
        let bell = Fd(self.mailbox.eventfd().as_raw_fd());
        let read = opcode::Read::new(bell, (&raw mut *self.rung).cast(), 8).build();
        self.push(Entry128::from(read).user_data(WAKE))
    }

    fn push_answer(&mut self, answer: Answer) -> io::Result<()> {
        let entry = self.transport.answer(answer);
        self.push(entry.user_data(answer.tag.into()))
    }

    fn push(&mut self, entry: Entry128) -> io::Result<()> {
        loop {
            // SAFETY: entries point to the tags' buffers and to `rung`, which outlive the ring.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return Ok(());
            }
            self.enter(0)?;
        }
    }
}

/// Errors after which the caller simply collects what has arrived: out of time, interrupted, short of
/// memory, or full of completions.
fn ignore_transient(entered: io::Result<usize>) -> io::Result<()> {
    let transient = [libc::ETIME, libc::EINTR, libc::EAGAIN, libc::EBUSY];
    match entered {
        Err(error) if error.raw_os_error().is_some_and(|it| transient.contains(&it)) => Ok(()),
        other => other.map(drop),
    }
}

/// The state of a tag's data.
#[derive(Clone, Copy, Debug)]
enum Moving {
    /// Moved; or the error's number.
    Done(Result<(), i32>),
    /// The mover is moving them.
    Busy,
    /// The same, and the answer waits for that.
    Awaited(Answer, Option<Due>),
}

/// The thread that serves a queue.
struct QueueThread<'a, P> {
    queue: Queue<P>,
    pacer: &'a Pacer<Answer>,
    data: &'a Data,
    mover: Mover,
    /// The data of each tag.
    moving: Vec<Moving>,
    softirqs: Softirqs,
    messages: Vec<Message>,
    until: Option<WallInstant>,
    /// Since when there has been something to collect.
    since: Option<WallInstant>,
}

impl<P: QueueTransport> QueueThread<'_, P> {
    /// Accepts a request: moves its data, and submits it to the model.
    fn accept(&mut self, tag: u32) -> io::Result<()> {
        let came = clock::now();
        let (op, offset, length, fua) = match self.queue.transport.accept(tag) {
            Asked::Model { op, offset, length, fua } => (op, offset, length, fua),
            Asked::Answered(result) => return self.queue.push_answer(Answer { tag, result }),
        };
        let buffered = matches!(op, Op::Read | Op::Write);
        if !self.data.holds(offset, length) || (buffered && length > MAX_REQUEST.0) {
            return self.queue.push_answer(Answer { tag, result: -libc::EIO });
        }
        if op == Op::Flush {
            self.data.flushed();
        } else {
            let room = if buffered { length as usize } else { 0 };
            // SAFETY: the tag's buffer is `MAX_REQUEST` long, which `room` does not exceed, and belongs to
            // this request until its answer, which waits for the job.
            let buffer = unsafe { Buffer::new(self.queue.transport.buffer(tag), room) };
            let job = Job { tag, op, offset, length, buffer };
            self.moving[tag as usize] = if self.data.is_quick(op, offset, length) {
                Moving::Done(job.run(self.data))
            } else {
                self.mover.push(job);
                Moving::Busy
            };
        }
        let answer = Answer { tag, result: if buffered { length as i32 } else { 0 } };
        let (start, count) = sectors(offset, length);
        self.pacer.submit(came, op, start, count, fua, answer);
        Ok(())
    }

    /// Answers a request, unless its data are still being moved. `due`: when the model completed it, if
    /// it was asked.
    fn answer(&mut self, answer: Answer, due: Option<Due>) -> io::Result<()> {
        let moving = &mut self.moving[answer.tag as usize];
        let Moving::Done(moved) = *moving else {
            *moving = Moving::Awaited(answer, due);
            return Ok(());
        };
        *moving = Moving::Done(Ok(()));
        self.queue.push_answer(
            moved.map_or_else(|number| Answer { result: -number, ..answer }, |()| answer),
        )?;
        if let Some(due) = due {
            // The kernel completes the request within this call.
            let now = clock::now();
            self.queue.submit_only()?;
            self.softirqs.run();
            self.pacer.delivered(now, due);
        }
        Ok(())
    }

    /// Handles a message.
    fn handle(&mut self, message: Message) -> io::Result<()> {
        match message {
            Message::Answer(answer) => self.answer(answer, None),
            Message::DataMoved(tag, moved) => {
                let moving = &mut self.moving[tag as usize];
                match std::mem::replace(moving, Moving::Done(moved)) {
                    Moving::Awaited(answer, due) => self.answer(answer, due),
                    Moving::Done(_) | Moving::Busy => Ok(()),
                }
            }
        }
    }
}

impl<P: QueueTransport> Runner<Answer> for QueueThread<'_, P> {
    fn poll(&mut self) -> io::Result<bool> {
        self.since = None;
        self.queue.mailbox.take(&mut self.messages);
        for message in std::mem::take(&mut self.messages) {
            self.handle(message)?;
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
        if self.queue.ended >= self.queue.transport.tags() {
            return Ok(false);
        }
        // One at a time: an answer may become due before the next.
        if let Some(tag) = self.queue.arrived.pop_front() {
            self.accept(tag)?;
        }
        Ok(true)
    }

    fn deliver(&mut self, ready: &mut Vec<Ready<Answer>>) -> io::Result<()> {
        for Ready { name, inside, due } in ready.drain(..) {
            self.answer(name.with_result(inside), Some(due))?;
        }
        Ok(())
    }

    fn has_work(&mut self, left: Nanos) -> bool {
        let arrived = !self.queue.arrived.is_empty();
        let (_, submission, completion) = self.queue.ring.split();
        let work = arrived
            || submission.taskrun()
            || !completion.is_empty()
            || self.queue.mailbox.has_messages();
        if !work {
            return false;
        }
        let now = clock::now();
        let since = *self.since.get_or_insert(now);
        left > if arrived { MAX_ACCEPT } else { MAX_COLLECT } || now.since(since) > MAX_COLLECT
    }

    fn wake_at(&mut self, moment: Option<WallInstant>) {
        self.until = moment;
    }

    fn sleep(&mut self) -> io::Result<()> {
        if self.queue.mailbox.may_sleep() && !self.has_work(Nanos::MAX) {
            match self.until {
                Some(moment) => self.queue.enter_until(moment)?,
                None => self.queue.enter(1)?,
            }
        }
        self.queue.mailbox.awake();
        Ok(())
    }
}

/// A mapped range of memory, unmapped on drop.
pub struct Mapping {
    /// Where it begins.
    pub start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    /// Anonymous memory, allocated as it is written.
    pub fn of_memory(length: usize) -> io::Result<Mapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let how = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), length, access, how) }?;
        Mapping::at(start.cast(), length)
    }

    /// Takes ownership of what was mapped at `start`.
    pub fn at(start: *mut u8, length: usize) -> io::Result<Mapping> {
        let start = NonNull::new(start).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Mapping { start, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: no pointer into it outlives the owner of the mapping.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}
