use super::*;
use proptest::prelude::*;

fn entries() -> Vec<Entry> {
    let started = Event::Started {
        version: VERSION,
        boot_id: "b".into(),
        pid: 7,
        command: "spindle compare".into(),
        at: Nanos(7),
        host: None,
    };
    let gone = |n| Event::Gone { n };
    [started, gone(1), gone(2), gone(3)]
        .into_iter()
        .enumerate()
        .map(|(n, event)| Entry { n: n as u64, at_unix_s: 1, event })
        .collect()
}

fn bytes() -> Vec<u8> {
    entries().iter().flat_map(|entry| line_of(entry).unwrap().into_bytes()).collect()
}

#[test]
fn a_dead_process_leaves_no_draft_and_a_living_one_keeps_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let draft = |pid: u32| folder.path().join(format!("1-{pid}.draft"));
    // Beyond the largest process number that Linux gives.
    let (dead, own) = (draft(4_194_305), draft(std::process::id()));
    for path in [&dead, &own] {
        fs::write(path, "").unwrap();
    }
    pending(folder.path()).unwrap();
    assert!(!dead.exists() && own.exists());
}

#[test]
fn check_value_of_the_crc() {
    // The check value that every catalogue of CRCs gives for this one.
    assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
}

#[test]
fn whole_journal_reads_back() {
    let reading = Reading::of(&bytes());
    assert_eq!(reading.entries, entries());
    assert_eq!(reading.damage, []);
}

#[test]
fn journals_are_undone_from_the_latest_whatever_the_clock_of_the_day_was() {
    let boot = boot_id(&Host::here());
    let journal = |name: &str, boot: &str, at: u64| {
        let event = Event::Started {
            version: VERSION,
            boot_id: boot.to_owned(),
            pid: 7,
            command: "spindle compare".into(),
            at: Nanos::from_secs(at),
            host: None,
        };
        let entries = vec![Entry { n: 0, at_unix_s: 1, event }];
        let reading = Reading { entries, damage: Vec::new() };
        let _lock = File::open("/dev/null").unwrap();
        PendingJournal { path: PathBuf::from(name), reading, _lock }
    };
    // The second of this boot began after the clock of the day was set back.
    let mut all = [
        journal("500-7.journal", &boot, 10),
        journal("600-7.journal", "another boot", 90),
        journal("100-7.journal", &boot, 20),
        journal("700-7.journal", "another boot", 80),
    ];
    latest_first(&mut all);
    let names: Vec<_> = all.iter().map(|it| it.path.to_str().unwrap()).collect();
    assert_eq!(names, ["100-7.journal", "500-7.journal", "700-7.journal", "600-7.journal"]);
}

#[test]
fn missing_lines_are_seen() {
    let all = bytes();
    let lines: Vec<&[u8]> = all.split_inclusive(|b| *b == b'\n').collect();
    let reading = Reading::of(&[lines[0], lines[1], lines[3]].concat());
    assert_eq!(reading.entries.len(), 3);
    assert_eq!(reading.damage[0].problem, Problem::Gap);
    assert_eq!(Reading::of(lines[1]).damage[0].problem, Problem::NoStart);
    assert_eq!(Reading::of(b"").damage[0].problem, Problem::NoStart);
}

proptest! {
    #[test]
    fn a_cut_anywhere_keeps_the_whole_lines(cut in 0usize..400) {
        let all = bytes();
        let cut = cut.min(all.len());
        let reading = Reading::of(&all[..cut]);
        let whole = all[..cut].iter().filter(|b| **b == b'\n').count();
        prop_assert_eq!(&reading.entries[..], &entries()[..whole]);
        let torn = cut > 0 && all[cut - 1] != b'\n';
        prop_assert_eq!(reading.damage.iter().any(|it| it.problem == Problem::Torn), torn);
    }

    #[test]
    fn a_flipped_bit_never_gives_another_entry(at in 0usize..400, bit in 0u8..8) {
        let mut all = bytes();
        let at = at % all.len();
        all[at] ^= 1 << bit;
        let reading = Reading::of(&all);
        prop_assert!(!reading.damage.is_empty() || all[at].eq_ignore_ascii_case(&bytes()[at]));
        for entry in &reading.entries {
            prop_assert!(entries().contains(entry));
        }
    }
}
