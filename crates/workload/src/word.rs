//! Words that people write and that must read back as they were written.

/// What was wrong with a word, in a sentence that says what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WordError {
    message: String,
}

impl WordError {
    /// With a whole sentence for its message.
    pub fn new(message: String) -> Self {
        WordError { message }
    }
}

impl From<units::ParseError> for WordError {
    fn from(error: units::ParseError) -> Self {
        WordError::new(error.to_string())
    }
}

/// Serialises a type as the word that `Display` prints and `FromStr` reads.
#[macro_export]
macro_rules! word_serde {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
