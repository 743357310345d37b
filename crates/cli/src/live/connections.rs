//! The clients of a page. Any of them may be somebody who wants to hurt: it has one connection of a
//! few, a request of a few kilobytes, and little time for each step. One thread, which waits for
//! all of them at once.

use super::{
    pages::{Answer, Pages, Reply, Status, Waiting, words},
    request::{Parsed, parse},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::fd::AsFd,
    time::{Duration, Instant},
};

/// Connections at once: a browser's, in a few windows.
const CONNECTIONS: usize = 8;
/// A request's line and headers.
const HEAD_MAX: usize = 8 << 10;
/// From the connection to the end of the request's head.
const READ_WITHIN: Duration = Duration::from_secs(2);
/// Until a client takes more of its answer; it may be behind a slow network (`ssh -L`).
const TAKE_WITHIN: Duration = Duration::from_secs(10);
/// Until it has taken all of it.
const WRITE_WITHIN: Duration = Duration::from_secs(120);
/// How often the run file is looked at for those who wait.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// So many connections are taken in a span, and no more before the next: a flood of them takes no
/// processor's time.
const ACCEPTED_IN_SPAN: usize = 8;
const SPAN: Duration = Duration::from_millis(50);
/// Where the kernel has no descriptor for a connection, it says so until there is one.
const PAUSE_OF_SHORTAGE: Duration = Duration::from_secs(1);
/// For those who wait, to be told of the end.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);

/// The clients of a page.
pub struct Connections {
    listener: TcpListener,
    pages: Pages,
    all: Vec<Connection>,
    /// When the next connection is taken.
    accepts_at: Instant,
    /// When the span began in which so many were taken.
    span: (Instant, usize),
    /// When the run file is looked at again.
    looks_at: Instant,
}

struct Connection {
    stream: TcpStream,
    state: State,
    /// When it is closed unless it goes on.
    deadline: Instant,
}

enum State {
    /// The beginning of a request.
    Reading(Vec<u8>),
    /// For newer data.
    Waiting(Waiting),
    /// An answer, of which so much is written; and when it has to be gone.
    Writing { answer: Answer, written: usize, until: Instant },
}

impl Connections {
    /// Nobody yet.
    pub fn of(listener: TcpListener, pages: Pages) -> io::Result<Connections> {
        listener.set_nonblocking(true)?;
        let now = Instant::now();
        Ok(Connections {
            listener,
            pages,
            all: Vec::new(),
            accepts_at: now,
            span: (now, 0),
            looks_at: now,
        })
    }

    /// Serves until `end` has something to read or is closed.
    pub fn serve(&mut self, end: &impl AsFd) -> io::Result<()> {
        while !self.turn(end)? {}
        self.tell_waiting(true);
        let until = Instant::now() + LAST_WORDS_WITHIN;
        self.all.retain(|it| matches!(it.state, State::Writing { .. }));
        while !self.all.is_empty() && Instant::now() < until {
            let ready = self.wait(None::<&TcpStream>, Some(until))?;
            self.advance(&ready.connections);
        }
        Ok(())
    }

    /// Waits for what comes next and does it; true at the end.
    fn turn(&mut self, end: &impl AsFd) -> io::Result<bool> {
        let ready = self.wait(Some(end), None)?;
        if ready.end {
            return Ok(true);
        }
        self.advance(&ready.connections);
        if ready.listener {
            self.accept();
        }
        self.tell_waiting(false);
        Ok(false)
    }

    fn wait(&self, end: Option<&impl AsFd>, until: Option<Instant>) -> io::Result<Ready> {
        let now = Instant::now();
        let accepts = end.is_some() && now >= self.accepts_at;
        let mut polled: Vec<PollFd> = Vec::with_capacity(CONNECTIONS + 2);
        polled.extend(self.all.iter().map(|it| PollFd::new(&it.stream, it.awaits())));
        polled.extend(accepts.then(|| PollFd::new(&self.listener, PollFlags::IN)));
        polled.extend(end.map(|end| PollFd::new(end, PollFlags::IN)));
        let deadlines = self.all.iter().map(|it| it.deadline);
        let waits = self.all.iter().any(|it| matches!(it.state, State::Waiting(_)));
        let next = deadlines
            .chain(waits.then_some(self.looks_at))
            .chain((end.is_some() && !accepts).then_some(self.accepts_at))
            .chain(until)
            .min();
        let patience = next.map(|next| {
            // Rounded up: not awake before.
            let left = next.saturating_duration_since(now) + Duration::from_millis(1);
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        match poll(&mut polled, patience.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = polled.iter().map(|it| !it.revents().is_empty());
        let connections = ready.by_ref().take(self.all.len()).collect();
        let listener = accepts && ready.next().unwrap_or_default();
        Ok(Ready { connections, listener, end: ready.next().unwrap_or_default() })
    }

    /// Reads and writes where that is possible, and closes what is over or too slow.
    fn advance(&mut self, ready: &[bool]) {
        let now = Instant::now();
        let pages = &mut self.pages;
        let mut ready = ready.iter();
        self.all.retain_mut(|it| {
            let ready = ready.next().copied().unwrap_or_default();
            let stays = !ready || it.advance(pages);
            stays && now < it.deadline
        });
    }

    fn accept(&mut self) {
        if self.span.0.elapsed() >= SPAN {
            self.span = (Instant::now(), 0);
        }
        while self.span.1 < ACCEPTED_IN_SPAN {
            self.span.1 += 1;
            match self.listener.accept() {
                Ok((stream, _)) => self.take(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // It has gone already.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    self.accepts_at = Instant::now() + PAUSE_OF_SHORTAGE;
                    return;
                }
            }
        }
        self.accepts_at = self.span.0 + SPAN;
    }

    /// A client who has asked already, as one does who means it, is answered at once. Else it takes
    /// the place of the one that has been silent for longest, where all are taken.
    fn take(&mut self, stream: TcpStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let mut new = Connection {
            stream,
            state: State::Reading(Vec::new()),
            deadline: Instant::now() + READ_WITHIN,
        };
        if !new.advance(&mut self.pages) {
            return;
        }
        if self.all.len() >= CONNECTIONS {
            let silent = |it: &Connection| matches!(it.state, State::Reading(_));
            let Some(at) = self.all.iter().position(silent) else { return };
            self.all.remove(at);
        }
        self.all.push(new);
    }

    /// Answers those who wait and for whom there is something.
    fn tell_waiting(&mut self, end: bool) {
        if !end && Instant::now() < self.looks_at {
            return;
        }
        self.looks_at = Instant::now() + LOOK_EVERY;
        let waiting: Vec<Waiting> = self.all.iter().filter_map(Connection::waiting).collect();
        if waiting.is_empty() {
            return;
        }
        let mut answers = self.pages.newer(&waiting, end).into_iter();
        self.all.retain_mut(|it| match it.waiting().and_then(|_| answers.next()).flatten() {
            Some(answer) => it.begin_to_write(answer),
            None => true,
        });
    }
}

struct Ready {
    connections: Vec<bool>,
    listener: bool,
    end: bool,
}

impl Connection {
    fn awaits(&self) -> PollFlags {
        match self.state {
            State::Reading(_) | State::Waiting(_) => PollFlags::IN,
            State::Writing { .. } => PollFlags::OUT,
        }
    }

    fn waiting(&self) -> Option<Waiting> {
        match self.state {
            State::Waiting(waiting) => Some(waiting),
            State::Reading(_) | State::Writing { .. } => None,
        }
    }

    /// Does what can be done without waiting; false when it is over.
    fn advance(&mut self, pages: &mut Pages) -> bool {
        match &mut self.state {
            State::Reading(_) => self.read(pages),
            // Who waits has nothing more to say: it has gone, or is none of ours.
            State::Waiting(_) => false,
            State::Writing { .. } => self.write(),
        }
    }

    fn read(&mut self, pages: &mut Pages) -> bool {
        let State::Reading(head) = &mut self.state else { return false };
        let mut part = [0; 1 << 10];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return false,
                Ok(bytes) => head.extend_from_slice(&part[..bytes]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
            let reply = match parse(head) {
                Parsed::Whole(request) => pages.reply(&request),
                Parsed::Part if head.len() < HEAD_MAX => continue,
                Parsed::Part | Parsed::Bad => Reply::Now(words(Status::Bad, "no request")),
            };
            return match reply {
                Reply::Now(answer) => self.begin_to_write(answer),
                Reply::Later(waiting) => {
                    self.state = State::Waiting(waiting);
                    // The pages end it.
                    self.deadline = Instant::now() + WRITE_WITHIN;
                    true
                }
            };
        }
    }

    fn begin_to_write(&mut self, answer: Answer) -> bool {
        let until = Instant::now() + WRITE_WITHIN;
        self.deadline = until.min(Instant::now() + TAKE_WITHIN);
        self.state = State::Writing { answer, written: 0, until };
        self.write()
    }

    fn write(&mut self) -> bool {
        let State::Writing { answer, written, until } = &mut self.state else { return false };
        while *written < answer.len() {
            match self.stream.write(&answer[*written..]) {
                Ok(0) => return false,
                Ok(bytes) => {
                    *written += bytes;
                    self.deadline = (*until).min(Instant::now() + TAKE_WITHIN);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
        // A client that has gone needs no end.
        let _ = self.stream.shutdown(Shutdown::Write);
        false
    }
}
