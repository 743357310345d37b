//! Quantities as profiles write them: text with a unit, never a bare number.

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use units::{Bytes, Nanos};

/// A time such as `"0.2 ms"`; a settling time may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time(pub i64);

/// A size such as `"64 KiB"`, in sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size(pub u64);

/// A rate such as `"300 MB/s"`, in bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate(pub u64);

impl Time {
    /// From ns.
    pub fn ns(ns: u64) -> Self {
        Time(ns as i64)
    }
}

impl Rate {
    /// The rate at which a sector takes so long.
    pub fn of_sector_ns(ns: u32) -> Self {
        match ns {
            0 => Rate(0),
            ns => Rate((512e9 / f64::from(ns)).round() as u64),
        }
    }

    /// The time of a 512-byte sector, ns.
    pub fn sector_ns(self) -> u32 {
        match self.0 {
            0 => 0,
            rate => (512e9 / rate as f64).round() as u32,
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns % 1_000_000 == 0 => write!(f, "{} ms", ns / 1_000_000),
            ns if ns % 1_000 == 0 => write!(f, "{} us", ns / 1_000),
            ns => write!(f, "{ns} ns"),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            sectors if sectors > 0 && sectors % 2048 == 0 => write!(f, "{} MiB", sectors / 2048),
            sectors if sectors % 2 == 0 => write!(f, "{} KiB", sectors / 2),
            sectors => write!(f, "{} B", sectors * 512),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            rate if rate % 1_000_000 == 0 => write!(f, "{} MB/s", rate / 1_000_000),
            rate => write!(f, "{rate} B/s"),
        }
    }
}

/// Text that is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum QuantityError {
    /// No number, or no unit that is known.
    #[error(transparent)]
    Parse(#[from] units::ParseError),
    /// A bare number.
    #[error("'{text}' has no unit: use one, such as {example}")]
    NoUnit {
        /// The text.
        text: String,
        /// What such a quantity looks like.
        example: &'static str,
    },
    /// A size that is no number of sectors.
    #[error("'{0}' is not a whole number of 512-byte sectors")]
    NotSectors(String),
    /// Something else than a rate.
    #[error("'{0}' is not a rate such as 300 MB/s")]
    NotARate(String),
    /// A rate of zero.
    #[error("'{0}' is a rate of zero")]
    ZeroRate(String),
}

fn parse_time(text: &str) -> Result<Time, QuantityError> {
    let (sign, rest) = match text.trim().strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let nanos: Nanos = rest.parse()?;
    Ok(Time(sign * nanos.0 as i64))
}

fn parse_size(text: &str) -> Result<Size, QuantityError> {
    if !text.contains(|c: char| c.is_ascii_alphabetic()) {
        return Err(QuantityError::NoUnit { text: text.to_owned(), example: "64 KiB" });
    }
    let bytes: Bytes = text.parse()?;
    match bytes.0 % 512 {
        0 => Ok(Size(bytes.0 / 512)),
        // Drive labels are decimal; a last partial sector does not count.
        _ if text.trim_end().ends_with("B") && bytes.0 >= 1_000_000 => Ok(Size(bytes.0 / 512)),
        _ => Err(QuantityError::NotSectors(text.to_owned())),
    }
}

fn parse_rate(text: &str) -> Result<Rate, QuantityError> {
    let size =
        text.trim().strip_suffix("/s").ok_or_else(|| QuantityError::NotARate(text.to_owned()))?;
    if !size.contains(|c: char| c.is_ascii_alphabetic()) {
        return Err(QuantityError::NoUnit { text: text.to_owned(), example: "300 MB/s" });
    }
    let bytes: Bytes = size.parse()?;
    match bytes.0 {
        0 => Err(QuantityError::ZeroRate(text.to_owned())),
        rate => Ok(Rate(rate)),
    }
}

/// Text in, text out; a bare number is refused with an example.
macro_rules! quantity {
    ($type:ty, $parse:path, $what:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_str<E: Error>(self, text: &str) -> Result<$type, E> {
                        $parse(text).map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }
    };
}

quantity!(Time, parse_time, "a time in quotes with its unit, such as \"0.2 ms\"");
quantity!(Size, parse_size, "a size in quotes with its unit, such as \"64 KiB\"");
quantity!(Rate, parse_rate, "a rate in quotes with its unit, such as \"300 MB/s\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for ns in [0, 200_000, -483_000, 283_620, 1_000_000, 7] {
            assert_eq!(parse_time(&Time(ns).to_string()), Ok(Time(ns)));
        }
        for sectors in [1, 2, 128, 2048, 561] {
            assert_eq!(parse_size(&Size(sectors).to_string()), Ok(Size(sectors)));
        }
        assert_eq!(parse_rate("300 MB/s"), Ok(Rate(300_000_000)));
        assert_eq!(Rate(300_000_000).sector_ns(), 1707);
        assert!(parse_size("64").is_err());
        assert!(parse_rate("300/s").is_err());
        assert!(parse_time("0.2").is_err());
    }
}
