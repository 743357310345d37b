//! A private server for one test.

use database::{DatabaseError, Endpoint, Place, Programs, RunSpec, Running, Session, Shape};
use host::{Changes, HeldFolder, Host};
use record::Measurement;
use skipped::{Need, skip};
use std::{collections::BTreeMap, path::PathBuf, sync::atomic::AtomicBool};
use units::Nanos;
use workload::{DatabaseJob, Server, StorageEngine};

pub struct Private {
    programs: Programs,
    changes: Changes,
    running: Option<Running>,
    pub place: Place,
    // Removed last.
    _folder: tempfile::TempDir,
}

impl Private {
    /// Starts one; none where its packages are not here.
    pub fn start(test: &str, server: &str) -> Option<Private> {
        let host = Host::here();
        let program = named_program(server)?;
        let kind: Server = server.parse().unwrap();
        let found = Programs::find(&host, kind.private().unwrap(), program.as_deref());
        let programs = match found {
            Ok(programs) => programs,
            Err(error) => {
                let need = match server {
                    "mariadb" => Need::MariaDb,
                    "postgresql" => Need::PostgreSql,
                    _ => Need::Servers,
                };
                skip(need, &error.to_string());
                return None;
            }
        };
        let folder =
            tempfile::Builder::new().prefix("spindle-test-").tempdir_in("/var/tmp").unwrap();
        let run = folder.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let home = HeldFolder::open(&folder.path().canonicalize().unwrap()).unwrap();
        let place = Place { home, name: "data".to_owned(), run };
        let mut changes = Changes::begin_in(&host, folder.path(), test).unwrap();
        let job: DatabaseJob = "oltp_insert".parse().unwrap();
        let never = AtomicBool::new(false);
        let running =
            programs.install(&mut changes, &place, &job, &BTreeMap::new(), &never).unwrap();
        Some(Private { programs, changes, running: Some(running), place, _folder: folder })
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.running.as_ref().unwrap().endpoint
    }

    pub fn session(&self) -> Box<dyn Session> {
        self.endpoint().connect().unwrap()
    }

    pub fn load(&self, job: &str) {
        let shape = Shape::of(&job.parse().unwrap(), StorageEngine::InnoDb);
        let never = AtomicBool::new(false);
        database::load(&shape, self.endpoint(), 1, &never, &mut |_, _| {}).unwrap();
    }

    pub fn run(&self, job: &str, measure: Nanos) -> Result<Measurement, DatabaseError> {
        let job: DatabaseJob = job.parse().unwrap();
        let spec = RunSpec {
            job: &job,
            endpoint: self.endpoint(),
            clients: job.clients.unwrap_or(4),
            rate: job.rate,
            warmup: Nanos::ZERO,
            measure,
            seed: 5,
        };
        database::run(&spec, &AtomicBool::new(false), &mut || {}, &mut |_| {})
    }
}

/// The program of this server: the host's own (`Some(None)`), or what SPINDLE_SERVER_PROGRAM names. None
/// where that is of another server, which SPINDLE_SERVER names: then this test has nothing to do.
fn named_program(server: &str) -> Option<Option<PathBuf>> {
    match std::env::var("SPINDLE_SERVER") {
        Err(_) => Some(None),
        Ok(named) if named == server => {
            Some(std::env::var_os("SPINDLE_SERVER_PROGRAM").map(PathBuf::from))
        }
        Ok(_) => None,
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.programs.end(&mut self.changes, running, false).unwrap();
        }
    }
}
