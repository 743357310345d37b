//! Why nothing can be imported.

/// Why a file's bytes are no text that can be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The gzip data are damaged.
    #[error("the gzip data are damaged or cut")]
    Gzip(#[source] std::io::Error),
    /// More text than is read.
    #[error("it has more than {limit} of text; cut out the outputs and import those")]
    TooLong {
        /// How much is read.
        limit: units::Bytes,
    },
    /// It is no text.
    #[error("it is no text: byte {place} is zero")]
    Binary {
        /// Where.
        place: usize,
    },
}

/// Why there is no run in files.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read as text.
    #[error("{file}")]
    Decode {
        /// The file.
        file: String,
        /// Why.
        #[source]
        source: DecodeError,
    },
    /// No output of a known program is in any of them.
    #[error(
        "{file}: no output that is known: expected what sysbench, fio, pgbench, go-tpc, tpcc-mysql, HammerDB, \
         iostat -x, sar -d or vmstat print{seen} (spindle explain importing)"
    )]
    NothingKnown {
        /// The first of the files.
        file: String,
        /// What it looks like, and what to give instead: behind a semicolon.
        seen: String,
    },
    /// There is context (variables) and no figures.
    #[error("{file}: there are {what} in it, but no figures of a run")]
    ContextAlone {
        /// The first of the files.
        file: String,
        /// What there is.
        what: &'static str,
    },
    /// More runs than a report can show.
    #[error(
        "there are {runs} runs in these files, and {limit} are taken at most: import fewer at once"
    )]
    TooMany {
        /// How many.
        runs: usize,
        /// The most.
        limit: usize,
    },
    /// A cell's name is not possible.
    #[error("--cell {name}")]
    Cell {
        /// The name.
        name: String,
        /// Why.
        #[source]
        source: workload::WordError,
    },
}
