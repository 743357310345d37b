//! What each preset stands for on a server that was found: one file a preset, and one line in
//! [`resolve`].
//!
//! The first level is the version's own default: what the server's program prints, and where it prints
//! none, what its manual says. Which variables there are is asked of the program.

mod aio;
mod capacity;
mod doublewrite;
mod durability;
mod flush;

use crate::Catalog;
use std::collections::BTreeMap;
use units::Bytes;
use workload::{
    AtomicLimit, DatabaseJob, Presence, Preset, PresetLimit, PrivateServer, VariableSet,
};

/// What a preset depends on.
pub struct Asked<'a> {
    /// The kind of server.
    pub kind: PrivateServer,
    /// Its name and version, for people.
    pub title: &'a str,
    /// Its variables and their defaults.
    pub catalog: &'a Catalog,
    /// The workload.
    pub job: &'a DatabaseJob,
    /// Variables that are set whatever the preset says.
    pub variables: &'a BTreeMap<String, String>,
    /// Whether writes of a size are atomic where the data will be.
    pub atomic: &'a dyn Fn(Bytes) -> Result<(), AtomicLimit>,
    /// The host's `kernel.io_uring_disabled`, where it keeps the server from io_uring.
    pub io_uring_disabled: Option<u32>,
    /// The host's processors: some defaults follow them.
    pub cpus: u64,
}

/// What a preset stands for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    /// Variables that every level has.
    pub fixed: BTreeMap<String, String>,
    /// The levels, the default first.
    pub sets: Vec<VariableSet>,
    /// What cannot be, and why.
    pub left_out: Vec<(VariableSet, PresetLimit)>,
}

/// What a preset stands for, before the server was asked about each value.
pub fn resolve(preset: Preset, asked: &Asked<'_>) -> Resolved {
    let mut draft = Draft { asked, base: BTreeMap::new(), resolved: Resolved::default() };
    match preset {
        Preset::Flush => flush::levels(&mut draft),
        Preset::Doublewrite => doublewrite::levels(&mut draft),
        Preset::Aio => aio::levels(&mut draft),
        Preset::Capacity => capacity::levels(&mut draft),
        Preset::Durability => durability::levels(&mut draft),
    }
    draft.resolved
}

/// A version as far as presets depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Release(u32, u32, u32);

impl Release {
    /// The last word of a title: `MariaDB 10.11.14`, `PostgreSQL 18.6`, `PostgreSQL 19beta1`.
    fn of(title: &str) -> Release {
        let word = title.split_whitespace().next_back().unwrap_or_default();
        let mut numbers = word.split('.').map(|part| {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            part[..digits].parse().unwrap_or(0)
        });
        let mut next = || numbers.next().unwrap_or(0);
        Release(next(), next(), next())
    }
}

/// Levels as they are collected.
struct Draft<'a> {
    asked: &'a Asked<'a>,
    /// What every level has unless it says otherwise: the defaults.
    base: BTreeMap<String, String>,
    resolved: Resolved,
}

impl Draft<'_> {
    fn release(&self) -> Release {
        Release::of(self.asked.title)
    }

    fn has(&self, variable: &str) -> bool {
        self.asked.catalog.variables.contains_key(variable)
    }

    /// The server's default, where its program prints one.
    fn printed(&self, variable: &str) -> Option<String> {
        // `postgres --describe-config` prints zeroes for numbers and booleans, whatever their defaults.
        let postgresql = self.asked.kind == PrivateServer::PostgreSql;
        let text = self.asked.catalog.variables.get(variable).filter(|_| !postgresql)?;
        match text.as_str() {
            "TRUE" => Some("ON".to_owned()),
            "FALSE" => Some("OFF".to_owned()),
            // What InnoDB computes when it starts is printed as the largest number.
            "" | "(No default value)" | "4294967295" | "18446744073709551615" => None,
            other => Some(other.to_owned()),
        }
    }

    /// Variables that levels are made of, with the manual's defaults for those that the program does
    /// not print; those that the server lacks are left away.
    fn base(&mut self, variables: &[(&str, &str)]) {
        for (name, manual) in variables {
            if self.has(name) {
                let value = self.printed(name).unwrap_or_else(|| (*manual).to_owned());
                self.base.insert((*name).to_owned(), value);
            }
        }
    }

    /// A variable that levels are made of, with the manual's default: where the program prints one that
    /// it does not start with.
    fn base_of_manual(&mut self, variable: &str, manual: &str) {
        if self.has(variable) {
            self.base.insert(variable.to_owned(), manual.to_owned());
        }
    }

    fn base_value(&self, variable: &str) -> &str {
        self.base.get(variable).map_or("", String::as_str)
    }

    fn set(&self, name: &str, changes: &[(&str, &str)]) -> VariableSet {
        let mut variables = self.base.clone();
        for (variable, value) in changes {
            variables.insert((*variable).to_owned(), (*value).to_owned());
        }
        VariableSet { name: Some(name.to_owned()), variables }
    }

    /// The defaults, as the first level.
    fn default_level(&mut self, name: &str) {
        let set = self.set(name, &[]);
        self.resolved.sets.push(set);
    }

    /// A level that differs from the defaults; one that does not is the default.
    fn level(&mut self, name: &str, changes: &[(&str, &str)]) {
        let set = self.set(name, changes);
        let same = |other: &VariableSet| {
            other.variables.len() == set.variables.len()
                && other
                    .variables
                    .iter()
                    .zip(&set.variables)
                    .all(|((a, x), (b, y))| a == b && x.eq_ignore_ascii_case(y))
        };
        if !self.resolved.sets.iter().any(same) {
            self.resolved.sets.push(set);
        }
    }

    /// A level of variables that the server may lack.
    fn level_if(&mut self, name: &str, changes: &[(&str, &str)], presence: Presence) {
        match changes.iter().find(|(variable, _)| !self.has(variable)) {
            None => self.level(name, changes),
            Some((variable, _)) => {
                let limit = PresetLimit::NoVariable {
                    server: self.asked.title.to_owned(),
                    variable: (*variable).to_owned(),
                    when: presence,
                };
                self.leave_out(name, changes, limit);
            }
        }
    }

    /// A level that cannot be; only what it changes is shown.
    fn leave_out(&mut self, name: &str, changes: &[(&str, &str)], limit: PresetLimit) {
        let set = VariableSet::named(name, changes.iter().copied());
        self.resolved.left_out.push((set, limit));
    }

    /// A level that could tear pages: only where atomic writes of a page are proven.
    fn level_if_atomic(&mut self, name: &str, changes: &[(&str, &str)], page: Bytes) {
        match (self.asked.atomic)(page) {
            Ok(()) => self.level(name, changes),
            Err(limit) => self.leave_out(name, changes, PresetLimit::Torn { page, limit }),
        }
    }

    /// InnoDB's page size.
    fn innodb_page(&self) -> Bytes {
        let named = self.asked.variables.get("innodb_page_size");
        named.and_then(|text| text.parse().ok()).unwrap_or(Bytes::from_kib(16))
    }
}

fn since(version: &str) -> Presence {
    Presence::Since(version.to_owned())
}

#[cfg(test)]
mod tests;
