//! The variables that a server has, found at run time: which there are differs by version.

use crate::near::near;
use std::collections::BTreeMap;

/// A server's variables with their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The server, for messages: `MariaDB 10.11`.
    pub server: String,
    /// Name to default.
    pub variables: BTreeMap<String, String>,
    /// Those that Spindle sets itself and that are no factors, with the reason.
    pub own: &'static [&'static str],
}

impl Catalog {
    /// Why a variable cannot be set, in a sentence that names near ones.
    pub fn refuse(&self, name: &str) -> Option<String> {
        if self.own.contains(&name) {
            return Some(format!(
                "{name} is Spindle's to set: it keeps the private server apart from all others"
            ));
        }
        if self.variables.contains_key(name) {
            return None;
        }
        let close = near(name, self.variables.keys().map(String::as_str));
        let hint = match close.as_slice() {
            [] => String::new(),
            names => format!("; did you mean {}?", names.join(" or ")),
        };
        Some(format!("{} has no variable {name}{hint}", self.server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_variable_names_near_ones() {
        let variables = [("innodb_io_capacity".to_owned(), "200".to_owned())].into();
        let catalog = Catalog { server: "MariaDB 10.11".into(), variables, own: &["socket"] };
        assert_eq!(catalog.refuse("innodb_io_capacity"), None);
        let reason = catalog.refuse("innodb_io_capcity").unwrap();
        assert!(reason.contains("did you mean innodb_io_capacity?"), "{reason}");
        assert!(catalog.refuse("socket").unwrap().contains("Spindle's"));
        assert!(!catalog.refuse("colour").unwrap().contains("did you mean"));
    }
}
