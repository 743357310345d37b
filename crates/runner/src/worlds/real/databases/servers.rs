//! What a plan of databases asks of this host: the servers there are, why one cannot be used, what
//! will be made.

use super::super::RealWorld;
use database::{Catalog, Claim, DatabaseError, Programs, Settings, Shape};
use plan::{DatabaseJob, Plan, Server, StorageEngine, Workload};
use std::{cell::RefCell, collections::BTreeMap, path::PathBuf};
use units::Bytes;

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
        world: &RealWorld,
        server: &Server,
        ask: impl FnOnce(&Found) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut all = self.found.borrow_mut();
        let found = all
            .entry(server.to_string())
            .or_insert_with(|| find(world, server).map_err(|error| error.to_string()));
        ask(found.as_ref().map_err(Clone::clone)?)
    }

    /// Why a server would not take a value; each is asked of it once.
    fn refuse_value(&self, programs: &Programs, name: &str, value: &str) -> Option<String> {
        let key = (format!("{} {name}", programs.name()), value.to_owned());
        let mut values = self.values.borrow_mut();
        values.entry(key).or_insert_with(|| programs.refuse_value(name, value)).clone()
    }

    /// A private server's title, such as `MariaDB 10.11.14`.
    fn title(&self, world: &RealWorld, server: &Server) -> Option<String> {
        let title = |found: &Found| {
            Ok(found.private.as_ref().map(|(programs, _)| programs.title().to_owned()))
        };
        self.ask(world, server, title).ok().flatten()
    }

    /// What a private server is told; nothing for one that is not ours.
    fn settings(&self, world: &RealWorld, workload: &Workload) -> Option<(String, Settings)> {
        let job = workload.database.as_ref()?;
        let settings = |found: &Found| {
            Ok(found.private.as_ref().map(|(programs, _)| {
                let told = programs.settings(job, workload.clients(), &workload.variables);
                (programs.name().to_owned(), told)
            }))
        };
        self.ask(world, &job.server, settings).ok().flatten()
    }
}

fn find(world: &RealWorld, server: &Server) -> Result<Found, DatabaseError> {
    let private = match Programs::find(&world.host, server)? {
        Some(programs) => {
            let catalog = programs.catalog()?;
            Some((programs, catalog))
        }
        None => {
            Claim::look(&server.to_string(), world.use_existing)?;
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
pub fn refuse(world: &RealWorld, plan: &Plan, workload: &Workload) -> Option<String> {
    let job = workload.database.as_ref()?;
    let checked = world.servers.ask(world, &job.server, |found| {
        let Some((programs, catalog)) = &found.private else {
            return match workload.variables.keys().next() {
                None => Ok(()),
                Some(name) => Err(format!(
                    "{name} is a variable of a server that is not Spindle's: set it there yourself, \
                     or let Spindle run a private server"
                )),
            };
        };
        for (name, value) in &workload.variables {
            let refused =
                catalog.refuse(name).or_else(|| world.servers.refuse_value(programs, name, value));
            refused.map_or(Ok(()), Err)?;
        }
        let engine = programs.engine(&workload.variables)?;
        let job = DatabaseJob { engine: job.engine.or(Some(engine)), ..job.clone() };
        match job.server.dialect() {
            plan::Dialect::MySql => job.check().map_err(|error| error.to_string()),
            plan::Dialect::PostgreSql => Ok(()),
        }
    });
    if let Err(reason) = checked {
        return Some(reason);
    }
    if let Some(limit) = plan.page_cache {
        let least = job.buffer_pool.unwrap_or(Bytes::from_mib(128)) + MEMORY_BESIDE;
        if job.server.is_private() && limit < least {
            return Some(format!(
                "the server's own memory counts in a page cache of {limit}: with its buffer pool it \
                 needs {least}, and more for any page cache beside; give --page-cache more, or \
                 buffer_pool less"
            ));
        }
    }
    refuse_room(world, plan, job)
}

/// The loaded data are kept beside the copy that a trial runs on.
fn refuse_room(world: &RealWorld, plan: &Plan, job: &DatabaseJob) -> Option<String> {
    let kept = kept_size(job);
    let folder = kept_folder(world);
    let needed = if world.folder().is_some() { plan.size + kept } else { kept };
    let error = host::check_room(&folder, needed).err()?;
    Some(format!(
        "the data of {job} are estimated at {}, and with those that are kept beside a trial's copy \
         {needed} are needed: {error}",
        job.data_size()
    ))
}

fn kept_size(job: &DatabaseJob) -> Bytes {
    Bytes(job.data_size().0 / 10 * 12) + KEPT_BESIDE
}

/// Where loaded data are kept: beside the storage under test, or for a whole device where temporary
/// data go.
pub(super) fn kept_folder(world: &RealWorld) -> PathBuf {
    world.folder().unwrap_or_else(|| PathBuf::from("/var/tmp"))
}

/// What will be made, and removed in the end.
pub fn intentions(world: &RealWorld, plan: &Plan) -> Vec<String> {
    let mut all = Vec::new();
    for job in plan.databases() {
        let (what, size) = (Shape::of(&job, StorageEngine::InnoDb).key(), job.data_size());
        all.push(match world.servers.title(world, &job.server) {
            Some(title) => format!(
                "load {what} (about {size}) once into a private {title}, kept in {}; copy it fresh \
                 for each trial and run a server on it, and remove all of it in the end",
                kept_folder(world).display()
            ),
            None => format!(
                "load {what} (about {size}) into the database of {}, unless it is there, and drop \
                 the tables that were made in the end",
                job.server
            ),
        });
    }
    let told = plan.cells.first().and_then(|cell| plan.workload_of(cell).ok());
    if let Some((name, settings)) =
        told.and_then(|(workload, _)| world.servers.settings(world, &workload))
    {
        let told: Vec<String> =
            settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        all.push(format!("tell {name}: {}", told.join(" ")));
    }
    all
}

/// The baseline's configuration, for the record.
pub fn recorded(world: &RealWorld, plan: &Plan) -> Vec<(String, String)> {
    let told = plan.cells.first().and_then(|cell| plan.workload_of(cell).ok());
    let told = told.and_then(|(workload, _)| world.servers.settings(world, &workload));
    let Some((server, settings)) = told else { return Vec::new() };
    settings.into_iter().map(|(name, value)| (format!("{server}.{name}"), value)).collect()
}
