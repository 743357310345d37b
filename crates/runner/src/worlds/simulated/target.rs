//! What a target of the simulated world says.

use crate::WorldError;
use blocklayer::Kernel;
use device::{Profile, array, profile::Kind};
use simulate::{CHANCES, Chance, DEFAULT_TURNAROUND, TransportDelay};
use std::fmt;
use units::{Bytes, Nanos};

/// The kernel level when none is named.
const DEFAULT_KERNEL: Kernel = Kernel::V6_12;

/// `simulated:PROFILE`, then `@KERNEL` and options behind commas, in any order.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedTarget {
    /// The profile's name or file.
    pub profile: String,
    /// The kernel level.
    pub kernel: Kernel,
    /// A client's time between a completion and its next request.
    pub turnaround: Nanos,
    /// Between block layer and device.
    pub delay: TransportDelay,
    /// The driver's depth, where it is less than the device's.
    pub depth: Option<u32>,
    /// Of the tags that are freed while a client waits for one, the share that goes to such clients.
    pub tag_waiters_share: Option<f64>,
    /// The host stripes an array's drives itself: each has a queue of its own.
    pub lvm: bool,
    /// Files that were written at the same time lie in pieces of this size, in turns.
    pub interleaved: Option<Bytes>,
    /// cfq of 2.6.18 has taken the device for one that queues commands before the trial.
    pub tags_seen: bool,
    /// As it was written.
    text: String,
}

impl fmt::Display for SimulatedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("simulated:{}", self.text))
    }
}

impl SimulatedTarget {
    /// Reads what stands behind `simulated:`.
    pub fn parse(words: &str) -> Result<SimulatedTarget, WorldError> {
        let mut target = SimulatedTarget {
            profile: String::new(),
            kernel: DEFAULT_KERNEL,
            turnaround: DEFAULT_TURNAROUND,
            delay: TransportDelay::default(),
            depth: None,
            tag_waiters_share: None,
            lvm: false,
            interleaved: None,
            tags_seen: false,
            text: words.to_owned(),
        };
        for (nth, word) in words.split(',').enumerate() {
            let word = match word.rsplit_once('@') {
                Some((word, level)) => {
                    target.kernel = level.parse().map_err(WorldError::usage)?;
                    word
                }
                None => word,
            };
            match (nth, word.split_once('=')) {
                (0, _) => target.profile = word.to_owned(),
                (_, Some(("turnaround", time))) => target.turnaround = short("turnaround", time)?,
                (_, Some((part @ "transport", time))) => {
                    target.delay.round_trip = short(part, time)?
                }
                (_, Some((part @ "transport_jitter", time))) => {
                    target.delay.jitter = chance(part, time)?;
                }
                (_, Some((part @ "transport_write", time))) => {
                    target.delay.write = short(part, time)?
                }
                (_, Some((part @ "transport_every", time))) => {
                    target.delay.every = short(part, time)?
                }
                (_, Some((part @ "transport_gap", time))) => target.delay.gap = short(part, time)?,
                (_, Some(("depth", depth))) => {
                    let number = depth.parse().ok().filter(|depth| *depth > 0);
                    target.depth = Some(number.ok_or_else(|| {
                        WorldError::usage(format!(
                            "a driver's depth of '{depth}': write a number from 1"
                        ))
                    })?);
                }
                (_, Some(("tag_waiters", share))) => {
                    let number = share.parse().ok().filter(|share| (0.0..=1.0).contains(share));
                    target.tag_waiters_share = Some(number.ok_or_else(|| {
                        WorldError::usage(format!(
                            "tag_waiters={share}: write the share of freed tags that clients waiting \
                             for one get, from 0 to 1"
                        ))
                    })?);
                }
                (_, Some(("interleaved", piece))) => {
                    target.interleaved = Some(piece.parse().map_err(WorldError::usage)?);
                }
                (_, None) if word == "lvm" => target.lvm = true,
                (_, None) if word == "loop" => target.delay.is_loop = true,
                (_, None) if word == "tags_seen" => target.tags_seen = true,
                _ => {
                    return Err(WorldError::usage(format!(
                        "'{word}' behind a profile is not known: write simulated:{},\
                         turnaround=20us (or transport=15us, transport_jitter=5us, transport_every=99us, \
                         transport_write=5us, transport_gap=12us, depth=128, tag_waiters=0.1, interleaved=1M), or lvm to have the host stripe \
                         an array's drives, or loop for a loop device on the way, or tags_seen for a cfq that met a queue before, or leave it out",
                        target.profile
                    )));
                }
            }
        }
        if target.tags_seen && !target.kernel.is_2_6_18() {
            return Err(WorldError::usage(format!(
                "tags_seen: cfq of kernel {} finds out anew whether the device queues commands; only that of 2.6.18 \
                 keeps what it saw once: write @2.6.18 (or a build of it), or leave it out",
                target.kernel
            )));
        }
        Ok(target)
    }

    /// Whether the profile is what the options need.
    pub fn check(&self, profile: &Profile) -> Result<(), WorldError> {
        let stripes = matches!(&profile.kind, Kind::Array { spec, .. }
            if spec.level == array::Level::Stripe);
        match self.lvm && !stripes {
            false => Ok(()),
            true => Err(WorldError::usage(format!(
                "lvm: {} is {}; the host can stripe the drives of a RAID 0 only",
                profile.name,
                profile.kind_name()
            ))),
        }
    }
}

/// A mean, or measured quantiles from the lowest on.
fn chance(what: &str, text: &str) -> Result<Chance, WorldError> {
    let times = text.split('/').map(|time| short(what, time)).collect::<Result<Vec<_>, _>>()?;
    if let [mean] = times[..] {
        return Ok(Chance::Exponential(mean));
    }
    match <[Nanos; CHANCES.len()]>::try_from(times) {
        Ok(times) if times.is_sorted() => Ok(Chance::Measured(times)),
        _ => Err(WorldError::usage(format!(
            "{what}={text}: write a mean, or {} times that grow, 'a/b/…', those below which lie {}, {} … \
             {} of all",
            CHANCES.len(),
            CHANCES[0],
            CHANCES[1],
            CHANCES[CHANCES.len() - 1]
        ))),
    }
}

/// Times as [`chance`] reads them.
pub(super) fn chance_text(chance: &Chance) -> String {
    match chance {
        Chance::Exponential(mean) => mean.to_string(),
        Chance::Measured(times) => times.map(|time| time.to_string()).join("/"),
    }
}

/// A time of at most a second.
fn short(what: &str, text: &str) -> Result<Nanos, WorldError> {
    let time = text.parse::<Nanos>().map_err(WorldError::usage)?;
    match time <= Nanos::from_secs(1) {
        true => Ok(time),
        false => Err(WorldError::usage(format!(
            "{what}={time} is above 1 s, the most that can be said; to offer less load, use --rates"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_and_options_in_any_order() {
        let usual = SimulatedTarget::parse("hdd-15k").unwrap();
        assert_eq!((usual.kernel, usual.lvm), (Kernel::V6_12, false));
        let one = SimulatedTarget::parse("array-4x15k,lvm@2.6.18").unwrap();
        let other = SimulatedTarget::parse("array-4x15k@2.6.18,lvm").unwrap();
        assert_eq!(SimulatedTarget { text: one.text.clone(), ..other }, one);
        assert!(one.lvm && one.profile == "array-4x15k" && one.kernel == Kernel::V2_6_18);
        let target = SimulatedTarget::parse("x@3.10,turnaround=20us,lvm").unwrap();
        assert_eq!(target.turnaround, Nanos::from_micros(20));
        assert_eq!((target.delay, target.depth), (TransportDelay::default(), None));
        let target =
            SimulatedTarget::parse("x,transport=15us,depth=128,transport_gap=2us").unwrap();
        assert_eq!(target.delay.gap, Nanos::from_micros(2));
        assert_eq!((target.delay.round_trip, target.depth), (Nanos::from_micros(15), Some(128)));
        let target = SimulatedTarget::parse(
            "x,transport_jitter=5us,tag_waiters=0.2,transport_write=7us,transport_every=9us",
        );
        let SimulatedTarget { delay, tag_waiters_share, .. } = target.unwrap();
        let micros = Nanos::from_micros;
        let jitter = Chance::Exponential(micros(5));
        assert_eq!((delay.jitter, delay.write, tag_waiters_share), (jitter, micros(7), Some(0.2)));
        assert_eq!(delay.every, micros(9));
        let measured = "0ns/1us/2us/3us/4us/5us/6us/7us/8us/9us/1ms";
        let target = SimulatedTarget::parse(&format!("x,transport_jitter={measured}")).unwrap();
        let Chance::Measured(times) = target.delay.jitter else { panic!("{target:?}") };
        assert_eq!((times[1], times[10]), (micros(1), Nanos::from_millis(1)));
        assert_eq!(
            chance(measured, &chance_text(&target.delay.jitter)).unwrap(),
            target.delay.jitter
        );
        for wrong in [
            "tag_waiters=1.5",
            "transport_jitter=2s",
            "transport_jitter=1us/2us",
            "transport_jitter=9us/1us/2us/3us/4us/5us/6us/7us/8us/9us/1ms",
            "transport_write=5x",
            "transport_every=2s",
        ] {
            let error =
                SimulatedTarget::parse(&format!("simulated:x,{wrong}")).unwrap_err().to_string();
            let (what, _) = wrong.split_once('=').unwrap();
            assert!(error.contains(what) || error.contains("time"), "{wrong}: {error}");
        }
        assert!(SimulatedTarget::parse("x,loop").unwrap().delay.is_loop);
        assert!(SimulatedTarget::parse("x,depth=0").is_err());
        assert!(SimulatedTarget::parse("x,tags_seen@2.6.18-194.el5").unwrap().tags_seen);
        let refused = SimulatedTarget::parse("x,tags_seen@3.10").unwrap_err().to_string();
        assert!(refused.contains("only that of 2.6.18"), "{refused}");
        assert!(SimulatedTarget::parse("x,speed=9").is_err());
    }
}
