//! Time as whole nanoseconds.

use crate::{ParseError, number_and_unit, whole};
use serde::{Deserialize, Serialize};
use std::{fmt, ops, str::FromStr};

/// A point in time or a span of it, in nanoseconds. No floats in a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Time zero, or no time at all.
    pub const ZERO: Nanos = Nanos(0);
    /// Further away than any run lasts.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// From whole microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Nanos(micros * 1_000)
    }
    /// From whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Nanos(millis * 1_000_000)
    }
    /// From whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Nanos(secs * 1_000_000_000)
    }
    /// From seconds with a fraction; negative and NaN become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Nanos((secs.max(0.0) * 1e9).round() as u64)
    }
    /// From milliseconds with a fraction; negative and NaN become zero.
    pub fn from_millis_f64(millis: f64) -> Self {
        Nanos((millis.max(0.0) * 1e6).round() as u64)
    }
    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// In milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// In microseconds.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// `self − other`, or zero if `other` is later.
    pub fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
    /// As the standard library's duration.
    pub fn as_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(duration: std::time::Duration) -> Self {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl ops::Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}
impl ops::AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}
impl ops::Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}
impl ops::Mul<u64> for Nanos {
    type Output = Nanos;
    fn mul(self, times: u64) -> Nanos {
        Nanos(self.0 * times)
    }
}
impl ops::Div<u64> for Nanos {
    type Output = Nanos;
    fn div(self, parts: u64) -> Nanos {
        Nanos(self.0 / parts)
    }
}

/// Three significant figures in the unit that suits: `850 ns`, `24.1 µs`, `3.50 ms`, `12.0 s`,
/// `3m 20s`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let text = match self.0 {
            0..1_000 => format!("{} ns", self.0),
            1_000..999_500 => format!("{} µs", three_figures(ns / 1e3)),
            999_500..999_500_000 => format!("{} ms", three_figures(ns / 1e6)),
            999_500_000..120_000_000_000 => format!("{} s", three_figures(ns / 1e9)),
            _ => long_span((ns / 1e9).round() as u64),
        };
        f.pad(&text)
    }
}

fn three_figures(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

fn long_span(secs: u64) -> String {
    let (hours, minutes, secs) = (secs / 3600, secs / 60 % 60, secs % 60);
    match (hours, minutes, secs) {
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m}m {s:02}s"),
        (h, m, _) => format!("{h}h {m:02}m"),
    }
}

const WHAT: &str = "a time";
const EXAMPLE: &str = "30s, 500ms, 75us or 3m";

impl FromStr for Nanos {
    type Err = ParseError;

    /// `30s`, `3.5 ms`, `75us`, `75 µs`, `10ns`, `3m`, `2h`, `1h30m`. A unit is required.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut rest = text.trim();
        let mut total = 0u64;
        loop {
            let (number, tail) = number_and_unit(rest, WHAT, EXAMPLE)?;
            let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
            let unit = tail[..end].trim();
            let scale = match unit {
                "ns" => 1.0,
                "us" | "µs" | "μs" => 1e3,
                "ms" => 1e6,
                "s" | "sec" => 1e9,
                "m" | "min" => 60e9,
                "h" => 3600e9,
                "" => {
                    return Err(ParseError::NoUnit {
                        text: text.to_owned(),
                        what: WHAT,
                        example: EXAMPLE,
                    });
                }
                other => {
                    return Err(ParseError::UnknownUnit {
                        text: text.to_owned(),
                        unit: other.to_owned(),
                        what: WHAT,
                        example: EXAMPLE,
                    });
                }
            };
            total = total
                .checked_add(whole(text, number, scale, WHAT)?)
                .ok_or_else(|| ParseError::OutOfRange { text: text.to_owned(), what: WHAT })?;
            rest = tail[end..].trim();
            if rest.is_empty() {
                return Ok(Nanos(total));
            }
        }
    }
}

/// As whole nanoseconds in records.
impl Serialize for Nanos {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

/// A number is nanoseconds; text carries its unit.
impl<'de> Deserialize<'de> for Nanos {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Nanos;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "{WHAT} with its unit, such as {EXAMPLE}")
            }
            fn visit_u64<E>(self, value: u64) -> Result<Nanos, E> {
                Ok(Nanos(value))
            }
            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Nanos, E> {
                value.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, ns) in [
            ("30s", 30_000_000_000),
            ("3.5 ms", 3_500_000),
            ("75 µs", 75_000),
            ("75us", 75_000),
            ("3m", 180_000_000_000),
            ("1h30m", 5_400_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(ns)), "{text}");
        }
    }

    #[test]
    fn refuses_a_bare_number_and_a_wrong_unit() {
        let message = "30".parse::<Nanos>().unwrap_err().to_string();
        assert!(message.contains("no unit"), "{message}");
        let message = "30 parsecs".parse::<Nanos>().unwrap_err().to_string();
        assert!(message.contains("'parsecs'"), "{message}");
        assert!("-1s".parse::<Nanos>().is_err());
    }

    #[test]
    fn prints_three_figures() {
        assert_eq!(Nanos(850).to_string(), "850 ns");
        assert_eq!(Nanos(24_100).to_string(), "24.1 µs");
        assert_eq!(Nanos(3_500_000).to_string(), "3.50 ms");
        assert_eq!(Nanos(999_700).to_string(), "1.00 ms");
        assert_eq!(Nanos::from_secs(200).to_string(), "3m 20s");
        assert_eq!(Nanos::from_secs(180).to_string(), "3 min");
    }
}
