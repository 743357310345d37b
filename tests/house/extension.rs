//! Extension points: one file, one line in a list, one page.

use crate::source;
use std::{collections::BTreeSet, path::Path};

/// Names of the files in a folder without their ending; without the module's own file.
fn names(folder: &str, ending: &str) -> BTreeSet<String> {
    let folder = source::root().join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(ending).map(str::to_owned))
        .filter(|name| name != "mod" && name != "README")
        .collect()
}

fn page(folder: &str, name: &str) -> bool {
    source::root().join(folder).join(format!("{name}.md")).is_file()
}

/// Whether a folder has a module of this name: a file, or a folder.
fn has_module(folder: &str, name: &str) -> bool {
    let folder = source::root().join(folder);
    folder.join(format!("{name}.rs")).is_file() || folder.join(name).join("mod.rs").is_file()
}

/// The documented help of the command line.
fn help() -> String {
    std::fs::read_to_string(source::root().join("docs/reference/cli.md")).unwrap()
}

#[test]
fn each_finding_has_a_file_and_a_page() {
    let kinds: BTreeSet<String> =
        analysis::FindingKind::all().map(|kind| kind.id().replace('-', "_")).collect();
    assert_eq!(names("crates/analysis/src/findings", ".rs"), kinds);
    for kind in analysis::FindingKind::all() {
        assert!(page("docs/reference/findings", kind.id()), "no page of {}", kind.id());
    }
}

#[test]
fn each_finding_is_named_by_tests() {
    let tests: String = source::files(&source::root().join("crates/analysis/tests"), ".rs")
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    for kind in analysis::FindingKind::all() {
        let name = format!("FindingKind::{kind:?}");
        assert!(tests.contains(&name), "no test names {name}");
    }
}

#[test]
fn each_crate_says_what_lives_in_it() {
    for name in source::crates() {
        let folder = source::root().join("crates").join(&name).join("src");
        let text = ["lib.rs", "main.rs"]
            .iter()
            .find_map(|file| std::fs::read_to_string(folder.join(file)).ok())
            .unwrap_or_default();
        assert!(text.starts_with("//!"), "crates/{name}: no `//!` at its beginning");
        let map = std::fs::read_to_string(source::root().join("ARCHITECTURE.md")).unwrap();
        assert!(map.contains(&format!("crates/{name}")), "ARCHITECTURE.md lacks crates/{name}");
        assert!(Path::new(&folder).is_dir());
    }
}

/// Names as files spell them.
fn files_of<T: ToString>(all: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    all.into_iter().map(|kind| kind.to_string().replace('-', "_")).collect()
}

#[test]
fn each_scheduler_has_its_facts_a_model_and_a_page() {
    let kinds = files_of(scheduler::SchedulerKind::ALL);
    assert_eq!(names("crates/scheduler/src/kinds", ".rs"), kinds);
    for kind in scheduler::SchedulerKind::ALL {
        let name = kind.to_string();
        assert!(page("docs/reference/schedulers", &name), "no page of {name}");
        // `none` is the absence of one.
        let models = "crates/blocklayer/src/schedulers";
        let is_made = has_module(models, &name.replace('-', "_"));
        assert!(is_made || kind == &scheduler::SchedulerKind::None, "no file {models}/{name}.rs");
    }
}

#[test]
fn each_private_server_has_a_file_and_a_page() {
    let files = names("crates/database/src/servers", ".rs");
    for server in workload::PrivateServer::ALL {
        let name = server.spec().name;
        assert!(files.contains(name), "no file of {name}");
        assert!(page("docs/reference/servers", name), "no page of {name}");
    }
}

#[test]
fn each_database_workload_has_a_file_and_a_page() {
    for kind in workload::DatabaseKind::ALL {
        let name = kind.family().name();
        let folder = "crates/database/src/workloads";
        assert!(has_module(folder, name), "no file {folder}/{name}.rs");
        assert!(page("docs/reference/workloads", name), "no page of {name}");
    }
}

#[test]
fn each_preset_has_a_file_and_a_page() {
    let mut files = names("crates/database/src/presets", ".rs");
    files.remove("tests");
    assert_eq!(files, files_of(workload::Preset::ALL));
    for preset in workload::Preset::ALL {
        let name = preset.to_string();
        assert!(page("docs/reference/presets", &name), "no page of {name}");
    }
}

#[test]
fn each_trace_format_has_a_file_and_is_in_the_lists() {
    let page = std::fs::read_to_string(source::root().join("docs/design/simulated.md")).unwrap();
    let list = page.split("\nFormats: ").nth(1).and_then(|rest| rest.split(". ").next());
    let list = list.expect("a sentence `Formats: …` in docs/design/simulated.md").to_lowercase();
    let help = help();
    let flag = help.split("--replay-format <FORMAT>").nth(1).expect("--replay-format in cli.md");
    let flag = flag.split(" --").next().unwrap_or_default();
    let words =
        |text: &str, word: &str| text.split(|c: char| !c.is_alphanumeric()).any(|it| it == word);
    assert_eq!(names("crates/trace/src/formats", ".rs"), files_of(trace::Format::ALL));
    for format in trace::Format::ALL {
        let name = format.to_string();
        assert!(words(&list, &name), "{name} is not under `Formats:` in docs/design/simulated.md");
        assert!(words(flag, &name), "{name} is not in the help of --replay-format");
    }
}

#[test]
fn each_imported_output_has_a_file_and_a_section() {
    let page =
        std::fs::read_to_string(source::root().join("docs/reference/import-formats.md")).unwrap();
    let sections: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    for format in import::Format::ALL {
        let name = format.to_string();
        let folder = "crates/import/src/formats";
        assert!(has_module(folder, &name.replace('-', "_")), "no file {folder}/{name}.rs");
        assert!(
            sections.contains(name.as_str()),
            "docs/reference/import-formats.md has no section {name}"
        );
    }
    let modules = names("crates/import/src/formats", ".rs").len()
        + usize::from(has_module("crates/import/src/formats", "fio"));
    assert_eq!(modules, import::Format::ALL.len(), "a file of no format");
}

#[test]
fn each_import_format_has_a_module_a_page_and_its_word_in_the_help() {
    let help = help();
    let section = help.split("## `profiles import`").nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    for format in device::DriveFormat::ALL {
        let device::DriveFormatSpec { name, title, .. } = format.spec();
        assert!(has_module("crates/device/src", name), "no module crates/device/src/{name}");
        assert!(page("docs/design", &format!("{name}-import")), "no docs/design/{name}-import.md");
        assert!(section.contains(title), "the help of `profiles import` does not name {title}");
    }
}
