//! What a client does next, in any world: where its next operation goes and when it begins.

mod offsets;
mod schedule;

pub use offsets::Offsets;
pub use schedule::Schedule;
