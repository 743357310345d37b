//! The formats that are known; each is read by its file in `formats/`.

use std::fmt;
use strum::VariantArray;

/// What a program prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub enum Format {
    /// sysbench's fileio and database tests, 0.4 to 1.1.
    Sysbench,
    /// fio's normal output, JSON, JSON+ and terse output, 2.x and 3.x.
    Fio,
    /// pgbench of PostgreSQL 9 and later.
    Pgbench,
    /// go-tpc's and tiup bench's summaries.
    GoTpc,
    /// tpcc-mysql.
    TpccMysql,
    /// HammerDB's result lines.
    HammerDb,
    /// `iostat` of sysstat 9 to 12, text and JSON.
    Iostat,
    /// vmstat.
    Vmstat,
    /// SHOW GLOBAL VARIABLES and SHOW GLOBAL STATUS.
    Variables,
}

impl Format {
    /// All of them, in the order in which a line is tried with them.
    pub const ALL: &'static [Format] = Format::VARIANTS;
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Sysbench => "sysbench",
            Format::Fio => "fio",
            Format::Pgbench => "pgbench",
            Format::GoTpc => "go-tpc",
            Format::TpccMysql => "tpcc-mysql",
            Format::HammerDb => "hammerdb",
            Format::Iostat => "iostat",
            Format::Vmstat => "vmstat",
            Format::Variables => "variables",
        })
    }
}
