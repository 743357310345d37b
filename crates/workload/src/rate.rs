//! Offered load: operations that arrive whether or not the device keeps up.

use crate::{WordError, word_serde};
use std::{fmt, str::FromStr};
use units::Nanos;

/// Operations a second, and how they are spaced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Operations a second of all clients together.
    pub per_second: f64,
    /// How they are spaced.
    pub arrivals: Arrivals,
}

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Independent of one another, as from many users: exponential gaps.
    Poisson,
    /// Evenly.
    Fixed,
    /// Independent of one another, all of them within the first part of each period: see [`BURST`].
    Bursts,
}

/// Of each period, the first, in which all arrivals of a bursty load fall: they come five times as fast then.
pub const BURST: Nanos = Nanos::from_millis(100);

/// From the beginning of one burst to that of the next.
pub const BURST_PERIOD: Nanos = Nanos::from_millis(500);

/// `2000/s` (Poisson), `poisson:2000/s`, `fixed:2000/s`, `bursts:2000/s`.
impl FromStr for Rate {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let (arrivals, rest) = match text.split_once(':') {
            Some(("poisson", rest)) => (Arrivals::Poisson, rest),
            Some(("fixed", rest)) => (Arrivals::Fixed, rest),
            Some(("bursts", rest)) => (Arrivals::Bursts, rest),
            None => (Arrivals::Poisson, text),
            Some((other, _)) => {
                return Err(WordError::new(format!(
                    "'{other}' in rate '{text}' is none of 'poisson', 'fixed' and 'bursts'"
                )));
            }
        };
        match rest.trim_end_matches("/s").parse::<f64>() {
            Ok(per_second) if per_second > 0.0 && per_second <= 1e8 => {
                Ok(Rate { per_second, arrivals })
            }
            _ => Err(WordError::new(format!(
                "rate '{text}' is not a number of operations a second, such as 2000/s or \
                 fixed:2000/s"
            ))),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrivals = match self.arrivals {
            Arrivals::Poisson => "poisson",
            Arrivals::Fixed => "fixed",
            Arrivals::Bursts => "bursts",
        };
        f.pad(&format!("{arrivals}:{}/s", self.per_second))
    }
}

word_serde!(Rate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_back_as_written() {
        assert_eq!("2000/s".parse::<Rate>().unwrap().to_string(), "poisson:2000/s");
        assert_eq!("fixed:0.5/s".parse::<Rate>().unwrap().to_string(), "fixed:0.5/s");
        assert_eq!("bursts:300/s".parse::<Rate>().unwrap().to_string(), "bursts:300/s");
        for text in ["", "0", "-1/s", "often", "uniform:3/s", "1e99"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
