//! Statements and their answers on a connection that the `mysql` crate has opened: what a client does
//! hundreds of thousands of times, without a value being made of any row.
//!
//! A thread that sleeps in a socket's receive call is woken on Linux as well when its own message is
//! taken from the other end (there is room to write again), finds nothing, and sleeps again: two switches
//! a query. One that waits in poll for something to read is woken for that alone.
//!
//! Packets: the [client/server protocol](https://mariadb.com/kb/en/clientserver-protocol/).

use super::{Arg, SqlError, refused};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::{BorrowedFd, OwnedFd},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};
use std::os::fd::RawFd;

const COM_QUERY: u8 = 0x03;
const COM_STMT_EXECUTE: u8 = 0x17;

/// A packet's length (three bytes) and number.
const HEADER: usize = 4;
/// A packet of that length goes on in the next one: no statement or row of ours is near it.
const LONGEST: usize = 0xff_ffff;
const MORE_RESULTS_EXIST: u16 = 0x0008;
/// An end-of-file packet's length; what ends rows where those are deprecated is longer.
const EOF_LENGTH: usize = 5;

/// A connection's socket, for as long as nothing else is on its way there.
pub(super) struct Wire {
    socket: OwnedFd,
    out: Vec<u8>,
    received: Vec<u8>,
    /// How much of `received` has been read, and how much of it there is.
    read: usize,
    filled: usize,
}

impl Wire {
    /// On the socket of a connection that stands.
    pub(super) fn on(socket: RawFd) -> std::io::Result<Wire> {
        // SAFETY: the caller holds the connection that owns the descriptor, and the borrow ends with the
        // next line, which duplicates it.
        #[allow(unsafe_code)]
        let borrowed = unsafe { BorrowedFd::borrow_raw(socket) };
        let socket = borrowed.try_clone_to_owned()?;
        let (out, received) = (Vec::with_capacity(512), vec![0; 16 << 10]);
        Ok(Wire { socket, out, received, read: 0, filled: 0 })
    }

    /// Runs a prepared statement and reads its answer; how many rows it changed, or gave.
    pub(super) fn execute(&mut self, statement: u32, args: &[Arg<'_>]) -> Result<u64, SqlError> {
        self.begin(COM_STMT_EXECUTE);
        self.out.extend(statement.to_le_bytes());
        // No cursor; one execution.
        self.out.extend([0, 1, 0, 0, 0]);
        put_args(&mut self.out, args);
        self.exchange()
    }

    /// Sends a statement as text and reads its answer.
    pub(super) fn query(&mut self, sql: &str) -> Result<u64, SqlError> {
        self.begin(COM_QUERY);
        self.out.extend(sql.as_bytes());
        self.exchange()
    }

    fn begin(&mut self, command: u8) {
        self.out.clear();
        self.out.extend([0; HEADER]);
        self.out.push(command);
    }

    fn exchange(&mut self) -> Result<u64, SqlError> {
        let length = self.out.len() - HEADER;
        if length >= LONGEST {
            return Err(SqlError::Refused(format!("a statement of {length} bytes is too long")));
        }
        self.out[..3].copy_from_slice(&length.to_le_bytes()[..3]);
        let mut rest = &self.out[..];
        while !rest.is_empty() {
            let sent = send(&self.socket, rest, SendFlags::NOSIGNAL).map_err(lost)?;
            rest = &rest[sent..];
        }
        let mut rows = 0;
        loop {
            let (of_this, more) = self.result()?;
            rows += of_this;
            if !more {
                return Ok(rows);
            }
        }
    }

    /// One result: the rows that it changed, or gave, and whether another result follows.
    fn result(&mut self) -> Result<(u64, bool), SqlError> {
        let first = self.packet()?;
        match first.first() {
            Some(0x00) => return ended(first),
            Some(0xff) => return Err(error(first)),
            _ => {}
        }
        let (columns, rest) = number(first).ok_or_else(|| garbled("no count of columns"))?;
        // A server that knows that the client keeps a statement's columns says whether it sends them.
        let described = rest.first() != Some(&0);
        for _ in 0..if described { columns } else { 0 } {
            self.packet()?;
        }
        let (mut rows, mut columns_ended) = (0, false);
        loop {
            let packet = self.packet()?;
            match packet.first() {
                Some(0xff) => return Err(error(packet)),
                Some(0xfe) if packet.len() == EOF_LENGTH && !columns_ended => columns_ended = true,
                Some(0xfe) => return ended(packet).map(|(_, more)| (rows, more)),
                _ => rows += 1,
            }
        }
    }

    /// The next packet's payload.
    fn packet(&mut self) -> Result<&[u8], SqlError> {
        self.have(HEADER)?;
        let header = &self.received[self.read..];
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        if length == LONGEST {
            return Err(garbled("a packet of 16 MiB"));
        }
        self.have(HEADER + length)?;
        let begin = self.read + HEADER;
        self.read = begin + length;
        Ok(&self.received[begin..self.read])
    }

    /// Waits until so many bytes are there that have not been read.
    fn have(&mut self, wanted: usize) -> Result<(), SqlError> {
        if self.read == self.filled {
            (self.read, self.filled) = (0, 0);
        }
        while self.filled - self.read < wanted {
            if self.received.len() < self.read + wanted {
                self.received.copy_within(self.read..self.filled, 0);
                self.filled -= std::mem::take(&mut self.read);
                self.received.resize(self.received.len().max(wanted), 0);
            }
            match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(lost(error)),
            }
            let free = &mut self.received[self.filled..];
            self.filled += match recv(&self.socket, free, RecvFlags::empty()) {
                Ok((0, _)) => {
                    return Err(SqlError::Lost("the server closed the connection".into()));
                }
                Ok((length, _)) => length,
                Err(Errno::INTR) => 0,
                Err(error) => return Err(lost(error)),
            };
        }
        Ok(())
    }
}

fn lost(error: Errno) -> SqlError {
    SqlError::Lost(std::io::Error::from(error).to_string())
}

fn garbled(what: &str) -> SqlError {
    SqlError::Lost(format!("the server's answer makes no sense: {what}"))
}

/// What ends a result: how many rows were changed, and whether another result follows.
fn ended(packet: &[u8]) -> Result<(u64, bool), SqlError> {
    let parsed = || {
        if packet.len() == EOF_LENGTH && packet[0] == 0xfe {
            return Some((0, packet.get(3..5)?));
        }
        let (changed, rest) = number(&packet[1..])?;
        let (_last_id, rest) = number(rest)?;
        Some((changed, rest.get(..2)?))
    };
    let (changed, status) = parsed().ok_or_else(|| garbled("the end of a result is cut short"))?;
    let status = u16::from_le_bytes([status[0], status[1]]);
    Ok((changed, status & MORE_RESULTS_EXIST != 0))
}

/// The server's own words: 0xff, a code of two bytes, a mark and five letters of state, the message.
fn error(packet: &[u8]) -> SqlError {
    let Some(&[low, high]) = packet.get(1..3) else { return garbled("an error is cut short") };
    let message = match &packet[3..] {
        [b'#', _, _, _, _, _, message @ ..] => message,
        message => message,
    };
    refused(u16::from_le_bytes([low, high]), &String::from_utf8_lossy(message))
}

/// A length-encoded whole number, and what comes after it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let length = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => return None,
        value => return Some((u64::from(value), rest)),
    };
    let (number, rest) = rest.split_at_checked(length)?;
    let value = number.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
    Some((value, rest))
}

fn put_number(out: &mut Vec<u8>, value: usize) {
    match value {
        0..=0xfa => out.push(value as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend((value as u16).to_le_bytes());
        }
        _ => {
            out.push(0xfe);
            out.extend((value as u64).to_le_bytes());
        }
    }
}

/// Which values are NULL, a type for each (sent each time), and those that are not NULL.
fn put_args(out: &mut Vec<u8>, args: &[Arg<'_>]) {
    if args.is_empty() {
        return;
    }
    let nulls = out.len();
    out.resize(nulls + args.len().div_ceil(8), 0);
    out.push(1);
    for (at, arg) in args.iter().enumerate() {
        // The protocol's numbers for LONGLONG, VAR_STRING and NULL.
        let kind = match arg {
            Arg::Int(_) => 8,
            Arg::Text(_) => 253,
            Arg::Null => {
                out[nulls + at / 8] |= 1 << (at % 8);
                6
            }
        };
        out.extend([kind, 0]);
    }
    for arg in args {
        match arg {
            Arg::Int(value) => out.extend(value.to_le_bytes()),
            Arg::Text(text) => {
                put_number(out, text.len());
                out.extend(text.as_bytes());
            }
            Arg::Null => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read, Write},
        os::{fd::AsRawFd, unix::net::UnixStream},
    };

    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut packet = (payload.len() as u32).to_le_bytes().to_vec();
        packet[3] = 1;
        packet.extend(payload);
        packet
    }

    /// What comes of an answer that arrives in pieces of that many bytes, after which the server goes.
    fn of(packets: &[&[u8]], piece: usize) -> Result<u64, SqlError> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let answer: Vec<u8> = packets.iter().flat_map(|payload| packet(payload)).collect();
        let server = std::thread::spawn(move || {
            let mut said = [0; 64];
            let length = theirs.read(&mut said).unwrap();
            for piece in answer.chunks(piece) {
                theirs.write_all(piece).unwrap();
            }
            said[..length].to_vec()
        });
        let ended = Wire::on(ours.as_raw_fd()).unwrap().query("SELECT c");
        assert_eq!(server.join().unwrap(), b"\x09\0\0\0\x03SELECT c");
        ended
    }

    const OK: &[u8] = &[0, 7, 0, 2, 0, 0, 0];
    const OK_AS_END: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];
    const MORE: &[u8] = &[0, 5, 0, 10, 0, 0, 0];
    const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
    const REFUSED: &[u8] = b"\xff\x28\x04#42000You have an error";
    const ROW: &[u8] = &[0, 0, 1, b'c'];

    #[test]
    fn answers_of_every_form_are_counted() {
        let long_row = vec![0; 70_000];
        let cases: [(&[&[u8]], u64); 9] = [
            (&[OK], 7),
            (&[MORE, OK], 12),
            // Two columns, described, with the end of rows in either form.
            (&[&[2], b"def a", b"def b", ROW, ROW, OK_AS_END], 2),
            (&[&[2], b"def a", b"def b", EOF, ROW, ROW, EOF], 2),
            (&[&[1], b"def a", EOF, EOF], 0),
            (&[&[1], b"def a", OK_AS_END], 0),
            // The columns that the client keeps.
            (&[&[2, 0], ROW, OK_AS_END], 1),
            (&[&[2, 1], b"def a", b"def b", ROW, OK_AS_END], 1),
            (&[&[1], b"def a", &long_row, ROW, OK_AS_END], 2),
        ];
        for (packets, rows) in cases {
            for piece in [1, 3, 4, 5, 7, 1 << 20] {
                assert_eq!(of(packets, piece), Ok(rows), "{packets:?} by {piece}");
            }
        }
    }

    #[test]
    fn errors_have_the_servers_words_and_what_makes_no_sense_loses_the_connection() {
        let refused = SqlError::Permanent("You have an error (1064)".into());
        let of_either: [&[&[u8]]; 2] = [&[REFUSED], &[&[1], b"def a", ROW, REFUSED]];
        for packets in of_either {
            assert_eq!(of(packets, 3), Err(refused.clone()));
        }
        let deadlock = b"\xff\xbd\x04#40001Deadlock found";
        assert_eq!(of(&[deadlock], 9), Err(SqlError::Retry("Deadlock found (1213)".into())));
        let duplicate = b"\xff\x26\x04Duplicate entry";
        assert_eq!(of(&[duplicate], 9), Err(SqlError::Duplicate("Duplicate entry (1062)".into())));
        let senseless: [&[&[u8]]; 7] =
            [&[], &[&[]], &[&[0, 7]], &[&[0xfb]], &[&[0xff, 1]], &[&[1]], &[&[1], b"def a", ROW]];
        for packets in senseless {
            let ended = of(packets, 2);
            assert!(matches!(ended, Err(SqlError::Lost(_))), "{packets:?}: {ended:?}");
        }
    }

    #[test]
    fn values_are_written_as_the_protocol_has_them() {
        let mut out = Vec::new();
        put_args(&mut out, &[]);
        assert!(out.is_empty());
        let long = "x".repeat(300);
        put_args(&mut out, &[Arg::Int(-2), Arg::Null, Arg::Text("ab"), Arg::Text(&long)]);
        let (head, text) = out.split_at(out.len() - 300);
        let types = [8, 0, 6, 0, 253, 0, 253, 0];
        let expected =
            [&[0b10, 1][..], &types[..], &(-2_i64).to_le_bytes(), &[2, b'a', b'b'], &[0xfc, 44, 1]];
        assert_eq!(head, expected.concat());
        assert_eq!(text, long.as_bytes());
    }

    #[test]
    fn numbers_read_back() {
        for value in [0, 1, 250, 251, 252, 255, 65_535, 65_536, 1 << 40] {
            let mut out = Vec::new();
            put_number(&mut out, value);
            out.push(9);
            assert_eq!(number(&out), Some((value as u64, &[9][..])));
        }
        let cut: [&[u8]; 6] = [&[], &[0xfc, 1], &[0xfd, 1, 2], &[0xfe, 0, 0, 0], &[0xfb], &[0xff]];
        for short in cut {
            assert_eq!(number(short), None);
        }
    }
}
