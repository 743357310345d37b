//! How other threads reach the queue's: answers without the model, and the mover's results.

use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
};
use std::{
    io,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// The answer to a request, while the model has it: valid if the request lies inside the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The tag.
    pub tag: u32,
    /// Bytes, or an error's negative number.
    pub result: i32,
}

impl Answer {
    /// This answer, or an I/O error if the request lay outside the device.
    pub fn with_result(self, inside: bool) -> Answer {
        Answer { result: if inside { self.result } else { -libc::EIO }, ..self }
    }
}

/// What other threads send to the queue's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// An answer without the model: it is bypassed, or was replaced.
    Answer(Answer),
    /// The data of a tag's request have been moved; or the error's number.
    DataMoved(u32, Result<(), i32>),
}

/// Messages for the queue's thread, and its wake-up.
#[derive(Debug)]
pub struct Mailbox {
    messages: Mutex<Vec<Message>>,
    /// There are messages.
    nonempty: AtomicBool,
    /// The queue's thread sleeps, or is about to.
    sleeps: AtomicBool,
    eventfd: OwnedFd,
}

impl Mailbox {
    /// An empty mailbox.
    pub fn new() -> io::Result<Mailbox> {
        Ok(Mailbox {
            messages: Mutex::default(),
            nonempty: AtomicBool::new(false),
            sleeps: AtomicBool::new(false),
            eventfd: eventfd(0, EventfdFlags::CLOEXEC)?,
        })
    }

    /// Adds a message, and wakes the queue's thread if it sleeps.
    pub fn put(&self, message: Message) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        self.nonempty.store(true, Ordering::SeqCst);
        if self.sleeps.swap(false, Ordering::SeqCst) {
            // The counter is read whenever it is not zero, so it cannot overflow.
            let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
        }
    }

    /// Takes all messages.
    pub fn take(&self, messages: &mut Vec<Message>) {
        if self.nonempty.swap(false, Ordering::SeqCst) {
            messages.append(&mut self.messages.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether there are messages; a hint that may be a moment old.
    pub fn has_messages(&self) -> bool {
        self.nonempty.load(Ordering::Relaxed)
    }

    /// Becomes readable when a message is added while the thread sleeps.
    pub fn eventfd(&self) -> &OwnedFd {
        &self.eventfd
    }

    /// Announces that the thread will sleep; `false` if there are messages.
    pub fn may_sleep(&self) -> bool {
        self.sleeps.store(true, Ordering::SeqCst);
        let empty = !self.nonempty.load(Ordering::SeqCst);
        if !empty {
            self.awake();
        }
        empty
    }

    /// The thread is awake: a message needs no wake-up.
    pub fn awake(&self) {
        self.sleeps.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_wakes_the_thread_only_if_it_sleeps() {
        let mailbox = Mailbox::new().unwrap();
        let answer = Answer { tag: 3, result: 4096 };
        let mut messages = Vec::new();
        let rings = || {
            let mut count = [0; 8];
            let mut polled =
                [rustix::event::PollFd::new(&mailbox.eventfd, rustix::event::PollFlags::IN)];
            let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
            let there = rustix::event::poll(&mut polled, Some(&now)).unwrap() == 1;
            there && rustix::io::read(&mailbox.eventfd, &mut count).is_ok()
        };
        mailbox.put(Message::Answer(answer));
        assert!(!rings(), "nobody sleeps");
        assert!(!mailbox.may_sleep(), "there is an answer");
        mailbox.take(&mut messages);
        assert!(mailbox.may_sleep());
        mailbox.put(Message::Answer(answer.with_result(false)));
        mailbox.put(Message::DataMoved(4, Ok(())));
        assert!(rings());
        mailbox.take(&mut messages);
        let error = Answer { result: -libc::EIO, ..answer };
        assert_eq!(
            messages,
            [Message::Answer(answer), Message::Answer(error), Message::DataMoved(4, Ok(()))]
        );
    }
}
