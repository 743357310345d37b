//! Names that are near to one that is not known.

/// Up to three names that are near to `name`, the nearest first; those that it begins or ends are
/// near too.
pub fn near<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<(usize, &str)> = all
        .filter_map(|other| {
            let far = strsim::levenshtein(name, other);
            let part = name.len() >= 5 && (other.starts_with(name) || other.ends_with(name));
            (far <= 2 + name.len() / 6 || part).then_some((if part { 1 } else { far }, other))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().take(3).map(|(_, other)| other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_first() {
        let all = ["innodb_io_capacity", "innodb_io_capacity_max", "sync_binlog"];
        assert_eq!(near("inodb_io_capacity", all.into_iter())[0], "innodb_io_capacity");
        assert_eq!(near("io_capacity", all.into_iter()), ["innodb_io_capacity"]);
        assert!(near("colour", all.into_iter()).is_empty());
    }
}
