use super::*;
use std::collections::BTreeSet;

#[test]
fn names_are_read_as_they_are_written() {
    for kind in SchedulerKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(*kind));
    }
    let names: BTreeSet<_> = SchedulerKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), SchedulerKind::ALL.len());
    let error = "mq_deadline".parse::<SchedulerKind>().unwrap_err();
    assert_eq!(error.to_string(), "unknown scheduler 'mq_deadline', did you mean 'mq-deadline'?");
    assert_eq!("adios".parse::<SchedulerKind>().unwrap_err().nearest, None);
}

#[test]
fn a_tunable_is_there_once_at_each_version() {
    let versions = [(2, 6, 18), (2, 6, 32), (3, 10, 0), (4, 19, 0), (5, 15, 0), (6, 18, 0)];
    for kind in SchedulerKind::ALL {
        for (major, minor, patch) in versions {
            let at = kind.tunables(KernelVersion::new(major, minor, patch));
            let names: Vec<_> = at.map(|tunable| tunable.name).collect();
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{kind}");
        }
        for tunable in kind.spec().tunables {
            assert!(tunable.min <= tunable.default && tunable.default <= tunable.max);
            assert!(tunable.description.ends_with('.'), "{kind}.{}", tunable.name);
        }
    }
}

#[test]
fn versions_are_those_of_releases() {
    let cfq = SchedulerKind::Cfq;
    let at = |text: &str| text.parse::<KernelVersion>().unwrap();
    assert!(cfq.is_in(Generation::SingleQueue, at("4.19.0-25-amd64")));
    assert!(!cfq.is_in(Generation::SingleQueue, at("5.0")));
    assert!(!cfq.is_in(Generation::MultiQueue, at("4.19")));
    let quantum = |version| cfq.tunables(at(version)).next().map(|quantum| quantum.default);
    assert_eq!((quantum("2.6.32"), quantum("3.10.0-1160.el7")), (Some(4), Some(8)));
    assert!("six.twelve".parse::<KernelVersion>().is_err());
    assert_eq!(at("6.12.0").to_string(), "6.12");
}

#[test]
fn every_scheduler_has_a_page_with_its_tunables() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/schedulers");
    for kind in SchedulerKind::ALL {
        let path = format!("{docs}/{}.md", kind.spec().page);
        let page = std::fs::read_to_string(&path);
        let page = page.unwrap_or_else(|error| panic!("{path}: {error}"));
        for tunable in kind.spec().tunables.iter().filter(|tunable| tunable.modelled) {
            assert!(page.contains(tunable.name), "{path} lacks {}", tunable.name);
        }
    }
}
