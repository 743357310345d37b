//! What was measured, raw: [`Run`] → [`Trial`] → [`Measurement`], and the one SQLite file that keeps
//! them.
//!
//! What lives here: the types, the store, other formats' import and export. What does not: any
//! estimate or verdict (those are made afterwards, from what is recorded, by `analysis`), and
//! anything that prints. Data comes in from `runner`, goes out to `analysis` and `report`.

mod clean;
mod environment;
mod event_log;
mod flaw;
mod form;
mod histogram;
mod imported;
mod measurement;
mod run;
mod session;
mod share;
mod store;
mod transactions;
mod warning;

pub use clean::{clean, clean_json};
pub use environment::{
    Aspect, Caveat, Difference, Environment, EnvironmentChange, Fact, WorldKind,
};
pub use event_log::{EventLog, HeadPosition, RequestLife};
pub use flaw::Flaw;
pub use histogram::Histogram;
pub use imported::{
    CacheSign, Doubt, EditSign, Excerpt, Imported, ImportedFigure, ImportedRate, Quantity, Quoted,
    RateUnit,
};
pub use measurement::{
    ClientShare, CounterSample, GeneratorCost, JobMeasurement, Measurement, OperationMeasurement,
    Second,
};
pub use run::{
    AsideCause, DropCause, Event, EventKind, Outcome, Run, RunState, Session, Trial, TrialId,
};
pub use session::SessionFactor;
pub use share::SharePermille;
pub use store::{
    Following, NotRolledBack, Odd, RunHeader, Store, StoreError, StoreWait, WaitTeller, Waiting,
    WaitsFor,
};
pub use transactions::{Check, Queries, TransactionMeasurement, Transactions};
pub use warning::{
    JobRole, LateCompletions, LateStatistic, MovedSetting, Mover, NotAlternated, VoidReason,
    Warning,
};
