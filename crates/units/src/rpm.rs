//! Revolutions a minute.

use crate::{Nanos, ParseError, number_and_unit};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A rotation speed, in revolutions a minute.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rpm(pub f64);

impl Rpm {
    /// The time of one turn.
    pub fn turn(self) -> Nanos {
        Nanos::from_secs_f64(60.0 / self.0)
    }
}

impl FromStr for Rpm {
    type Err = ParseError;

    /// `15000 rpm`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let what = "a rotation speed";
        let example = "15000 rpm";
        let (number, unit) = number_and_unit(text, what, example)?;
        let text = text.to_owned();
        match unit {
            "rpm" | "RPM" if (1.0..=1e6).contains(&number) => Ok(Rpm(number)),
            "rpm" | "RPM" => Err(ParseError::OutOfRange { text, what }),
            "" => Err(ParseError::NoUnit { text, what, example }),
            unit => Err(ParseError::UnknownUnit { text, unit: unit.to_owned(), what, example }),
        }
    }
}

impl TryFrom<String> for Rpm {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl From<Rpm> for String {
    fn from(rpm: Rpm) -> String {
        rpm.to_string()
    }
}

impl fmt::Display for Rpm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rpm", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_of_15000_rpm_is_4_ms() {
        assert_eq!("15000 rpm".parse::<Rpm>().map(Rpm::turn), Ok(Nanos::from_millis(4)));
        assert!("15000".parse::<Rpm>().is_err());
        assert!("0 rpm".parse::<Rpm>().is_err());
    }
}
