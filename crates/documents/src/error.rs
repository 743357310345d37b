//! What can be wrong with a page or its data.

use std::path::PathBuf;
use thiserror::Error;

/// Why a page could not be read, rendered or written.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// A file or folder could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A page could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A CSV file is malformed.
    #[error("{} is not valid CSV", path.display())]
    Csv {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: csv::Error,
    },
    /// A manifest is malformed.
    #[error("{} is not a valid manifest", path.display())]
    Manifest {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A CSV file has no entry in its folder's manifest.
    #[error("{} has no [[table]] in the manifest.toml beside it", path.display())]
    Undescribed {
        /// Which.
        path: PathBuf,
    },
    /// The columns of a CSV file and of its manifest entry differ.
    #[error("{}: the file has the columns {found:?}, its manifest describes {described:?}", path.display())]
    Columns {
        /// Which file.
        path: PathBuf,
        /// The columns of its header row.
        found: Vec<String>,
        /// The columns that the manifest describes.
        described: Vec<String>,
    },
    /// A marker names a column that its table does not have.
    #[error("{page}:{line}: there is no column '{column}'; there are {}", known.join(", "))]
    UnknownColumn {
        /// The page.
        page: String,
        /// The line of the marker, from 1.
        line: usize,
        /// The column.
        column: String,
        /// The columns that exist.
        known: Vec<String>,
    },
    /// A marker has an option that is not known.
    #[error(
        "{page}:{line}: option '{option}' is not known; write columns=a,b or where=column=value"
    )]
    UnknownOption {
        /// The page.
        page: String,
        /// The line of the marker, from 1.
        line: usize,
        /// The option.
        option: String,
    },
    /// A marker is not closed.
    #[error("{page}:{line}: no <!-- end --> follows this marker")]
    Unclosed {
        /// The page.
        page: String,
        /// The line of the marker, from 1.
        line: usize,
    },
    /// A page asks for a generated section that the program does not make.
    #[error("{page}:{line}: the program generates no section '{section}'")]
    UnknownSection {
        /// The page.
        page: String,
        /// The line of the marker, from 1.
        line: usize,
        /// The section.
        section: String,
    },
}
