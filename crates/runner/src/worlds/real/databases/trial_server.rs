//! The server of a trial: what it says when something is wrong, what must hold after the trial.

use super::{trial, void};
use crate::WorldError;
use database::{DatabaseError, Place, Programs, Running, Settings, check_data, same_value};
use record::{Measurement, Warning};
use std::collections::BTreeMap;
use workload::{DatabaseJob, Workload};

/// The server of a trial.
pub struct TrialServer {
    /// `None` for a server that Spindle did not start.
    pub programs: Option<Programs>,
    pub running: Running,
    /// Where it lives; `None` like its programs.
    pub place: Option<Place>,
    /// What it was started with.
    pub set: Settings,
    /// The variables that are read back.
    pub names: Vec<String>,
}

impl TrialServer {
    /// Why a trial does not count, in the server's own words where it has any.
    pub fn why(&mut self, error: DatabaseError) -> WorldError {
        let DatabaseError::Void(told) = error else { return trial(error) };
        // A server that was killed is seen by its clients first.
        let mut ended = None;
        for _ in 0..40 {
            ended = self.running.ended();
            if ended.is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(25));
        }
        let words = self.running.words();
        void(match (ended, self.running.trouble()) {
            (Some(how), _) => format!(
                "the server ended ({how}), and a client got: {told}; the server's last words: {words}"
            ),
            (None, Some(trouble)) => format!("{told}; the server says: {trouble}"),
            (None, None) => told,
        })
    }

    /// What must hold after a trial.
    pub fn check(
        &mut self,
        job: &DatabaseJob,
        measurement: &mut Measurement,
    ) -> Result<(), WorldError> {
        if let Some(how) = self.running.ended() {
            let words = self.running.words();
            return Err(void(format!(
                "the server ended ({how}) during the trial; its last words: {words}"
            )));
        }
        if let Some(trouble) = self.running.trouble() {
            return Err(void(format!("the server's log tells of trouble: {trouble}")));
        }
        let checks = check_data(job, &self.running.endpoint).map_err(|error| {
            void(format!("the data could not be checked after the trial: {error}"))
        })?;
        let Some(transactions) = &mut measurement.transactions else { return Ok(()) };
        transactions.checks.extend(checks);
        let failed: Vec<String> = transactions
            .checks
            .iter()
            .filter(|check| !check.holds)
            .map(|check| format!("{} ({})", check.name, check.found))
            .collect();
        match failed.is_empty() {
            true => Ok(()),
            false => Err(void(format!(
                "a check of the data failed after the trial: {}",
                failed.join(", ")
            ))),
        }
    }
}

impl TrialServer {
    /// Variables of which the server made something else: levels, which it may have been switched to, and what it was
    /// started with beside them.
    pub fn another_values(
        &self,
        workload: &Workload,
        applied: &[(String, String)],
    ) -> Vec<Warning> {
        let mut wanted: BTreeMap<String, String> = self.set.iter().cloned().collect();
        wanted.extend(workload.variables.clone());
        another_values(self.running.name, &wanted, applied)
    }
}

fn another_values(
    server: &str,
    wanted: &BTreeMap<String, String>,
    applied: &[(String, String)],
) -> Vec<Warning> {
    let took = |name: &str| {
        let name = format!("{server}.{}", name.to_lowercase());
        applied.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    };
    // The server shows whether there is a binary log, and takes its name.
    let compared = wanted.iter().filter(|(name, _)| *name != "log_bin");
    compared
        .filter_map(|(name, wanted)| Some((name, wanted, took(name)?)))
        .filter(|(_, wanted, took)| !same_value(wanted, took))
        .map(|(name, wanted, took)| Warning::AnotherValue {
            variable: name.clone(),
            wanted: wanted.clone(),
            took: took.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_of_which_the_server_made_another_is_told() {
        let pairs = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let levels = [
            ("innodb_linux_aio", "io_uring"),
            ("innodb_doublewrite", "1"),
            ("innodb_buffer_pool_size", "256M"),
            ("log_bin", "binlog"),
            ("not_read_back", "1"),
        ];
        let variables = pairs(&levels).into_iter().collect();
        let applied = pairs(&[
            ("mariadb.innodb_buffer_pool_size", "268435456"),
            ("mariadb.innodb_doublewrite", "ON"),
            ("mariadb.innodb_linux_aio", "aio"),
            ("mariadb.log_bin", "ON"),
        ]);
        let warnings = another_values("mariadb", &variables, &applied);
        assert_eq!(
            warnings,
            [Warning::AnotherValue {
                variable: "innodb_linux_aio".to_owned(),
                wanted: "io_uring".to_owned(),
                took: "aio".to_owned(),
            }]
        );
    }
}
