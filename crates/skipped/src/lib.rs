//! What a test needs of the machine, and the list of tests that could not have it. For tests alone.
//!
//! A test that lacks something calls [`skip`] and returns. `make test` names a file in
//! `SPINDLE_SKIPPED` and prints at its end what stands there; `SPINDLE_REQUIRE` makes a lack a failure.

use std::{fs::OpenOptions, io::Write};

/// What a test may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Root's rights.
    Root,
    /// Loop devices.
    Loop,
    /// /dev/fuse, for emulated devices.
    Fuse,
    /// MariaDB's server.
    MariaDb,
    /// PostgreSQL's server.
    PostgreSql,
    /// MySQL and today's servers, unpacked.
    Servers,
    /// fio.
    Fio,
    /// Data that others published, beside the project.
    Data,
    /// Chromium, and the packages of web/.
    Browser,
    /// Another program.
    Program,
    /// Something of this kernel or of how this machine is set up.
    Kernel,
}

impl Need {
    /// Its name in `SPINDLE_REQUIRE`.
    pub fn name(self) -> &'static str {
        match self {
            Need::Root => "root",
            Need::Loop => "loop",
            Need::Fuse => "fuse",
            Need::MariaDb => "mariadb",
            Need::PostgreSql => "postgresql",
            Need::Servers => "servers",
            Need::Fio => "fio",
            Need::Data => "data",
            Need::Browser => "browser",
            Need::Program => "program",
            Need::Kernel => "kernel",
        }
    }
}

/// Reports that the test of this thread (or a part of it) cannot run, and why.
///
/// # Panics
///
/// Where `SPINDLE_REQUIRE` (names separated by commas) says that this machine has what the test needs.
pub fn skip(need: Need, why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("{test}: needs {}: {why}", need.name());
    let required = std::env::var("SPINDLE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name.trim() == need.name()),
        "SPINDLE_REQUIRE names {}, but {line}",
        need.name()
    );
    println!("SKIPPED {line}");
    if let Some(path) = std::env::var_os("SPINDLE_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        assert!(written.is_ok(), "SPINDLE_SKIPPED: cannot write to {}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Runs this test again in a process with that environment.
    fn again(required: &str, list: &std::path::Path) -> bool {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::a_part_that_lacks_root", "--include-ignored"])
            .env("SPINDLE_REQUIRE", required)
            .env("SPINDLE_SKIPPED", list)
            .env("SPINDLE_SKIPPED_SELF", "1")
            .output()
            .unwrap()
            .status
            .success()
    }

    #[test]
    fn a_part_that_lacks_root() {
        // Only in the process that the other test starts.
        if std::env::var_os("SPINDLE_SKIPPED_SELF").is_some() {
            skip(Need::Root, "it is an example");
        }
    }

    #[test]
    fn a_lack_is_listed_or_a_failure() {
        let list = std::env::temp_dir().join(format!("spindle-skipped-{}", std::process::id()));
        assert!(again("loop,fuse", &list));
        let text = std::fs::read_to_string(&list).unwrap();
        std::fs::remove_file(&list).unwrap();
        assert_eq!(text, "tests::a_part_that_lacks_root: needs root: it is an example\n");
        assert!(!again("loop, root", &list));
        assert!(!list.exists());
    }
}
