//! How each trap is found in an inspection: one rule for each kind.

mod around;
mod device;
mod filesystem;

use crate::{Inspection, Trap, TrapKind};

/// The traps that apply.
pub fn traps(inspection: &Inspection) -> Vec<Trap> {
    TrapKind::ALL.iter().filter_map(|kind| look(*kind, inspection)).collect()
}

fn look(kind: TrapKind, inspection: &Inspection) -> Option<Trap> {
    let rule: fn(&Inspection) -> Option<Trap> = match kind {
        TrapKind::UnfinishedRun => around::unfinished_run,
        TrapKind::Memory => filesystem::memory,
        TrapKind::Overlay => filesystem::overlay,
        TrapKind::Network => filesystem::network,
        TrapKind::FileServer => filesystem::file_server,
        TrapKind::ReadOnly => filesystem::read_only,
        TrapKind::DirectIsBuffered => filesystem::buffered,
        TrapKind::NoDirect => filesystem::no_direct,
        TrapKind::CacheAnswers => device::cache_answers,
        TrapKind::SparseFile => device::sparse,
        TrapKind::BufferedLoop => device::buffered_loop,
        TrapKind::LoopDiscard => device::loop_discard,
        TrapKind::LoopSettingsStay => device::loop_settings,
        TrapKind::RotationalFlag => device::rotational,
        TrapKind::WriteBackThrottling => device::throttling,
        TrapKind::NoBarrier => filesystem::barriers,
        TrapKind::WriteThroughByHand => device::write_through_by_hand,
        TrapKind::NotCounted => device::not_counted,
        TrapKind::SmallBlock => device::small_block,
        TrapKind::ReadBeforeWrite => filesystem::read_before_write,
        TrapKind::QueueCeiling => device::ceiling,
        TrapKind::StackedDevices => device::stacked,
        TrapKind::Zoned => device::zoned,
        TrapKind::SharedDevice => device::shared,
        TrapKind::SettingOwner => around::owned,
        TrapKind::ReadAheadLost => around::read_ahead_lost,
        TrapKind::BootElevator => around::boot_elevator,
        TrapKind::FlashState => device::flash_state,
        TrapKind::HotDrive => device::hot,
        TrapKind::SmallData => around::small_data,
        TrapKind::GroupLimit => around::limits,
        TrapKind::NoPressure => around::no_pressure,
        TrapKind::BusyHost => around::busy,
        TrapKind::Frequency => around::frequency,
        TrapKind::Steal => around::steal,
    };
    rule(inspection)
}
