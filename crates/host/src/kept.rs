//! What the kernel keeps of a number that is written to a setting: in ticks, in pages, within its bounds.

use crate::Setting;
use rustix::time::{ClockId, clock_getres};
use scheduler::SchedulerKind;

/// The most that the kernel takes, or keeps as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtMost(pub u64);

const INT_MAX: u64 = i32::MAX as u64;

/// What the kernel keeps, or the most that it takes. Read from 6.18 on a loop device; tests compare it with the running
/// kernel.
pub(crate) fn kept(setting: &Setting, scheduler: &str, asked: u64) -> Result<u64, AtMost> {
    match setting {
        Setting::Tunable(name) => match scheduler.parse() {
            Ok(SchedulerKind::MqDeadline) => of_mq_deadline(name, asked),
            Ok(SchedulerKind::Bfq) => of_bfq(name, asked),
            _ => Ok(asked),
        },
        // In pages.
        Setting::ReadAheadKb => {
            let page_kib = (rustix::param::page_size() as u64 / 1024).max(1);
            at_most(u64::from(u32::MAX), asked).map(|asked| asked / page_kib * page_kib)
        }
        Setting::Nomerges => at_most(u64::from(u32::MAX), asked).map(|asked| match asked {
            0..=2 => asked,
            _ => 1,
        }),
        // The kernel takes another number without an error, and changes nothing.
        Setting::RqAffinity => at_most(2, asked),
        // Nanoseconds, with a sign.
        Setting::WbtLatUsec => at_most(i64::MAX as u64 / 1000, asked),
        _ => Ok(asked),
    }
}

fn of_mq_deadline(name: &str, asked: u64) -> Result<u64, AtMost> {
    match name {
        // An int of ticks: above, what it shows is negative.
        "read_expire" | "write_expire" | "prio_aging_expire" => {
            let most = INT_MAX / tick_ms() * tick_ms();
            at_most(most, asked).map(in_ticks)
        }
        "front_merges" => at_most(INT_MAX, asked).map(|asked| asked.min(1)),
        "async_depth" => at_most(INT_MAX, asked).map(|asked| asked.max(1)),
        _ => at_most(INT_MAX, asked),
    }
}

fn of_bfq(name: &str, asked: u64) -> Result<u64, AtMost> {
    // Nanoseconds in 32 bits: more begins again at 0.
    let of_nanoseconds = |each: u64| at_most(u64::from(u32::MAX) / each, asked);
    match name {
        "slice_idle" => of_nanoseconds(1_000_000),
        "slice_idle_us" => of_nanoseconds(1_000),
        "low_latency" | "strict_guarantees" => Ok(asked.min(1)),
        "timeout_sync" => Ok(in_ticks(asked.clamp(1, INT_MAX))),
        "back_seek_penalty" | "fifo_expire_async" | "fifo_expire_sync" => {
            Ok(asked.clamp(1, INT_MAX))
        }
        _ => Ok(asked.min(INT_MAX)),
    }
}

fn at_most(most: u64, asked: u64) -> Result<u64, AtMost> {
    match asked <= most {
        true => Ok(asked),
        false => Err(AtMost(most)),
    }
}

/// Milliseconds are kept in ticks, rounded up, and shown in whole milliseconds.
fn in_ticks(milliseconds: u64) -> u64 {
    let tick = tick_ns();
    let ticks = (u128::from(milliseconds) * 1_000_000).div_ceil(tick);
    (ticks * tick / 1_000_000) as u64
}

fn tick_ms() -> u64 {
    (tick_ns() / 1_000_000).max(1) as u64
}

/// The kernel's tick: coarse clocks go by it.
fn tick_ns() -> u128 {
    let of = clock_getres(ClockId::MonotonicCoarse);
    (of.tv_sec as u128 * 1_000_000_000 + of.tv_nsec as u128).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunable(name: &str) -> Setting {
        Setting::Tunable(name.to_owned())
    }

    #[test]
    fn values_are_those_that_were_seen() {
        let bfq = |name: &str, asked| kept(&tunable(name), "bfq", asked);
        assert_eq!(bfq("low_latency", 2), Ok(1));
        assert_eq!(bfq("fifo_expire_sync", 0), Ok(1));
        assert_eq!(bfq("fifo_expire_sync", 125), Ok(125));
        assert_eq!(bfq("back_seek_max", 1 << 40), Ok(INT_MAX));
        // 16384 ms became 3499, and 2147483648 µs became 0.
        assert_eq!(bfq("slice_idle", 4294), Ok(4294));
        assert_eq!(bfq("slice_idle", 16384), Err(AtMost(4294)));
        assert_eq!(bfq("slice_idle_us", 1 << 31), Err(AtMost(4_294_967)));
        let deadline = |name: &str, asked| kept(&tunable(name), "mq-deadline", asked);
        assert_eq!(deadline("front_merges", 3), Ok(1));
        assert!(deadline("fifo_batch", 1 << 31).is_err());
        assert_eq!(kept(&Setting::RqAffinity, "none", 3).ok(), None);
        assert_eq!(kept(&Setting::Nomerges, "none", 3), Ok(1));
        assert_eq!(kept(&tunable("read_lat_nsec"), "kyber", u64::MAX), Ok(u64::MAX));
    }

    #[test]
    fn a_tick_rounds_up() {
        let ms = tick_ms();
        if tick_ns() == 4_000_000 {
            assert_eq!(kept(&tunable("timeout_sync"), "bfq", 125), Ok(128));
            assert_eq!(kept(&tunable("read_expire"), "mq-deadline", 1), Ok(4));
        }
        assert_eq!(in_ticks(10 * ms), 10 * ms);
        assert_eq!(in_ticks(0), 0);
    }

    #[test]
    fn read_ahead_is_whole_pages() {
        if rustix::param::page_size() == 4096 {
            assert_eq!(kept(&Setting::ReadAheadKb, "none", 513), Ok(512));
            assert_eq!(kept(&Setting::ReadAheadKb, "none", 3), Ok(0));
        }
    }
}
