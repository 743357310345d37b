//! What is wrong with a description of a device.

/// A description that no device can be built from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("impossible {part}: {what}")]
pub struct SpecError {
    /// The part of the description, as its profile names it.
    pub part: String,
    /// What was found and what was expected.
    pub what: String,
}

impl SpecError {
    /// An error in `part`.
    pub fn new(part: &str, what: impl Into<String>) -> Self {
        SpecError { part: part.to_owned(), what: what.into() }
    }
}
