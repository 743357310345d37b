//! The variables that a server has, found at run time: which there are differs by version.

use crate::{VariableError, near::near};
use std::collections::BTreeMap;

/// A server's variables with their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The server, for messages: `MariaDB 10.11`.
    pub server: String,
    /// Name to default.
    pub variables: BTreeMap<String, String>,
    /// Those that Spindle sets itself: they cannot be compared.
    pub reserved: &'static [&'static str],
}

impl Catalog {
    /// Whether a variable exists and can be set.
    pub fn check(&self, name: &str) -> Result<(), VariableError> {
        if self.reserved.contains(&name) {
            return Err(VariableError::Reserved { name: name.to_owned() });
        }
        if self.variables.contains_key(name) {
            return Ok(());
        }
        let near = near(name, self.variables.keys().map(String::as_str));
        Err(VariableError::Unknown {
            server: self.server.clone(),
            name: name.to_owned(),
            near: near.into_iter().map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_variable_names_near_ones() {
        let variables = [("innodb_io_capacity".to_owned(), "200".to_owned())].into();
        let catalog = Catalog { server: "MariaDB 10.11".into(), variables, reserved: &["socket"] };
        assert_eq!(catalog.check("innodb_io_capacity"), Ok(()));
        let reason = catalog.check("innodb_io_capcity").unwrap_err().to_string();
        assert!(reason.contains("did you mean innodb_io_capacity?"), "{reason}");
        assert!(matches!(catalog.check("socket"), Err(VariableError::Reserved { .. })));
        let reason = catalog.check("colour").unwrap_err().to_string();
        assert!(!reason.contains("did you mean"), "{reason}");
    }
}
