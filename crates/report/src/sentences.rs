//! The sentences of reports: words for what other parts of the program say as data.

mod alike;
mod atomic_write;
mod caveat;
mod decision;
mod doubt;
mod event;
mod finding;
mod fleet;
mod imported;
mod intention;
mod loss;
pub(crate) mod preset;
pub(crate) mod recommendation;
mod screening;
mod session;
mod store_wait;
mod sync_card;
mod trouble;
mod warning;

pub(crate) use alike::if_rounds_are_alike;
pub use atomic_write::atomic_write;
pub(crate) use caveat::{caveat, scratch_beside};
pub(crate) use decision::{answers, decision};
pub(crate) use doubt::doubt;
pub use event::{event, noted};
pub(crate) use finding::finding;
pub(crate) use fleet::{apart, fleet_decision, fleet_figure, fleet_word, labelled, likeness};
pub(crate) use imported::verdict as imported_verdict;
pub(crate) use intention::intention;
pub(crate) use loss::{losses, risks};
pub use preset::{classics, presets};
pub(crate) use screening::{not_looked_at, screening};
pub(crate) use session::{changed_thing, session_caveats, session_floor, session_verdict};
pub use store_wait::store_wait;
pub(crate) use sync_card::{
    cache_evidence, durable_by, no_fsync_reason, no_fsync_verdict, power_loss_verdict,
};
pub(crate) use trouble::lost;
pub use trouble::outcome;
pub(crate) use warning::warning;
