//! The device models that are compared.

use crate::ValidateError;
use device::{Profile, profile, profile::Kind};
use std::path::Path;
use units::{Bytes, Nanos};

/// The profiles when none is named. The second is the third without its cache.
pub const DEFAULT_PROFILES: [&str; 5] =
    ["hdd-15k", WITHOUT_CACHE, "raid10-8x15k-bbu", "ssd-x25e", "ssd-sata-2018"];

/// Not a profile of its own: an array whose write cache is left out.
const WITHOUT_CACHE: &str = "raid10-8x15k";

/// What it is made of.
const WITH_CACHE: &str = "raid10-8x15k-bbu";

/// The size of a write cache here: full within a trial's warm-up. An empty cache takes writes at once,
/// and only past that can worlds be compared.
const CACHE: Bytes = Bytes::from_mib(8);

/// How much of flash is used.
const FLASH_SPAN: Bytes = Bytes::from_gib(16);

/// Time measured in each trial. A slow disk's must be long: with 450 operations a second, the slowest
/// hundredth of five trials of 0.7 s is sixteen of them, and says nothing to a tenth.
const MEASURE_DISK: Nanos = Nanos::from_secs(4);
const MEASURE_ARRAY: Nanos = Nanos::from_secs(2);
const MEASURE_FLASH: Nanos = Nanos::from_secs(1);

const WARMUP: Nanos = Nanos::from_millis(300);
/// So long that a cache of [`CACHE`] fills.
const WARMUP_CACHE: Nanos = Nanos::from_secs(2);

/// A device model under test.
#[derive(Clone, Debug)]
pub struct Subject {
    /// As the user named it.
    pub name: String,
    /// Its profile's name, or a file that was made for it.
    pub source: String,
    /// The span that the load uses; all, where none.
    pub size: Option<Bytes>,
    /// Time before measuring.
    pub warmup: Nanos,
    /// Time measured, in trials of full length.
    pub measure: Nanos,
    /// Whether it has moving parts.
    pub rotates: bool,
}

impl Subject {
    /// Loads a profile; one that must be changed for this is written into `folder`.
    pub fn of(name: &str, folder: &Path) -> Result<Subject, ValidateError> {
        let profile = match name {
            WITHOUT_CACHE => profile::load(WITH_CACHE)?,
            _ => profile::load(name)?,
        };
        let rotates = profile.rotates();
        let (measure, cached) = match &profile.kind {
            Kind::Disk(_) => (MEASURE_DISK, false),
            Kind::Flash(_) => (MEASURE_FLASH, false),
            Kind::Array { spec, .. } => (MEASURE_ARRAY, spec.write_back.is_some()),
        };
        let keeps_cache = cached && name != WITHOUT_CACHE;
        let source = match cached {
            true => made_file(&profile, name, keeps_cache, folder)?,
            false => name.to_owned(),
        };
        Ok(Subject {
            name: profile_name(name).to_owned(),
            source,
            size: (!rotates).then_some(FLASH_SPAN),
            warmup: if keeps_cache { WARMUP_CACHE } else { WARMUP },
            measure,
            rotates,
        })
    }

    /// How many simulated trials there are for each emulated one. Virtual time costs little, so that of
    /// slow disks there are more, and the error is that of the emulated ones.
    pub fn simulated_per_emulated(&self) -> u32 {
        if self.rotates { 4 } else { 1 }
    }
}

/// A file's name without folder and ending.
fn profile_name(name: &str) -> &str {
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    stem.filter(|_| name.ends_with(".toml")).unwrap_or(name)
}

/// The array with a small cache, or without one.
fn made_file(
    profile: &Profile,
    name: &str,
    keeps_cache: bool,
    folder: &Path,
) -> Result<String, ValidateError> {
    let path = folder.join(format!("{}.toml", profile_name(name)));
    let text =
        changed(&profile.text, keeps_cache).map_err(|error| ValidateError::write(&path, error))?;
    std::fs::write(&path, text).map_err(|error| ValidateError::write(&path, error))?;
    Ok(path.to_string_lossy().into_owned())
}

/// The text of a profile of an array with its cache made small, or taken away.
fn changed(
    text: &str,
    keeps_cache: bool,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let mut document: toml::Table = text.parse()?;
    if let Some(array) = document.get_mut("array").and_then(toml::Value::as_table_mut) {
        match array.get_mut("cache").and_then(toml::Value::as_table_mut) {
            Some(cache) if keeps_cache => {
                cache.insert("size".to_owned(), toml::Value::String(CACHE.to_string()));
            }
            _ => {
                array.remove("cache");
            }
        }
    }
    Ok(toml::to_string(&document)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Sectors;

    #[test]
    fn a_cache_is_made_small_or_left_out() {
        let parse = |text: String| Profile::parse("made", &text, &profile::find).unwrap();
        let original = profile::find(WITH_CACHE).unwrap();
        let cache = |profile: &Profile| match &profile.kind {
            Kind::Array { spec, .. } => spec.write_back,
            other => panic!("{other:?}"),
        };
        let small = parse(changed(&original.text, true).unwrap());
        assert_eq!(Sectors(cache(&small).unwrap().size).bytes(), CACHE);
        assert_eq!(
            cache(&original).unwrap().high_water,
            cache(&small).unwrap().high_water,
            "only its size is another"
        );
        assert!(cache(&parse(changed(&original.text, false).unwrap())).is_none());
    }
}
