//! Database servers that Spindle starts, and the workloads that it runs on them.
//!
//! What lives here: `servers/` (private ones, and one that runs already),
//! `workloads/` (sysbench's oltp, tpcc, the multi-index insert), loading their data, and the driver
//! that runs clients against a server and stamps every time. What does not: where data lie and what
//! is set beneath them (`runner`), how a process is recorded and ended (`host`), what figures mean.
//!
//! Data flows: a [`workload::DatabaseJob`] → [`Programs::install`] and [`load()`] once → a copy of the
//! data for each trial → [`Running`] → [`run()`] → [`record::Measurement`].

mod catalog;
mod claim;
mod counters;
mod data;
mod driver;
mod encryption;
mod error;
mod loading;
mod log;
mod near;
pub mod presets;
mod programs;
mod running;
mod server;
mod servers;
mod session;
mod switching;
mod tally;
mod workloads;

pub use catalog::Catalog;
pub use claim::Claim;
pub use counters::ServerSampling;
pub use data::{copy_data, flush_data, warm_data};
pub use driver::{RunSpec, run};
pub use encryption::{Encryption, EncryptionError};
pub use error::{DatabaseError, VariableError};
pub use loading::{Progress, load};
pub use programs::Programs;
pub use running::{Endpoint, Running};
pub use server::{Place, Settings, Sizes};
pub use session::{
    Arg, Field, QueryKind, RowWriter, ServerCounters, Session, SqlError, StatementId,
};
pub use switching::{NotSwitched, same_value};
pub use workloads::{Shape, check_data, tpcc::conditions::check as check_conditions};
