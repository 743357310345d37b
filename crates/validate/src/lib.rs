//! The simulated world beside the emulated one: the same plan on the same device model, once under a
//! model of the block layer and its schedulers, once under the kernel's own. Where the two differ, the
//! kernel is right.
//!
//! What lives here: the cells that are compared, the measurement of the transport between the kernel and
//! an emulated device (an input of the simulation, not a prediction of it), the agreement's arithmetic,
//! and the files that hold the figures. What does not: running a plan (`runner`), estimates
//! (`analysis`), what is printed (`cli`). Data flows: profiles and cells → transport → runs of both
//! worlds → [`Validation`] → agreement → files.

mod agreement;
mod cells;
mod comparison;
mod error;
mod files;
mod session;
mod settings;
mod step;
mod subject;
mod transport;
mod trials;

pub use agreement::{Agreement, Figure, TOLERANCE, median};
pub use cells::{CellSet, Cells};
pub use comparison::{CellResult, EmulatedFigures, SimulatedFigures};
pub use error::ValidateError;
pub use files::{check_output, write};
pub use session::Observer;
pub use settings::Settings;
pub use step::Step;
pub use subject::DEFAULT_PROFILES;
pub use transport::{MeasuredTransport, TransportFigures};

use serde::Serialize;
use session::Session;
use std::sync::{Arc, atomic::AtomicBool};
use subject::Subject;

/// What a validation gave.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Validation {
    /// The kernel of the emulated runs.
    pub kernel: String,
    /// The host's processors.
    pub cpu: String,
    /// The transport that was measured for each profile, set of cells and pattern.
    pub transports: Vec<MeasuredTransport>,
    /// Cells that both worlds measured, in the order of profiles and sets.
    pub cells: Vec<CellResult>,
    /// Cells of which no emulated trial was valid, as `PROFILE, SET: CELL`.
    pub without_trials: Vec<String>,
}

impl Validation {
    /// How far the worlds agree in the cells of one profile, or in all: one for each figure. Empty where
    /// there is no cell.
    pub fn agreement(&self, profile: Option<&str>) -> Vec<Agreement> {
        let cells = self.cells.iter().filter(|cell| profile.is_none_or(|it| it == cell.profile));
        Agreement::of(cells.map(|cell| cell.ratios()))
    }

    /// Profiles that have cells, in their order.
    pub fn profiles(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !all.contains(&cell.profile.as_str()) {
                all.push(&cell.profile);
            }
        }
        all
    }

    /// For what part of the time that it spun a CPU was taken from the pacing thread, percent: in the
    /// median cell, and the largest of all.
    pub fn taken_percent(&self) -> Option<(f64, f64)> {
        let taken: Vec<f64> = self.cells.iter().map(|cell| cell.emulated.taken_percent).collect();
        Some((median(&taken)?, taken.iter().copied().fold(0.0, f64::max)))
    }
}

/// Runs the cells of `settings` in both worlds. Whatever is brought up is taken down before this
/// returns; an interruption is [`ValidateError::Interrupted`].
pub fn validate(
    settings: &Settings,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
) -> Result<Validation, ValidateError> {
    let scratch = match &settings.keep {
        Some(_) => None,
        None => Some(session::scratch()?),
    };
    let folder = match (&settings.keep, &scratch) {
        (Some(folder), _) => folder.clone(),
        (None, Some(scratch)) => scratch.path().to_owned(),
        (None, None) => std::env::temp_dir(),
    };
    let mut session = Session::new(settings, folder, stop, observer)?;
    let subjects = settings
        .profiles
        .iter()
        .map(|name| Subject::of(name, session.folder()))
        .collect::<Result<Vec<_>, _>>()?;
    let loads = settings.loads();
    let mut validation = Validation::default();
    // All of them before the first cell, near to one another in time.
    for subject in &subjects {
        for load in &loads {
            validation.transports.extend(transport::measure(&mut session, subject, load)?);
        }
    }
    for subject in &subjects {
        for load in &loads {
            comparison::compare(&mut session, subject, load, &mut validation)?;
        }
    }
    Ok(validation)
}
