//! Several of a server's variables that are set together.

use crate::{WordError, word_serde};
use std::{collections::BTreeMap, fmt, str::FromStr};

/// Several of a server's variables that are set together, with a name for tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableSet {
    /// How tables call it.
    pub name: Option<String>,
    /// Variable to value, by the server's own names.
    pub variables: BTreeMap<String, String>,
}

impl VariableSet {
    /// With a name.
    pub fn named<'a>(
        name: &str,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> VariableSet {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        VariableSet {
            name: Some(name.to_owned()),
            variables: variables.into_iter().map(owned).collect(),
        }
    }

    /// For tables: its name, else what it sets.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => name.clone(),
            None => self.assignments(" ", ", "),
        }
    }

    /// What it sets: `innodb_io_capacity=1000, innodb_io_capacity_max=2000`.
    pub fn settings(&self) -> String {
        self.assignments("=", ", ")
    }

    fn assignments(&self, is: &str, and: &str) -> String {
        let each = |(name, value): (&String, &String)| format!("{name}{is}{value}");
        self.variables.iter().map(each).collect::<Vec<_>>().join(and)
    }
}

/// Whether a server could have a variable of this name; with a dot, one of an extension.
pub fn is_variable_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(letter)
}

/// `innodb_io_capacity=1000+innodb_io_capacity_max=2000`, with a name `disk: innodb_io_capacity=200`.
/// A `+` that no variable and `=` follow belongs to the value before it.
impl FromStr for VariableSet {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let wrong = |why: &str| {
            WordError::new(format!(
                "variables '{text}': {why}; write them like \
                 'disk: innodb_io_capacity=1000+innodb_io_capacity_max=2000', the name may be left out"
            ))
        };
        if text.contains(['\n', '\r', '\0']) {
            return Err(wrong("they are more than one line"));
        }
        let named = match text.split_once(':') {
            Some((name, rest)) if !name.contains('=') => Some((name.trim(), rest)),
            _ => None,
        };
        let (name, rest) = named.map_or((None, text), |(name, rest)| (Some(name), rest));
        if name == Some("") {
            return Err(wrong("the name before the colon is empty"));
        }
        let mut pairs: Vec<(String, String)> = Vec::new();
        for part in rest.split('+').filter(|_| !rest.trim().is_empty()) {
            let assigned = part
                .split_once('=')
                .map(|(variable, value)| (variable.trim(), value.trim()))
                .filter(|(variable, _)| is_variable_name(variable));
            match (assigned, pairs.last_mut()) {
                (Some((variable, value)), _) => pairs.push((variable.to_owned(), value.to_owned())),
                (None, Some((_, value))) => value.push_str(&format!("+{}", part.trim())),
                (None, None) => return Err(wrong("a variable with its value is missing")),
            }
        }
        if let Some((variable, _)) = pairs.iter().find(|(_, value)| value.is_empty()) {
            return Err(wrong(&format!("the value of {variable} is empty")));
        }
        if pairs.is_empty() && name.is_none() {
            return Err(wrong("they are empty"));
        }
        let count = pairs.len();
        let variables: BTreeMap<String, String> = pairs.into_iter().collect();
        if variables.len() != count {
            return Err(wrong("a variable is there twice"));
        }
        Ok(VariableSet { name: name.map(str::to_owned), variables })
    }
}

impl fmt::Display for VariableSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let assignments = self.assignments("=", "+");
        f.pad(&match &self.name {
            Some(name) if assignments.is_empty() => format!("{name}:"),
            Some(name) => format!("{name}: {assignments}"),
            None => assignments,
        })
    }
}

word_serde!(VariableSet);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_read_back_as_written() {
        for text in [
            "a=1+b=2",
            "both: a=1+b=2",
            "as configured:",
            "zone: log_timezone=GMT+1+work_mem=4MB",
            "innodb_data_file_path=ibdata1:12M:autoextend",
        ] {
            assert_eq!(text.parse::<VariableSet>().unwrap().to_string(), text);
        }
        let set: VariableSet = " both : b = 2 + a=1".parse().unwrap();
        assert_eq!(set.to_string(), "both: a=1+b=2");
        assert_eq!(set.label(), "both");
        assert_eq!(set.settings(), "a=1, b=2");
        assert_eq!("b=2+a=1".parse::<VariableSet>().unwrap().label(), "a 1, b 2");
        let zone: VariableSet = "log_timezone=GMT+1".parse().unwrap();
        assert_eq!(zone.variables["log_timezone"], "GMT+1");
    }

    #[test]
    fn what_is_no_set_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "empty"),
            (": a=1", "name"),
            ("fast", "missing"),
            ("a=", "value of a"),
            ("a=1+a=2", "twice"),
            ("a=1\nb=2", "more than one line"),
            ("+", "missing"),
        ] {
            let error = text.parse::<VariableSet>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
