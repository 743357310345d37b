//! Where a job's operations go, and the share of reads among them.

use crate::{WordError, word_serde};
use std::{fmt, str::FromStr};

/// Where operations go, and the share of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Where the next operation goes.
    pub order: Order,
    /// Reads in a hundred operations: 100 only reads, 0 only writes.
    pub read_percent: u8,
}

/// Where the next operation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Uniform over the whole target, aligned to the block size.
    Random,
    /// Onward from the last, in `streams` interleaved streams a client. All streams of all clients
    /// start evenly spread over the target.
    Sequential {
        /// Streams a client, at least 1.
        streams: u32,
    },
}

impl Pattern {
    /// Whether any operation reads.
    pub fn reads(self) -> bool {
        self.read_percent > 0
    }
    /// Whether any operation writes.
    pub fn writes(self) -> bool {
        self.read_percent < 100
    }
}

/// fio's words: `randread`, `randwrite`, `randrw:70` (70 % reads), `read`, `write`, `rw:70`; a
/// sequential one takes `*4` for four interleaved streams a client.
impl FromStr for Pattern {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let wrong = |why: &str| {
            WordError::new(format!(
                "pattern '{text}' {why}: write randread, randwrite, randrw:70, read, write, rw:70, \
                 or read*4 for four streams"
            ))
        };
        let (rest, streams) = match text.split_once('*') {
            Some((rest, count)) => match count.parse::<u32>() {
                Ok(streams @ 1..=1024) => (rest, Some(streams)),
                _ => return Err(wrong("has a number of streams outside 1 to 1024")),
            },
            None => (text, None),
        };
        let (word, percent) = match rest.split_once(':') {
            Some((word, percent)) => match percent.trim_end_matches('%').parse::<u8>() {
                Ok(percent @ 0..=100) => (word, Some(percent)),
                _ => return Err(wrong("has a share of reads outside 0 to 100")),
            },
            None => (rest, None),
        };
        let (random, read_percent) = match (word, percent) {
            ("randread", None) => (true, 100),
            ("randwrite", None) => (true, 0),
            ("randrw", percent) => (true, percent.unwrap_or(50)),
            ("read", None) => (false, 100),
            ("write", None) => (false, 0),
            ("rw" | "readwrite", percent) => (false, percent.unwrap_or(50)),
            ("randread" | "randwrite" | "read" | "write", Some(_)) => {
                return Err(wrong("takes no share of reads; randrw and rw do"));
            }
            _ => return Err(wrong("is not known")),
        };
        let order = match (random, streams) {
            (true, None) => Order::Random,
            (true, Some(_)) => return Err(wrong("is random and has no streams")),
            (false, streams) => Order::Sequential { streams: streams.unwrap_or(1) },
        };
        Ok(Pattern { order, read_percent })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (random, streams) = match self.order {
            Order::Random => (true, 1),
            Order::Sequential { streams } => (false, streams),
        };
        match (random, self.read_percent) {
            (true, 100) => f.write_str("randread")?,
            (true, 0) => f.write_str("randwrite")?,
            (true, percent) => write!(f, "randrw:{percent}")?,
            (false, 100) => f.write_str("read")?,
            (false, 0) => f.write_str("write")?,
            (false, percent) => write!(f, "rw:{percent}")?,
        }
        if streams > 1 { write!(f, "*{streams}") } else { Ok(()) }
    }
}

word_serde!(Pattern);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_read_back_as_written() {
        for text in ["randread", "randwrite", "randrw:70", "read", "write", "rw:30", "read*4"] {
            assert_eq!(text.parse::<Pattern>().unwrap().to_string(), text);
        }
        for text in ["random", "randread:70", "randread*2", "read*0", "rw:101", ""] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
