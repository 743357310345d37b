//! The formats of drive descriptions that can be imported: one module each, and one variant here.

use crate::disksim;
use crate::drive_files::{DriveFileError, DriveFiles, Imported};

/// A format in which others describe drives.
///
/// To add one: a module that reads its files, a variant with its line in [`DriveFormat::spec`] and in
/// [`DriveFormat::import`], and a page `docs/design/NAME-import.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::VariantArray)]
pub enum DriveFormat {
    /// DiskSim's parameter files.
    DiskSim,
}

/// What is known of a format without files at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveFormatSpec {
    /// The name of its module and, before `-import`, of its page.
    pub name: &'static str,
    /// Its name in messages and sources.
    pub title: &'static str,
    /// The endings of its files, without the dot. No two formats share one: they tell the format.
    pub endings: &'static [&'static str],
}

impl DriveFormat {
    /// All, in the order in which they are tried.
    pub const ALL: &'static [DriveFormat] = <DriveFormat as strum::VariantArray>::VARIANTS;

    /// What is known of it.
    pub const fn spec(self) -> DriveFormatSpec {
        match self {
            DriveFormat::DiskSim => DriveFormatSpec {
                name: "disksim",
                title: "DiskSim",
                endings: &["diskspecs", "model", "layout", "seek", "seeks", "parv"],
            },
        }
    }

    /// The format that has files of this ending.
    pub fn of_ending(ending: &str) -> Option<DriveFormat> {
        DriveFormat::ALL.iter().copied().find(|format| format.spec().endings.contains(&ending))
    }

    /// Reads a drive from its files, which are all of this format. Where they describe several,
    /// `wanted` is the name of one, or of its file.
    ///
    /// # Errors
    ///
    /// The file and line that do not fit the format, or that ask for what no model has.
    pub fn import(
        self,
        files: &DriveFiles,
        wanted: Option<&str>,
    ) -> Result<Imported, DriveFileError> {
        match self {
            DriveFormat::DiskSim => disksim::import(files, wanted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_tells_the_format() {
        for format in DriveFormat::ALL {
            for ending in format.spec().endings {
                assert_eq!(DriveFormat::of_ending(ending), Some(*format), "{ending}");
            }
        }
        assert_eq!(DriveFormat::of_ending("txt"), None);
    }
}
