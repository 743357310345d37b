//! Quantities that carry their unit in the type, and the words people write them with.
//!
//! What lives here: [`Nanos`], [`Bytes`], [`Sectors`], [`Rpm`], how each is parsed from text and
//! printed. What does not: anything that measures, reads a clock or touches a file. Every other
//! crate may use this one; it uses none of ours.

mod bytes;
mod nanos;
mod rpm;

pub use bytes::{Bytes, Sectors};
pub use nanos::Nanos;
pub use rpm::Rpm;

/// What was wrong with a quantity that somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text does not start with a number.
    #[error("'{text}' is not {what}: expected a number and a unit, such as {example}")]
    NoNumber {
        /// What was written.
        text: String,
        /// What kind of quantity was expected.
        what: &'static str,
        /// A well-formed example.
        example: &'static str,
    },
    /// A number without a unit, where one is required.
    #[error("'{text}' has no unit: write {what} with one, such as {example}")]
    NoUnit {
        /// What was written.
        text: String,
        /// What kind of quantity was expected.
        what: &'static str,
        /// A well-formed example.
        example: &'static str,
    },
    /// The unit is not one of this quantity's.
    #[error("'{text}' has an unknown unit '{unit}': {what} is written like {example}")]
    UnknownUnit {
        /// What was written.
        text: String,
        /// The part that was taken for the unit.
        unit: String,
        /// What kind of quantity was expected.
        what: &'static str,
        /// A well-formed example.
        example: &'static str,
    },
    /// Too large for the type, negative, or not a whole number of its grain.
    #[error("'{text}' is out of range for {what}")]
    OutOfRange {
        /// What was written.
        text: String,
        /// What kind of quantity was expected.
        what: &'static str,
    },
}

/// Splits `12.5 ms` into (12.5, "ms").
fn number_and_unit<'a>(
    text: &'a str,
    what: &'static str,
    example: &'static str,
) -> Result<(f64, &'a str), ParseError> {
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(trimmed.len());
    let no_number = || ParseError::NoNumber { text: text.to_owned(), what, example };
    let number: f64 = trimmed[..end].replace('_', "").parse().map_err(|_| no_number())?;
    Ok((number, trimmed[end..].trim()))
}

/// `number × scale` as a whole `u64`, or why not.
fn whole(text: &str, number: f64, scale: f64, what: &'static str) -> Result<u64, ParseError> {
    let value = number * scale;
    // 2^63: beyond it a f64 could not have said which integer was meant, and sums would overflow.
    if !(0.0..9.2e18).contains(&value) {
        return Err(ParseError::OutOfRange { text: text.to_owned(), what });
    }
    Ok(value.round() as u64)
}
