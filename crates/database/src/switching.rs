//! Variables of a running server: set, and read back.

use crate::{Running, SqlError};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use units::Bytes;

/// Why a running server's variables are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSwitched {
    /// The server refuses to change a variable while it runs.
    #[error("the server does not change {variable} while it runs: {words}")]
    Refused {
        /// The variable.
        variable: String,
        /// The server's words.
        words: String,
    },
    /// The server made another value of it.
    #[error("the server made {took} of {variable}={wanted}")]
    Another {
        /// The variable.
        variable: String,
        /// What was asked for.
        wanted: String,
        /// What it is now.
        took: String,
    },
    /// The connection.
    #[error(transparent)]
    Sql(#[from] SqlError),
}

/// How long a server may take until new connections have a new configuration.
const PATIENCE: Duration = Duration::from_secs(5);

impl Running {
    /// Sets variables while the server runs, and reads them back.
    pub fn switch(&self, wanted: &BTreeMap<String, String>) -> Result<(), NotSwitched> {
        if wanted.is_empty() {
            return Ok(());
        }
        let mut session = self.endpoint.connect()?;
        // A value may be limited by that of another variable: the second time both are there.
        for again in [false, true] {
            for (variable, value) in wanted {
                match session.set_variable(variable, value) {
                    Ok(()) => {}
                    Err(error @ SqlError::Lost(_)) => return Err(error.into()),
                    Err(_) if !again => {}
                    Err(error) => {
                        return Err(NotSwitched::Refused {
                            variable: variable.clone(),
                            words: error.to_string(),
                        });
                    }
                }
            }
        }
        session.reload()?;
        let begun = Instant::now();
        loop {
            match self.differing(wanted)? {
                None => return Ok(()),
                Some(another) if begun.elapsed() > PATIENCE => return Err(another),
                Some(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The first variable that is not what it should be, as a new connection sees it.
    fn differing(
        &self,
        wanted: &BTreeMap<String, String>,
    ) -> Result<Option<NotSwitched>, SqlError> {
        let names: Vec<String> = wanted.keys().cloned().collect();
        let now: BTreeMap<String, String> =
            self.endpoint.connect()?.variables(&names)?.into_iter().collect();
        Ok(wanted.iter().find_map(|(variable, value)| {
            let took = now.get(&variable.to_lowercase()).map_or("", String::as_str);
            (!same_value(value, took)).then(|| NotSwitched::Another {
                variable: variable.clone(),
                wanted: value.clone(),
                took: took.to_owned(),
            })
        }))
    }
}

/// Whether a value as it is written and one as a server shows it are the same: `1` is `ON`, `16M` is
/// `16777216`, `0.50` is `0.5`.
pub fn same_value(written: &str, shown: &str) -> bool {
    let switch = |text: &str| match text.to_ascii_lowercase().as_str() {
        // MySQL's other word for innodb_doublewrite=ON; it goes on saying ON where it was on.
        "1" | "on" | "true" | "yes" | "detect_and_recover" => Some(true),
        "0" | "off" | "false" | "no" => Some(false),
        _ => None,
    };
    let number = |text: &str| text.parse::<f64>().ok();
    let size = |text: &str| text.parse::<Bytes>().ok();
    let both = |a: Option<bool>, b: Option<bool>| a.is_some() && a == b;
    written.eq_ignore_ascii_case(shown)
        || both(switch(written), switch(shown))
        || number(written).zip(number(shown)).is_some_and(|(a, b)| a == b)
        || size(written).zip(size(shown)).is_some_and(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::same_value;

    #[test]
    fn values_are_the_same_however_they_are_spelled() {
        for (written, shown) in [
            ("ON", "on"),
            ("1", "ON"),
            ("off", "0"),
            ("16M", "16777216"),
            ("0.50", "0.5"),
            ("o_direct", "O_DIRECT"),
            ("256MB", "256MB"),
            ("DETECT_AND_RECOVER", "ON"),
        ] {
            assert!(same_value(written, shown), "{written} {shown}");
        }
        for (written, shown) in
            [("ON", "OFF"), ("2", "1"), ("16M", "16"), ("fsync", ""), ("1", "2")]
        {
            assert!(!same_value(written, shown), "{written} {shown}");
        }
    }
}
