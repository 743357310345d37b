//! The profiles that come with the program, and finding one by its name.

use super::{Profile, ProfileError};
use std::path::Path;

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../profiles/", $name, ".toml")))),*]
    };
}

const BUILTIN: &[(&str, &str)] = builtin![
    "array-4x15k",
    "hdd-15k",
    "hdd-7200",
    "raid0-16x15k-4g",
    "raid1-2x15k",
    "raid10-8x15k-bbu",
    "raid5-4x7200",
    "ssd-nvme",
    "ssd-sata-2018",
    "ssd-x25e",
];

/// The names of the profiles that come with the program, in order.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// A profile that comes with the program.
pub fn find(name: &str) -> Result<Profile, ProfileError> {
    match BUILTIN.iter().find(|(n, _)| *n == name) {
        Some((name, text)) => Profile::parse(name, text, &find),
        None => Err(ProfileError::Unknown { name: name.to_owned(), near: closest(name, &[]) }),
    }
}

/// A profile by its name, or from a file if the name ends in `.toml`. An array's members are looked
/// for beside its file first. The one place of this crate that reads files.
pub fn load(name: &str) -> Result<Profile, ProfileError> {
    if !name.ends_with(".toml") {
        return find(name);
    }
    let text = std::fs::read_to_string(name).map_err(|error| ProfileError::Unreadable {
        file: name.to_owned(),
        why: error.to_string(),
    })?;
    let folder = Path::new(name).parent().unwrap_or(Path::new("")).to_owned();
    Profile::parse(name, &text, &|member| {
        let beside = folder.join(format!("{member}.toml"));
        match beside.is_file() && beside != Path::new(name) {
            true => load(&beside.to_string_lossy()),
            false => find(member),
        }
    })
}

/// Up to three names like `name`, among the built-in ones and `others`.
pub fn closest(name: &str, others: &[String]) -> Vec<String> {
    let wanted = name.to_lowercase();
    let mut near: Vec<(usize, String)> = builtin_names()
        .map(str::to_owned)
        .chain(others.iter().cloned())
        .map(|candidate| {
            let shares = candidate.contains(&wanted) && wanted.len() >= 3;
            (if shares { 1 } else { edits(&wanted, &candidate) }, candidate)
        })
        .filter(|(edits, candidate)| *edits <= candidate.len().max(wanted.len()) / 2)
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

/// Levenshtein's distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_its_profile() {
        assert_eq!(closest("hdd15k", &[])[0], "hdd-15k");
        assert_eq!(closest("nvme", &[])[0], "ssd-nvme");
        assert!(closest("qqqqqqqqqq", &[]).is_empty());
        let message = find("hdd-16k").unwrap_err().to_string();
        assert!(message.contains("did you mean hdd-15k"), "{message}");
    }
}
