//! Published experiments as plans by name.

use workload::WordError;

/// A published experiment, or one side of it: a plan that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classic {
    /// What `--classic` calls it: the plan file's name below plans/classics.
    pub name: &'static str,
    /// What it compares, and who published it.
    pub question: &'static str,
    /// The plan file's text.
    pub plan: &'static str,
}

/// The classic whose plan is the file of this name.
macro_rules! classic {
    ($name:literal, $question:literal) => {
        Classic {
            name: $name,
            question: $question,
            plan: include_str!(concat!("../../../plans/classics/", $name, ".toml")),
        }
    };
}

impl Classic {
    /// All of them, in the order in which they were published.
    pub const ALL: [Classic; 15] = [
        classic!("osma", "Sorting in front of four striped disks (Osma, 2008)"),
        classic!("osma-lvm", "The same disks as four devices, striped by the host"),
        classic!("matsunobu", "A queue of 100,000 requests and MyISAM (Matsunobu, 2009)"),
        classic!("matsunobu-why", "The same with one mechanism switched off at a time"),
        classic!("matsunobu-queues", "The same with queues between, under deadline and noop"),
        classic!("matsunobu-today", "The same on this host's kernel with MariaDB; needs root"),
        classic!("tpcc", "TPC-C on RAID 10 with a battery cache, four schedulers (Percona, 2009)"),
        classic!("streams", "40 sequential readers on RAID 5 of four disks (2009)"),
        classic!(
            "iobench-raw",
            "Processes on 16 striped disks, past the page cache (IObench, 2012)"
        ),
        classic!("iobench-raw-rhel5.5", "The same under RHEL 5.5's cfq, after it met a queue"),
        classic!("iobench-files", "The same through ext3, ext4 and XFS, by sync mode"),
        classic!("iobench-raw-today", "The raw matrix under blk-mq, on emulated disks; needs root"),
        classic!(
            "iobench-files-today",
            "The files under today's kernel and filesystems; needs root"
        ),
        classic!("sysbench-fileio", "Random I/O on an SSD, three schedulers (sysbench, 2022)"),
        classic!("sysbench-oltp", "A database on the same SSD"),
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Result<Classic, WordError> {
        let known = Self::ALL.into_iter().find(|classic| classic.name == name);
        known.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|classic| classic.name).collect();
            WordError::new(format!("no classic is called '{name}'; there are {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawPlan;

    #[test]
    fn every_classic_is_a_plan_and_an_unknown_name_lists_all() {
        for classic in Classic::ALL {
            let plan = RawPlan::from_toml(classic.plan);
            assert!(plan.is_ok_and(|plan| plan.target.is_some()), "{}", classic.name);
            assert_eq!(Classic::named(classic.name), Ok(classic));
        }
        assert!(Classic::named("osm").unwrap_err().to_string().contains("iobench-raw"));
    }
}
