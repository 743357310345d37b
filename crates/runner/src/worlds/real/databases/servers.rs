//! What a plan of databases asks of this host: the servers there are, why one cannot be used, what
//! will be made.

use super::super::RealTarget;
use database::{Catalog, Claim, DatabaseError, Programs, Settings, Shape};
use plan::{Intention, Plan, Refusal};
use std::{cell::RefCell, collections::BTreeMap, path::PathBuf};
use units::Bytes;
use workload::{DatabaseJob, Server, StorageEngine, Workload};

/// What the host has of servers, looked up when first asked.
#[derive(Default)]
pub struct Servers {
    found: RefCell<BTreeMap<String, Result<Found, String>>>,
    /// Values of variables that a server was asked of, and why it would not take them.
    values: RefCell<BTreeMap<(String, String), Option<String>>>,
}

/// A server that can be used.
struct Found {
    /// None for one that runs already.
    private: Option<(Programs, Catalog)>,
}

impl Servers {
    /// Asks something of a server, or says why there is none.
    fn ask<T>(
        &self,
        target: &RealTarget,
        server: &Server,
        ask: impl FnOnce(&Found) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut all = self.found.borrow_mut();
        let found = all
            .entry(server.to_string())
            .or_insert_with(|| find(target, server).map_err(|error| error.to_string()));
        ask(found.as_ref().map_err(Clone::clone)?)
    }

    /// Why a server would not take a value; each is asked of it once.
    fn refuse_value(&self, programs: &Programs, name: &str, value: &str) -> Option<String> {
        let key = (format!("{} {name}", programs.name()), value.to_owned());
        let mut values = self.values.borrow_mut();
        values.entry(key).or_insert_with(|| programs.refuse_value(name, value)).clone()
    }

    /// A private server's title, such as `MariaDB 10.11.14`.
    fn title(&self, target: &RealTarget, server: &Server) -> Option<String> {
        let title = |found: &Found| {
            Ok(found.private.as_ref().map(|(programs, _)| programs.title().to_owned()))
        };
        self.ask(target, server, title).ok().flatten()
    }

    /// What a private server is told; nothing for one that is not ours.
    fn settings(&self, target: &RealTarget, workload: &Workload) -> Option<(String, Settings)> {
        let job = workload.database.as_ref()?;
        let settings = |found: &Found| {
            Ok(found.private.as_ref().map(|(programs, _)| {
                let told = programs.settings(job, workload.clients(), &workload.variables);
                (programs.name().to_owned(), told)
            }))
        };
        self.ask(target, &job.server, settings).ok().flatten()
    }
}

fn find(target: &RealTarget, server: &Server) -> Result<Found, DatabaseError> {
    let private = match Programs::find(&target.host, server)? {
        Some(programs) => {
            let catalog = programs.catalog()?;
            Some((programs, catalog))
        }
        None => {
            Claim::look(&server.to_string(), target.use_existing)?;
            None
        }
    };
    Ok(Found { private })
}

/// What loaded data may take more than their rows: logs, tables of the server's own.
const KEPT_BESIDE: Bytes = Bytes::from_mib(300);

/// The least that a server needs beside its cache of pages.
const MEMORY_BESIDE: Bytes = Bytes::from_mib(160);

/// Why a cell's database cannot be run here.
pub fn refuse(target: &RealTarget, plan: &Plan, workload: &Workload) -> Option<Refusal> {
    let job = workload.database.as_ref()?;
    let checked = target.servers.ask(target, &job.server, |found| {
        let Some((programs, catalog)) = &found.private else {
            return match workload.variables.keys().next() {
                None => Ok(()),
                Some(name) => {
                    Err(Refusal::VariableOfForeignServer { variable: name.clone() }.to_string())
                }
            };
        };
        for (name, value) in &workload.variables {
            let refused =
                catalog.refuse(name).or_else(|| target.servers.refuse_value(programs, name, value));
            refused.map_or(Ok(()), Err)?;
        }
        let engine = programs.engine(&workload.variables)?;
        let job = DatabaseJob { engine: job.engine.or(Some(engine)), ..job.clone() };
        match job.server.dialect() {
            workload::Dialect::MySql => job.check().map_err(|error| error.to_string()),
            workload::Dialect::PostgreSql => Ok(()),
        }
    });
    if let Err(message) = checked {
        return Some(Refusal::Server { server: job.server.to_string(), message });
    }
    if let Some(limit) = plan.page_cache {
        let least = job.buffer_pool.unwrap_or(Bytes::from_mib(128)) + MEMORY_BESIDE;
        if job.server.is_private() && limit < least {
            return Some(Refusal::PageCacheBelowServer { limit, needed: least });
        }
    }
    refuse_room(target, plan, job)
}

/// The loaded data are kept beside the copy that a trial runs on.
fn refuse_room(target: &RealTarget, plan: &Plan, job: &DatabaseJob) -> Option<Refusal> {
    let kept = kept_size(job);
    let folder = kept_folder(target);
    let needed = if target.folder().is_some() { plan.size + kept } else { kept };
    let error = host::check_room(&folder, needed).err()?;
    Some(Refusal::NoRoomForDatabase {
        database: job.to_string(),
        data: job.data_size(),
        needed,
        message: error.to_string(),
    })
}

fn kept_size(job: &DatabaseJob) -> Bytes {
    Bytes(job.data_size().0 / 10 * 12) + KEPT_BESIDE
}

/// Where loaded data are kept: beside the storage under test, or for a whole device where temporary
/// data go.
pub(super) fn kept_folder(target: &RealTarget) -> PathBuf {
    target.folder().unwrap_or_else(|| PathBuf::from("/var/tmp"))
}

/// What will be made, and removed in the end.
pub fn intentions(target: &RealTarget, plan: &Plan) -> Vec<Intention> {
    let mut all = Vec::new();
    for database in plan.databases() {
        let data = Shape::of(&database, StorageEngine::InnoDb).key();
        let size = database.data_size();
        all.push(match target.servers.title(target, &database.server) {
            Some(server) => {
                Intention::LoadPrivate { database, data, size, server, kept: kept_folder(target) }
            }
            None => Intention::LoadForeign { database, data, size },
        });
    }
    let first = plan.cells.first().and_then(|cell| plan.workload_of(cell).ok());
    let configured = first.and_then(|(workload, _)| target.servers.settings(target, &workload));
    all.extend(
        configured.map(|(server, settings)| Intention::ConfigureServer { server, settings }),
    );
    all
}

/// The baseline's configuration, for the record.
pub fn recorded(target: &RealTarget, plan: &Plan) -> Vec<(String, String)> {
    let told = plan.cells.first().and_then(|cell| plan.workload_of(cell).ok());
    let told = told.and_then(|(workload, _)| target.servers.settings(target, &workload));
    let Some((server, settings)) = told else { return Vec::new() };
    settings.into_iter().map(|(name, value)| (format!("{server}.{name}"), value)).collect()
}
