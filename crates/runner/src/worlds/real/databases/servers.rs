//! What a plan of databases asks of this host: the servers there are, why one cannot be used, what
//! will be made.

use super::super::RealTarget;
use database::{Catalog, Claim, DatabaseError, Programs, Settings, Shape, Sizes, VariableError};
use plan::{Intention, Plan, Refusal};
use record::{Aspect, Fact};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
    rc::Rc,
};
use units::Bytes;
use workload::{DatabaseJob, Server, StorageEngine, Workload};

/// What the host has of servers, looked up when first asked.
#[derive(Default)]
pub struct Servers {
    found: RefCell<BTreeMap<String, Result<Found, Refusal>>>,
    /// Values of variables that a server was asked about, and its answer.
    values: RefCell<BTreeMap<(String, String), Result<(), VariableError>>>,
}

/// A server that can be used.
#[derive(Clone)]
struct Found {
    /// `None` for one that runs already.
    private: Option<Rc<(Programs, Catalog)>>,
}

impl Servers {
    /// The programs of a plan's private server and its variables; `None` for a server that runs already.
    pub(super) fn find(
        &self,
        target: &RealTarget,
        program: Option<&Path>,
        server: &Server,
    ) -> Result<Option<Rc<(Programs, Catalog)>>, Refusal> {
        let mut all = self.found.borrow_mut();
        let found = all
            .entry(server.to_string())
            .or_insert_with(|| {
                find(target, program, server).map_err(|error| Refusal::Server {
                    server: server.to_string(),
                    message: error.to_string(),
                })
            })
            .clone();
        Ok(found?.private)
    }

    /// Whether a server would take a value; each is asked once.
    pub(super) fn check_value(
        &self,
        programs: &Programs,
        name: &str,
        value: &str,
    ) -> Result<(), VariableError> {
        let key = (format!("{} {name}", programs.name()), value.to_owned());
        let mut values = self.values.borrow_mut();
        values.entry(key).or_insert_with(|| programs.check_value(name, value)).clone()
    }

    /// The variables that a private server is started with; nothing for one that runs already.
    fn settings(
        &self,
        target: &RealTarget,
        plan: &Plan,
        workload: &Workload,
    ) -> Option<(String, Settings)> {
        let job = workload.database.as_ref()?;
        let found = self.find(target, program_of(plan), &job.server).ok()??;
        let (programs, _) = &*found;
        let settings = programs.settings(job, workload.clients(), &workload.variables);
        Some((programs.name().to_owned(), settings))
    }
}

/// The server program that a plan names.
pub(super) fn program_of(plan: &Plan) -> Option<&Path> {
    plan.workload.server_program.as_deref()
}

fn find(
    target: &RealTarget,
    program: Option<&Path>,
    server: &Server,
) -> Result<Found, DatabaseError> {
    let private = match programs(target, program, server)? {
        Some(programs) => {
            let catalog = programs.catalog()?;
            Some(Rc::new((programs, catalog)))
        }
        None => {
            Claim::look(&server.to_string(), target.use_existing)?;
            None
        }
    };
    Ok(Found { private })
}

/// The programs of a private server; `None` for a server that runs already.
pub(super) fn programs(
    target: &RealTarget,
    program: Option<&Path>,
    server: &Server,
) -> Result<Option<Programs>, DatabaseError> {
    let kind = server.private();
    kind.map(|kind| Programs::find(&target.host, kind, program)).transpose()
}

/// The variables, and the storage engine that they give, as the server and the workload take them.
fn check(
    target: &RealTarget,
    (programs, catalog): &(Programs, Catalog),
    job: &DatabaseJob,
    workload: &Workload,
) -> Result<(), Refusal> {
    let refused = |message: String| Refusal::Server { server: job.server.to_string(), message };
    for (name, value) in &workload.variables {
        catalog
            .check(name)
            .and_then(|()| target.servers.check_value(programs, name, value))
            .map_err(|error| refused(error.to_string()))?;
    }
    if job.server.engines().is_empty() {
        return Ok(());
    }
    let engine =
        programs.engine(&workload.variables).map_err(|error| refused(error.to_string()))?;
    let job = DatabaseJob { engine: job.engine.or(Some(engine)), ..job.clone() };
    job.check().map_err(|error| Refusal::Workload { message: error.to_string() })
}

/// Why a cell's database cannot be run here.
pub fn refuse(target: &RealTarget, plan: &Plan, workload: &Workload) -> Option<Refusal> {
    let job = workload.database.as_ref()?;
    let found = match target.servers.find(target, program_of(plan), &job.server) {
        Ok(Some(found)) => found,
        Ok(None) => {
            return match workload.variables.keys().next() {
                Some(name) => Some(Refusal::VariableOfForeignServer { variable: name.clone() }),
                None => refuse_room(target, plan, job, Sizes::default()),
            };
        }
        Err(refusal) => return Some(refusal),
    };
    if let Err(refusal) = check(target, &found, job, workload) {
        return Some(refusal);
    }
    let sizes = found.0.sizes();
    if let Some(limit) = plan.page_cache {
        let needed = job.buffer_pool.unwrap_or(sizes.default_cache) + sizes.memory_beside;
        if limit < needed {
            return Some(Refusal::PageCacheBelowServer { limit, needed });
        }
    }
    refuse_room(target, plan, job, sizes)
}

/// The loaded data are kept beside the copy that a trial runs on.
fn refuse_room(
    target: &RealTarget,
    plan: &Plan,
    job: &DatabaseJob,
    sizes: Sizes,
) -> Option<Refusal> {
    let kept = Bytes(job.data_size().0 / 10 * 12) + sizes.disk_beside;
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
        let found = target.servers.find(target, program_of(plan), &database.server).ok().flatten();
        all.push(match found {
            Some(found) => {
                let server = found.0.title().to_owned();
                Intention::LoadPrivate { database, data, size, server, kept: kept_folder(target) }
            }
            None => Intention::LoadForeign { database, data, size },
        });
    }
    all.extend(plan.alternate.then_some(Intention::Alternate));
    let first = plan.cells.first().and_then(|cell| plan.workload_of(cell).ok());
    let configured =
        first.and_then(|(workload, _)| target.servers.settings(target, plan, &workload));
    all.extend(
        configured.map(|(server, settings)| Intention::ConfigureServer { server, settings }),
    );
    all
}

/// The baseline's configuration, for the record.
pub fn recorded(target: &RealTarget, plan: &Plan) -> Vec<(String, String)> {
    let first = plan.cells.first().and_then(|cell| plan.workload_of(cell).ok());
    let configured =
        first.and_then(|(workload, _)| target.servers.settings(target, plan, &workload));
    let Some((server, settings)) = configured else { return Vec::new() };
    settings.into_iter().map(|(name, value)| (format!("{server}.{name}"), value)).collect()
}

/// The server and its package, where the plan has one server alone.
pub fn facts(target: &RealTarget, plan: &Plan) -> Vec<Fact> {
    let mut servers: Vec<Server> = plan.databases().into_iter().map(|job| job.server).collect();
    servers.dedup();
    let [server] = &servers[..] else { return Vec::new() };
    let fact = |aspect, name: &str, value: &str| Fact {
        aspect,
        name: name.to_owned(),
        value: value.to_owned(),
    };
    match target.servers.find(target, program_of(plan), server) {
        Ok(Some(found)) => {
            let (programs, _) = &*found;
            let program = programs.program();
            let path = program.display().to_string();
            let mut facts = vec![
                fact(Aspect::Server, Fact::SERVER_VERSION, programs.title()),
                fact(Aspect::Server, Fact::SERVER_PROGRAM, &path),
            ];
            let package = host::package_of(&target.host, program);
            facts.extend(package.map(|(name, version)| fact(Aspect::Package, &name, &version)));
            facts
        }
        Ok(None) => Claim::look(&server.to_string(), target.use_existing)
            .and_then(|claim| claim.version())
            .map(|version| vec![fact(Aspect::Server, Fact::SERVER_VERSION, &version)])
            .unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}
