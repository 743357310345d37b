//! The volume below the clients: one block layer, or several striped by the host (LVM).

use blocklayer::{
    AdvanceOutput, Bio, BlockLayer, Config, ConfigError, Counters, LayerView, Submitted,
};
use device::Device;
use units::{Nanos, Sectors};

/// How the host stripes several devices into one volume, as LVM does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Striping {
    /// The stripe unit: consecutive sectors on one device.
    pub unit: Sectors,
}

/// One or several devices, each behind a queue of its own.
pub(crate) struct Volume<D: Device + ?Sized> {
    members: Vec<BlockLayer<D>>,
    unit: u64,
    max_sectors: u64,
}

impl<D: Device + ?Sized> Volume<D> {
    /// A volume of devices with the same settings; without striping there is one.
    pub fn new(
        config: &Config,
        devices: Vec<Box<D>>,
        striping: Option<Striping>,
    ) -> Result<Self, ConfigError> {
        let members = devices
            .into_iter()
            .map(|device| BlockLayer::new(config, device))
            .collect::<Result<Vec<_>, _>>()?;
        let max_sectors = members.first().map_or(u64::MAX, |member| member.max_sectors().0);
        let unit = match striping {
            Some(Striping { unit }) if members.len() > 1 => unit.0.max(1),
            _ => u64::MAX,
        };
        Ok(Volume { members, unit, max_sectors })
    }

    /// How many sectors from `start` one bio may cover: at most a request, up to the stripe unit's end.
    #[inline]
    pub fn room(&self, start: u64) -> u64 {
        match self.unit {
            u64::MAX => self.max_sectors,
            unit => self.max_sectors.min(unit - start % unit),
        }
    }

    /// The member, and the sector on it.
    #[inline]
    fn place(&self, start: u64) -> (usize, u64) {
        if self.unit == u64::MAX {
            return (0, start);
        }
        let (stripe, within) = (start / self.unit, start % self.unit);
        let members = self.members.len() as u64;
        ((stripe % members) as usize, stripe / members * self.unit + within)
    }

    /// Submits a bio within [`room`](Self::room). It completes with the member's sector numbers.
    #[inline]
    pub fn submit(&mut self, mut bio: Bio, now: Nanos) -> Submitted {
        let (member, start) = self.place(bio.start.0);
        bio.start = Sectors(start);
        self.members[member].submit(bio, now)
    }

    /// The same, without sleeping where there is no free request.
    #[inline]
    pub fn try_submit(&mut self, mut bio: Bio, now: Nanos) -> Submitted {
        let (member, start) = self.place(bio.start.0);
        bio.start = Sectors(start);
        self.members[member].try_submit(bio, now)
    }

    /// Flushes every member's cache; returns the number of completions to expect.
    pub fn flush(&mut self, bio: Bio, now: Nanos) -> u32 {
        for member in &mut self.members {
            // A layer never lets a flush wait for a request.
            let _ = member.submit(bio, now);
        }
        self.members.len() as u32
    }

    #[inline]
    pub fn unplug(&mut self, process: u32, now: Nanos) {
        for member in &mut self.members {
            member.unplug(process, now);
        }
    }

    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        match &self.members[..] {
            [one] => one.next_event(),
            members => members.iter().filter_map(BlockLayer::next_event).min(),
        }
    }

    #[inline]
    pub fn advance(&mut self, now: Nanos, outcome: &mut AdvanceOutput) {
        for member in &mut self.members {
            member.advance(now, outcome);
        }
    }

    /// Whether write-back should hold off: any member is congested.
    #[inline]
    pub fn congested(&self, write: bool) -> bool {
        self.members.iter().any(|member| member.congested(write))
    }

    /// The settings in effect.
    pub fn config(&self) -> &blocklayer::Resolved {
        self.members[0].config()
    }

    /// The cylinder of each arm, device by device.
    pub fn heads(&self) -> Vec<u32> {
        self.members.iter().flat_map(BlockLayer::heads).collect()
    }

    /// The state of all members together.
    #[inline]
    pub fn view(&self) -> LayerView {
        if let [one] = &self.members[..] {
            return one.view();
        }
        let mut all = LayerView::default();
        for view in self.members.iter().map(BlockLayer::view) {
            all.queued += view.queued;
            all.in_driver += view.in_driver;
            all.device.outstanding += view.device.outstanding;
            all.device.busy += view.device.busy;
            all.device.units += view.device.units;
            all.device.dirty = Sectors(all.device.dirty.0 + view.device.dirty.0);
        }
        all
    }

    /// The sum of the members' counters; durations of states are means.
    pub fn counters(&self) -> Counters {
        if let [one] = &self.members[..] {
            return *one.counters();
        }
        let mut all = Counters::default();
        for c in self.members.iter().map(BlockLayer::counters) {
            for at in 0..4 {
                all.bios[at] += c.bios[at];
                all.dispatched[at] += c.dispatched[at];
            }
            for at in 0..2 {
                all.merges[at] += c.merges[at];
                all.sectors[at] += c.sectors[at];
            }
            all.joins += c.joins;
            all.seek_sectors += c.seek_sectors;
            all.seeks += c.seeks;
            all.sequential += c.sequential;
            all.sleeps += c.sleeps;
            all.idle_waiting += c.idle_waiting;
            all.room_waiting += c.room_waiting;
            all.depth_time += c.depth_time;
            all.queued_time += c.queued_time;
        }
        let members = self.members.len() as u64;
        all.idle_waiting = all.idle_waiting / members;
        all.room_waiting = all.room_waiting / members;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blocklayer::Kernel;

    #[test]
    fn osmas_worked_example_falls_on_the_four_spindles_as_published() {
        let disk = || device::profile::find("hdd-15k").unwrap().build(0).unwrap();
        let config = Config::new(Kernel::V2_6_18, 32);
        let devices = (0..4).map(|_| disk()).collect();
        let striping = Some(Striping { unit: Sectors(128) });
        let volume = Volume::new(&config, devices, striping).unwrap();
        let mut spindles = vec![Vec::new(); 4];
        for sector in [10, 200, 50, 300, 1020, 600, 1500, 700] {
            spindles[volume.place(sector).0].push(sector);
        }
        let published = [vec![10, 50, 600], vec![200, 700], vec![300], vec![1020, 1500]];
        assert_eq!(spindles, published);
        assert_eq!(volume.place(1500), (3, 2 * 128 + 92));
        assert_eq!((volume.room(10), volume.room(127)), (118, 1));
    }
}
