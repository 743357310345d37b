//! What a target of the simulated world says.

use super::{PREFIX, usage};
use crate::WorldError;
use blocklayer::Kernel;
use device::{Profile, array, profile::Kind};
use simulate::{TURNAROUND_USUAL, Way};
use units::Nanos;

/// The kernel level when nothing is said.
const KERNEL_USUAL: Kernel = Kernel::V6_12;

/// `simulated:PROFILE`, then `@KERNEL` and options behind commas, in any order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Target {
    pub profile: String,
    pub kernel: Kernel,
    /// A client's time between a completion and its next request.
    pub turnaround: Nanos,
    /// Between block layer and device.
    pub way: Way,
    /// The driver's depth, where it is less than the device's.
    pub depth: Option<u32>,
    /// The host stripes an array's drives itself: each has a queue of its own.
    pub lvm: bool,
}

impl Target {
    pub fn parse(text: &str) -> Result<Target, WorldError> {
        let words = text.strip_prefix(PREFIX).unwrap_or(text);
        let mut target = Target {
            profile: String::new(),
            kernel: KERNEL_USUAL,
            turnaround: TURNAROUND_USUAL,
            way: Way::default(),
            depth: None,
            lvm: false,
        };
        for (nth, word) in words.split(',').enumerate() {
            let word = match word.rsplit_once('@') {
                Some((word, level)) => {
                    target.kernel = level.parse().map_err(usage)?;
                    word
                }
                None => word,
            };
            match (nth, word.split_once('=')) {
                (0, _) => target.profile = word.to_owned(),
                (_, Some(("turnaround", time))) => target.turnaround = short("turnaround", time)?,
                (_, Some((part @ "transport", time))) => target.way.round_trip = short(part, time)?,
                (_, Some((part @ "transport_jitter", time))) => {
                    target.way.jitter = short(part, time)?;
                }
                (_, Some((part @ "transport_write", time))) => {
                    target.way.write = short(part, time)?
                }
                (_, Some((part @ "transport_gap", time))) => target.way.gap = short(part, time)?,
                (_, Some(("depth", depth))) => {
                    let number = depth.parse().ok().filter(|depth| *depth > 0);
                    target.depth = Some(number.ok_or_else(|| {
                        usage(format!("a driver's depth of '{depth}': write a number from 1"))
                    })?);
                }
                (_, None) if word == "lvm" => target.lvm = true,
                _ => {
                    return Err(WorldError::Usage(format!(
                        "'{word}' behind a profile is not known: write simulated:{},\
                         turnaround=20us (or transport=15us, transport_jitter=5us, transport_write=5us, transport_gap=12us, depth=128), or lvm to have the host stripe an array's drives, or \
                         leave it out",
                        target.profile
                    )));
                }
            }
        }
        Ok(target)
    }

    /// Whether the profile is what the options need.
    pub fn check(&self, profile: &Profile) -> Result<(), WorldError> {
        let stripes = matches!(&profile.kind, Kind::Array { spec, .. }
            if spec.level == array::Level::Stripe);
        match self.lvm && !stripes {
            false => Ok(()),
            true => Err(WorldError::Usage(format!(
                "lvm: {} is {}; the host can stripe the drives of a RAID 0 only",
                profile.name,
                profile.kind_name()
            ))),
        }
    }
}

/// A time of at most a second.
fn short(what: &str, text: &str) -> Result<Nanos, WorldError> {
    let time = text.parse::<Nanos>().map_err(usage)?;
    match time <= Nanos::from_secs(1) {
        true => Ok(time),
        false => Err(WorldError::Usage(format!(
            "a {what} of {time} between a completion and the next request is above 1 s; to offer \
             less load, use --rates"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_and_options_in_any_order() {
        let usual = Target::parse("simulated:hdd-15k").unwrap();
        assert_eq!((usual.kernel, usual.lvm), (Kernel::V6_12, false));
        let one = Target::parse("simulated:array-4x15k,lvm@2.6.18").unwrap();
        let other = Target::parse("simulated:array-4x15k@2.6.18,lvm").unwrap();
        assert_eq!(one, other);
        assert!(one.lvm && one.profile == "array-4x15k" && one.kernel == Kernel::V2_6_18);
        let target = Target::parse("simulated:x@3.10,turnaround=20us,lvm").unwrap();
        assert_eq!(target.turnaround, Nanos::from_micros(20));
        assert_eq!((target.way, target.depth), (Way::default(), None));
        let target =
            Target::parse("simulated:x,transport=15us,depth=128,transport_gap=2us").unwrap();
        assert_eq!(target.way.gap, Nanos::from_micros(2));
        assert_eq!((target.way.round_trip, target.depth), (Nanos::from_micros(15), Some(128)));
        assert!(Target::parse("simulated:x,depth=0").is_err());
        assert!(Target::parse("simulated:x,speed=9").is_err());
    }
}
