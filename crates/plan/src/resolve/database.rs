//! What a plan of database workloads must fit, and its defaults.

use crate::{Factor, Level, LoadingPace, Offer, RawPlan, Role, TRIAL_OVERHEAD};
use units::{Bytes, Nanos};
use workload::{DatabaseJob, DatabaseKind, VariableSet, WordError};

/// Clients when nothing is said.
const DEFAULT_CLIENTS: u32 = 8;

impl RawPlan {
    /// The database workloads that are asked for; empty where blocks are measured. The error says
    /// what does not fit them.
    pub(super) fn databases(
        &self,
        levels: &[(Factor, Vec<Level>)],
    ) -> Result<Vec<DatabaseJob>, WordError> {
        let levels_of = |wanted: Factor| {
            levels.iter().find(|(factor, _)| *factor == wanted).map(|(_, all)| all.as_slice())
        };
        let databases = match (levels_of(Factor::Workload), &self.workload) {
            (Some(all), _) => {
                all.iter().map(|Level(text)| text.parse()).collect::<Result<_, _>>()?
            }
            (None, Some(workload)) => vec![workload.clone()],
            (None, None) => Vec::new(),
        };
        for database in &databases {
            database.check()?;
        }
        if let Some(program) = &self.server_program
            && !databases.iter().any(|database| database.server.is_private())
        {
            return Err(WordError::new(format!(
                "server_program {} is the program of a private database server, and no workload \
                 runs on one: add one, such as --workload oltp_read_write,server=mysql",
                program.display()
            )));
        }
        let of_server =
            |factor: &Factor| matches!(factor, Factor::Variable { .. } | Factor::Variables);
        let variable = levels.iter().find(|(factor, _)| of_server(factor));
        if databases.is_empty() {
            return match variable {
                None => Ok(databases),
                Some((Factor::Variables, _)) => Err(WordError::new(
                    "variables are those of a database server, and no database workload is named: \
                     add one, such as --workload oltp_read_write"
                        .to_owned(),
                )),
                Some((factor, _)) => Err(WordError::new(format!(
                    "{factor} is a variable of a database server, and no database workload is \
                     named: add one, such as --workload oltp_read_write"
                ))),
            };
        }
        if let Some(of_blocks) = self.of_blocks(levels) {
            return Err(WordError::new(format!(
                "{of_blocks} says what a block workload does, and a database workload is named: \
                 leave one of them out"
            )));
        }
        named_once(levels)?;
        let twice = |what: &str| {
            WordError::new(format!(
                "{what} are named in the workload and beside it: name them in one place"
            ))
        };
        let clients = levels_of(Factor::Clients).is_some() || self.job.clients.is_some();
        if clients && databases.iter().any(|database| database.clients.is_some()) {
            return Err(twice("clients"));
        }
        let rate = levels_of(Factor::Rate).is_some() || self.job.rate.is_some();
        if rate && databases.iter().any(|database| database.rate.is_some()) {
            return Err(twice("rates"));
        }
        if rate && databases.iter().any(|database| database.think) {
            return Err(WordError::new(
                "think times and an offered rate are two different loads: name one".to_owned(),
            ));
        }
        Ok(databases)
    }

    /// Whether cells are switched inside one running server: where that is asked for, and with a preset
    /// where it can be.
    pub(super) fn alternates(
        &self,
        levels: &[(Factor, Vec<Level>)],
        databases: &[DatabaseJob],
        offer: &Offer,
    ) -> Result<bool, WordError> {
        if !self.alternate.unwrap_or(self.preset_use.is_some()) {
            return Ok(false);
        }
        let of_servers = |factor: &Factor| {
            matches!(
                factor,
                Factor::Variable { .. }
                    | Factor::Variables
                    | Factor::Placebo
                    | Factor::Clients
                    | Factor::Rate
                    | Factor::Background
            ) || factor.role() == Role::HostSetting
        };
        let needs_its_own = levels.iter().map(|(factor, _)| factor).find(|it| !of_servers(it));
        let problem = if databases.is_empty() {
            Some("no database workload is named: add one, such as --workload tpcc".to_owned())
        } else if !offer.runs_servers {
            Some("the simulated world runs none".to_owned())
        } else if !databases.iter().all(|database| database.server.is_private()) {
            Some("Spindle did not start the server, and does not set its variables".to_owned())
        } else {
            needs_its_own.map(|factor| {
                format!("another level of {factor} needs a server on data of its own")
            })
        };
        match problem {
            None => Ok(true),
            Some(problem) if self.alternate == Some(true) => Err(WordError::new(format!(
                "alternate switches cells inside one running server, and {problem}"
            ))),
            Some(_) => Ok(false),
        }
    }

    /// The first thing named that only a block workload has.
    fn of_blocks(&self, levels: &[(Factor, Vec<Level>)]) -> Option<String> {
        let job = &self.job;
        let named = [
            (self.engine.is_some(), "engine"),
            (job.pattern.is_some(), "pattern"),
            (job.block_size.is_some(), "block_size"),
            (job.sync.is_some(), "sync"),
            (job.client_kind.is_some(), "client_kind"),
            (job.depth.is_some(), "depth"),
            (job.io_priority.is_some(), "io_priority"),
        ];
        let factor = levels.iter().map(|(factor, _)| factor).find(|factor| {
            matches!(
                factor,
                Factor::Sync
                    | Factor::IoPriority
                    | Factor::Engine
                    | Factor::Pattern
                    | Factor::BlockSize
                    | Factor::Depth
            )
        });
        factor
            .map(ToString::to_string)
            .or_else(|| named.into_iter().find(|(is, _)| *is).map(|(_, name)| name.to_owned()))
    }
}

/// A variable that is set by itself cannot be set together with others too.
fn named_once(levels: &[(Factor, Vec<Level>)]) -> Result<(), WordError> {
    let sets = levels.iter().filter(|(factor, _)| *factor == Factor::Variables);
    for Level(text) in sets.flat_map(|(_, all)| all) {
        let set: VariableSet = text.parse()?;
        for name in set.variables.keys() {
            let factor = Factor::Variable { name: name.clone() };
            if levels.iter().any(|(other, _)| *other == factor) {
                return Err(WordError::new(format!(
                    "{name} is named by itself and in variables '{text}': name it in one place"
                )));
            }
        }
    }
    Ok(())
}

/// How many clients there are when nothing is said: one inserts, more do the rest.
pub(super) fn default_clients(databases: &[DatabaseJob]) -> u32 {
    let inserts = |database: &DatabaseJob| database.kind == DatabaseKind::Insert;
    if !databases.is_empty() && databases.iter().all(inserts) { 1 } else { DEFAULT_CLIENTS }
}

/// Room for the largest of the databases, where there are any, and for the file of the job beside it;
/// `asked` must have it.
pub(super) fn room(
    databases: &[DatabaseJob],
    beside: bool,
    asked: Option<Bytes>,
) -> Result<Option<Bytes>, WordError> {
    let Some((room, largest)) = largest(databases, beside) else { return Ok(None) };
    match asked {
        Some(size) if size < room => Err(WordError::new(format!(
            "a size of {size} is too small for {largest}: {}; give it that much, or make the data \
             smaller",
            room_phrase(largest, beside)
        ))),
        _ => Ok(Some(room)),
    }
}

/// The database that needs most room, and how much with the file of a job beside it.
pub(super) fn largest(databases: &[DatabaseJob], beside: bool) -> Option<(Bytes, &DatabaseJob)> {
    databases
        .iter()
        .map(|database| (database.room() + beside_size(database, beside), database))
        .max_by_key(|(room, _)| *room)
}

/// What a database needs its room for.
pub(super) fn room_phrase(database: &DatabaseJob, beside: bool) -> String {
    let file = beside_size(database, beside);
    let job = match beside {
        true => format!(", {file} for the job beside it"),
        false => String::new(),
    };
    format!(
        "its data take about {}, and with what grows{job} and the server's logs {}",
        database.data_size(),
        database.room() + file
    )
}

fn beside_size(database: &DatabaseJob, beside: bool) -> Bytes {
    if beside { database.beside_size() } else { Bytes::ZERO }
}

fn at_pace(size: Bytes, bytes_per_second: u64) -> Nanos {
    Nanos::from_secs_f64(size.0 as f64 / bytes_per_second.max(1) as f64)
}

/// The time that loading the data takes.
pub(super) fn loading_time(databases: &[DatabaseJob], pace: &LoadingPace) -> Nanos {
    if pace.load_bytes_per_second == 0 {
        return Nanos::ZERO;
    }
    let each = |database: &DatabaseJob| {
        pace.server + at_pace(database.data_size(), pace.load_bytes_per_second)
    };
    databases.iter().map(each).fold(Nanos::ZERO, |sum, time| sum + time)
}

/// The time that the largest of them takes in each trial beside what is measured; none where nothing
/// is copied and no server started.
pub(super) fn trial_overhead(databases: &[DatabaseJob], pace: &LoadingPace) -> Option<Nanos> {
    let largest = databases.iter().map(DatabaseJob::data_size).max()?;
    (pace.copy_bytes_per_second > 0)
        .then(|| TRIAL_OVERHEAD + pace.server + at_pace(largest, pace.copy_bytes_per_second))
}
