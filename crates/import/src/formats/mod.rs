//! The formats: one file each. A format says on which line an output begins, and reads it from there.

mod fio;
mod go_tpc;
mod hammerdb;
mod iostat;
mod pgbench;
mod sysbench;
mod tpcc_mysql;
mod variables;
mod vmstat;

pub(crate) use iostat::doubts as iostat_doubts;

pub(crate) use crate::{
    Format,
    line::{Line, quoted},
};

use crate::Piece;

impl Format {
    /// Whether an output of this format begins on a line.
    pub(crate) fn begins(self, line: &str) -> bool {
        match self {
            Format::Sysbench => sysbench::begins(line),
            Format::Fio => fio::begins(line),
            Format::Pgbench => pgbench::begins(line),
            Format::GoTpc => go_tpc::begins(line),
            Format::TpccMysql => tpcc_mysql::begins(line),
            Format::HammerDb => hammerdb::begins(line),
            Format::Iostat => iostat::begins(line),
            Format::Vmstat => vmstat::begins(line),
            Format::Variables => variables::begins(line),
        }
    }

    /// Reads the output that begins on the first of these lines.
    pub(crate) fn read(self, lines: &[Line<'_>]) -> Reading {
        match self {
            Format::Sysbench => sysbench::read(lines),
            Format::Fio => fio::read(lines),
            Format::Pgbench => pgbench::read(lines),
            Format::GoTpc => go_tpc::read(lines),
            Format::TpccMysql => tpcc_mysql::read(lines),
            Format::HammerDb => hammerdb::read(lines),
            Format::Iostat => iostat::read(lines),
            Format::Vmstat => vmstat::read(lines),
            Format::Variables => variables::read(lines),
        }
    }
}

/// What was read, and how many lines it took: one at least.
pub(crate) struct Reading {
    pub lines: usize,
    pub pieces: Vec<Piece>,
}
