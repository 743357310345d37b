//! A device whose disks have turned for some time when a trial begins.

use device::{Completion, Device, Request, View};
use random::Stream;
use units::{Nanos, Sectors};

/// A device that was on for some time before the trial, by chance up to [`Turning::LONGEST`].
///
/// Where its platters are when the first request comes decides what streams find for as long as they
/// last: before mirrors with a battery's cache one stream's writes go 1,900 a second or 1,866, each
/// for a whole trial.
#[derive(Debug)]
pub struct Turning {
    device: Box<dyn Device>,
    before: Nanos,
}

impl Turning {
    /// Many turns of any disk.
    pub const LONGEST: Nanos = Nanos::from_millis(1000);

    /// `device`; for how long it was on comes from `seed`.
    pub fn new(device: Box<dyn Device>, seed: u64) -> Turning {
        let before = Nanos(Stream::new(seed, "turning").below(Turning::LONGEST.0));
        Turning { device, before }
    }

    /// The device's time as the trial's.
    fn since(&self, at: Nanos) -> Nanos {
        at.saturating_sub(self.before)
    }
}

impl Device for Turning {
    fn submit(&mut self, request: Request, now: Nanos) {
        self.device.submit(request, now + self.before);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.device.next_event().map(|at| self.since(at))
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        let first = done.len();
        self.device.advance(now + self.before, done);
        for completion in &mut done[first..] {
            completion.submitted = self.since(completion.submitted);
            completion.began = self.since(completion.began);
            completion.at = self.since(completion.at);
        }
    }

    fn queue_depth(&self) -> u32 {
        self.device.queue_depth()
    }

    fn capacity(&self) -> Sectors {
        self.device.capacity()
    }

    fn view(&self) -> View {
        self.device.view()
    }

    fn heads(&self) -> Vec<u32> {
        self.device.heads()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::profile;

    /// The only completion of a read of `block`.
    fn read(mut device: Box<dyn Device>, block: u64) -> Completion {
        device.submit(Request::read(7, block, 8), Nanos::ZERO);
        let mut done = Vec::new();
        while let Some(at) = device.next_event() {
            device.advance(at, &mut done);
        }
        assert_eq!(done.len(), 1);
        done[0]
    }

    #[test]
    fn a_first_read_waits_for_any_part_of_a_turn_and_for_no_more() {
        let disk = || profile::find("hdd-15k").unwrap().build(1).unwrap();
        let turn = Nanos::from_millis(4);
        let block = 100_000_000;
        let times: Vec<Nanos> =
            (0..200).map(|seed| read(Box::new(Turning::new(disk(), seed)), block).at).collect();
        let (least, most) = (*times.iter().min().unwrap(), *times.iter().max().unwrap());
        let spread = most - least;
        assert!(spread < turn && spread.0 * 10 > turn.0 * 9, "{least:?} to {most:?}");
        let again = Turning::new(disk(), 7);
        assert_eq!(read(Box::new(again), block).at, times[7]);
    }

    #[test]
    fn times_are_the_trials() {
        let disk = profile::find("hdd-15k").unwrap().build(1).unwrap();
        let turn = Nanos::from_millis(4);
        let direct = read(profile::find("hdd-15k").unwrap().build(1).unwrap(), 0);
        let on = Turning { device: disk, before: Nanos(turn.0 * 100) };
        assert_eq!(read(Box::new(on), 0), direct);
    }
}
