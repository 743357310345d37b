//! Units of a trace's times.

use std::{fmt, str::FromStr};
use units::Nanos;

/// The unit of a trace's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// 100 ns: Windows' ticks.
    Ticks,
    /// Nanoseconds.
    Nanos,
}

/// There is no unit of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time unit '{0}' is not known: there are s, ms, us, 100ns and ns")]
pub struct UnknownUnit(pub String);

impl TimeUnit {
    /// All.
    pub const ALL: [TimeUnit; 5] =
        [TimeUnit::Seconds, TimeUnit::Millis, TimeUnit::Micros, TimeUnit::Ticks, TimeUnit::Nanos];

    /// One of them.
    pub fn length(self) -> Nanos {
        Nanos(match self {
            TimeUnit::Seconds => 1_000_000_000,
            TimeUnit::Millis => 1_000_000,
            TimeUnit::Micros => 1_000,
            TimeUnit::Ticks => 100,
            TimeUnit::Nanos => 1,
        })
    }

    /// A number of them, with a fraction, exactly where it has no exponent; `None` when it is none, or beyond
    /// what fits.
    pub(crate) fn parse(self, text: &str) -> Option<Nanos> {
        let text = text.trim();
        if !text.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let length = u128::from(self.length().0);
        if text.contains(['e', 'E']) {
            let value: f64 = text.parse().ok()?;
            let ns = value * self.length().0 as f64;
            return (0.0..1.8e19).contains(&ns).then(|| Nanos(ns.round() as u64));
        }
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
        if !is_digits(whole) || !is_digits(part) {
            return None;
        }
        // More digits than a nanosecond has are of no use.
        let part = &part[..part.len().min(18)];
        let scale = 10u128.pow(part.len() as u32);
        let fraction = part.parse::<u128>().ok()? * length / scale;
        let ns = whole.parse::<u128>().ok()?.checked_mul(length)?.checked_add(fraction)?;
        // Ticks count from 1601: the difference of two fits even where they wrap.
        Some(Nanos((ns % u128::from(u64::MAX)) as u64))
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TimeUnit::Seconds => "s",
            TimeUnit::Millis => "ms",
            TimeUnit::Micros => "us",
            TimeUnit::Ticks => "100ns",
            TimeUnit::Nanos => "ns",
        })
    }
}

impl FromStr for TimeUnit {
    type Err = UnknownUnit;
    fn from_str(text: &str) -> Result<Self, UnknownUnit> {
        let found = TimeUnit::ALL.into_iter().find(|unit| unit.to_string() == text);
        found.ok_or_else(|| UnknownUnit(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        assert_eq!(
            TimeUnit::Seconds.parse("1456095145.133076001"),
            Some(Nanos(1456095145133076001))
        );
        assert_eq!(TimeUnit::Millis.parse("0.5"), Some(Nanos(500_000)));
        assert_eq!(TimeUnit::Ticks.parse("3"), Some(Nanos(300)));
        assert_eq!(TimeUnit::Millis.parse("1e3"), Some(Nanos(1_000_000_000)));
        for text in ["", "-1", "2 448003", "1.", ".5", "inf", "1.5x", "1e99"] {
            assert_eq!(TimeUnit::Seconds.parse(text), None, "{text}");
        }
        for unit in TimeUnit::ALL {
            assert_eq!(unit.to_string().parse(), Ok(unit));
        }
    }
}
