//! The cells that are compared.

use plan::{Factor, RawLevel};
use std::{collections::BTreeMap, fmt, str::FromStr};
use strum::{EnumIter, IntoEnumIterator};
use units::Bytes;

/// A set of cells: one plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter)]
pub enum CellSet {
    /// A few of the next set, for a look.
    Short,
    /// Random blocks with few, some and many operations outstanding.
    Outstanding,
    /// Reads and writes mixed.
    Mixed,
    /// Clients that have one operation each.
    Clients16,
    /// More of them than a small queue takes.
    Clients64,
    /// Small and large scheduler queues, filled and not.
    Queues,
    /// One sequential stream.
    OneStream,
    /// Streams that a device or a scheduler must take turns with.
    FourStreams,
}

/// What the cells of a set are spanned by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Load {
    pub set: CellSet,
    pub schedulers: Vec<String>,
    /// Levels of nr_requests; none leaves it as it is.
    pub queues: &'static [u32],
    pub block_size: Bytes,
    pub patterns: &'static [&'static str],
    pub clients: u32,
    pub depths: &'static [u32],
}

const SMALL: Bytes = Bytes::from_kib(4);
const LARGE: Bytes = Bytes::from_kib(128);

impl CellSet {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            CellSet::Short => "short",
            CellSet::Outstanding => "outstanding",
            CellSet::Mixed => "mixed",
            CellSet::Clients16 => "clients-16",
            CellSet::Clients64 => "clients-64",
            CellSet::Queues => "queues",
            CellSet::OneStream => "one-stream",
            CellSet::FourStreams => "four-streams",
        }
    }

    /// What stands before the labels of its cells.
    pub fn title(self) -> &'static str {
        match self {
            CellSet::Short => "short",
            CellSet::Outstanding => "outstanding",
            CellSet::Mixed => "mixed",
            CellSet::Clients16 => "16 clients",
            CellSet::Clients64 => "64 clients",
            CellSet::Queues => "queues",
            CellSet::OneStream => "one stream",
            CellSet::FourStreams => "four streams",
        }
    }

    /// Its load, under `schedulers` where any are named.
    pub(crate) fn load(self, schedulers: &[String]) -> Load {
        let (queues, block_size, patterns, clients, depths): (&[_], _, &[_], _, &[_]) = match self {
            CellSet::Short => (&[], SMALL, &["randread", "randwrite"], 1, &[32]),
            CellSet::Outstanding => (&[], SMALL, &["randread", "randwrite"], 1, &[1, 32, 256]),
            CellSet::Mixed => (&[], SMALL, &["randrw:70"], 1, &[32]),
            CellSet::Clients16 => (&[], SMALL, &["randread"], 16, &[1]),
            CellSet::Clients64 => (&[], SMALL, &["randread"], 64, &[1]),
            CellSet::Queues => (&[64, 2048], SMALL, &["randwrite"], 1, &[16, 256]),
            CellSet::OneStream => (&[], LARGE, &["read", "write"], 1, &[4]),
            CellSet::FourStreams => (&[], LARGE, &["read", "write"], 4, &[4]),
        };
        let named = |all: &[&str]| -> Vec<String> {
            let wanted = |name: &&str| {
                schedulers.is_empty() || *name == "all" || schedulers.iter().any(|it| it == name)
            };
            all.iter().copied().filter(wanted).map(str::to_owned).collect()
        };
        let schedulers = match self {
            // nr_requests means something else under `none`.
            CellSet::Queues => named(&["mq-deadline", "kyber", "bfq"]),
            _ if schedulers.is_empty() => named(&["all"]),
            _ => schedulers.to_vec(),
        };
        Load { set: self, schedulers, queues, block_size, patterns, clients, depths }
    }
}

impl fmt::Display for CellSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title())
    }
}

impl Load {
    /// As a plan has it.
    pub fn factors(&self) -> BTreeMap<String, Vec<RawLevel>> {
        let words = |all: &[String]| all.iter().cloned().map(RawLevel::Word).collect();
        let numbers =
            |all: &[u32]| all.iter().map(|it| RawLevel::Number(u64::from(*it))).collect::<Vec<_>>();
        let block_size = self.block_size.to_string().replace(' ', "");
        let mut factors = BTreeMap::from([
            (Factor::Scheduler.to_string(), words(&self.schedulers)),
            (Factor::BlockSize.to_string(), vec![RawLevel::Word(block_size)]),
            (
                Factor::Pattern.to_string(),
                self.patterns.iter().map(|it| RawLevel::Word((*it).to_owned())).collect(),
            ),
            (Factor::Clients.to_string(), numbers(&[self.clients])),
            (Factor::Depth.to_string(), numbers(self.depths)),
        ]);
        if !self.queues.is_empty() {
            factors.insert(Factor::NrRequests.to_string(), numbers(self.queues));
        }
        factors
    }

    /// Whether its operations are small: one of them takes the transport for as long as any other.
    pub fn is_small(&self) -> bool {
        self.block_size == SMALL
    }
}

/// Which cells are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    /// Eight of each profile, with short trials.
    #[default]
    Short,
    /// All of docs/science/simulation.md.
    Full,
    /// One set of those.
    One(CellSet),
}

impl Cells {
    /// The sets.
    pub fn sets(self) -> Vec<CellSet> {
        match self {
            Cells::Short => vec![CellSet::Short],
            Cells::Full => CellSet::iter().filter(|set| *set != CellSet::Short).collect(),
            Cells::One(set) => vec![set],
        }
    }

    /// Every name that [`Cells::from_str`] takes.
    pub fn names() -> Vec<&'static str> {
        let sets = CellSet::iter().filter(|set| *set != CellSet::Short).map(CellSet::name);
        [CellSet::Short.name(), FULL].into_iter().chain(sets).collect()
    }
}

/// The name of [`Cells::Full`].
const FULL: &str = "full";

/// No set of cells has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no cells are called '{name}': write {}", Cells::names().join(", "))]
pub struct UnknownCells {
    /// The name.
    pub name: String,
}

impl FromStr for Cells {
    type Err = UnknownCells;

    fn from_str(name: &str) -> Result<Self, UnknownCells> {
        if name == FULL {
            return Ok(Cells::Full);
        }
        match CellSet::iter().find(|set| set.name() == name) {
            Some(CellSet::Short) => Ok(Cells::Short),
            Some(set) => Ok(Cells::One(set)),
            None => Err(UnknownCells { name: name.to_owned() }),
        }
    }
}

impl fmt::Display for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Cells::Short => CellSet::Short.name(),
            Cells::Full => FULL,
            Cells::One(set) => set.name(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_as_it_is_written() {
        for name in Cells::names() {
            assert_eq!(name.parse::<Cells>().unwrap().to_string(), name);
        }
        assert!("some".parse::<Cells>().unwrap_err().to_string().contains("four-streams"));
    }

    #[test]
    fn named_schedulers_take_the_place_of_all() {
        let only = ["kyber".to_owned(), "none".to_owned()];
        assert_eq!(CellSet::Short.load(&[]).schedulers, ["all"]);
        assert_eq!(CellSet::Short.load(&only).schedulers, only);
        assert_eq!(CellSet::Queues.load(&only).schedulers, ["kyber"]);
        assert_eq!(CellSet::Queues.load(&[]).schedulers, ["mq-deadline", "kyber", "bfq"]);
    }
}
