//! The sync card: what `spindle inspect TARGET --sync` shows.

use crate::{
    page::Page,
    sentences::{
        atomic_write, cache_evidence, durable_by, no_fsync_reason, no_fsync_verdict,
        power_loss_verdict, scratch_beside,
    },
    words::count,
};
use host::{
    AtomicAnswer, AtomicUnits, AtomicWrites, PageAnswer, PageOwner, SyncCard, SyncCell, SyncDevice,
    SyncFigures, SyncMethod, SyncOutcome, SyncPlace,
};
use std::collections::BTreeSet;
use units::{Bytes, Nanos};

/// The name of a method, as the card prints it.
pub fn sync_method(method: SyncMethod) -> &'static str {
    match method {
        SyncMethod::Buffered => "buffered",
        SyncMethod::Fsync => "fsync",
        SyncMethod::Fdatasync => "fdatasync",
        SyncMethod::Odsync => "O_DSYNC",
        SyncMethod::Direct => "direct",
        SyncMethod::DirectOdsync => "direct+O_DSYNC",
    }
}

/// What a step of the measuring writes, for a line of progress.
pub fn sync_cell(cell: &SyncCell) -> String {
    let place = match cell.place {
        SyncPlace::InPlace => "in place",
        SyncPlace::Appended => "appended",
    };
    let writers = if cell.writers == 1 { "1 writer" } else { "4 writers" };
    format!("{}, {} {place}, {writers}", sync_method(cell.method), cell.size)
}

/// The whole card.
pub fn sync_card(card: &SyncCard, width: usize) -> String {
    let mut page = Page::new(width);
    let SyncCard { filesystem, mount_point, kernel, took, .. } = card;
    page.line(
        0,
        &format!(
            "Sync card of {}: {filesystem} mounted on {}, Linux {kernel}, measured in {took}",
            card.target.display(),
            mount_point.display()
        ),
    );
    card.devices.iter().for_each(|it| page.line(2, &device(it)));
    if let Some((folder, data)) =
        card.beside.as_ref().and_then(|it| Some((&it.folder, it.beside.as_ref()?)))
    {
        let [data_path, folder] = [&data.path, folder].map(|path| path.display().to_string());
        page.line(2, &scratch_beside(&data.server.to_string(), &data_path, &folder));
    }
    page.head("Time of a write until it is durable, ms: p50/p99 (- too few to tell)");
    table(&mut page, card);
    notes(card).iter().for_each(|note| page.line(2, note));
    commit(&mut page, card);
    page.line(2, &durable_by(card.durable_by, share_of_flushes(card)));
    page.head(&format!("Power loss: {}", power_loss_verdict(card.power_loss.verdict)));
    card.power_loss.evidence.iter().for_each(|it| page.line(2, &cache_evidence(it)));
    page.head(&format!("Atomic writes: {}", units(&card.atomic)));
    pages(card).iter().for_each(|it| page.line(2, it));
    let verdict = no_fsync_verdict(card.no_fsync.verdict);
    page.head(&format!("O_DIRECT without fsync (O_DIRECT_NO_FSYNC): {verdict}"));
    card.no_fsync.reasons.iter().for_each(|it| page.line(2, &no_fsync_reason(it)));
    page.text()
}

fn device(device: &SyncDevice) -> String {
    let mut words = vec![format!("{} ({})", device.name, device.number), device.bus.to_string()];
    words.extend(device.model.clone());
    words.push(format!("write_cache {}", device.write_cache.as_deref().unwrap_or("not said")));
    let number =
        |flag: Option<bool>| flag.map_or("not said".to_owned(), |it| u8::from(it).to_string());
    words.push(format!("fua {}", number(device.fua)));
    words.push(format!("rotational {}", number(device.rotational)));
    words.join(", ")
}

/// The columns: in place and appended, by size.
fn columns(card: &SyncCard) -> Vec<(SyncPlace, Bytes)> {
    let all: BTreeSet<(SyncPlace, Bytes)> =
        card.cells.iter().map(|cell| (cell.place, cell.size)).collect();
    all.into_iter().collect()
}

const LABEL: usize = 18;
const COLUMN: usize = 12;

fn table(page: &mut Page, card: &SyncCard) {
    let columns = columns(card);
    let of = |place| columns.iter().filter(|(it, _)| *it == place).count();
    let (in_place, appended) = (of(SyncPlace::InPlace), of(SyncPlace::Appended));
    page.raw(&format!(
        "  {:<w$}{:>a$}{:>b$}",
        "writers, method",
        "overwritten in place",
        "appended",
        w = LABEL - 2,
        a = in_place * COLUMN,
        b = appended * COLUMN,
    ));
    let sizes: String =
        columns.iter().map(|(_, size)| format!("{:>COLUMN$}", size.to_string())).collect();
    page.raw(&format!("{:LABEL$}{sizes}", ""));
    let writers: BTreeSet<u32> = card.cells.iter().map(|cell| cell.writers).collect();
    for writers in writers {
        for method in SyncMethod::ALL {
            let cells = columns.iter().map(|(place, size)| {
                let is_it = |cell: &&SyncCell| {
                    (cell.method, cell.place, cell.size, cell.writers)
                        == (method, *place, *size, writers)
                };
                let found = card.cells.iter().find(is_it).map(|cell| &cell.outcome);
                format!("{:>COLUMN$}", found.map_or("-".to_owned(), outcome))
            });
            let cells: String = cells.collect();
            page.raw(&format!(
                "  {:<w$}{cells}",
                format!("{writers} {}", sync_method(method)),
                w = LABEL - 2
            ));
        }
    }
}

fn outcome(outcome: &SyncOutcome) -> String {
    match outcome {
        SyncOutcome::Measured(SyncFigures { p50, p99, .. }) => {
            let time = |time: Option<Nanos>| time.map_or("-".to_owned(), millis);
            format!("{}/{}", time(*p50), time(*p99))
        }
        SyncOutcome::TooSmallForDirect(_) => "too small".to_owned(),
        SyncOutcome::NoDirect => "no O_DIRECT".to_owned(),
        SyncOutcome::Refused(_) => "refused".to_owned(),
    }
}

/// Milliseconds in at most five characters.
fn millis(time: Nanos) -> String {
    match time.as_millis_f64() {
        ms if ms < 0.9995 => format!("{ms:.3}"),
        ms if ms < 9.995 => format!("{ms:.2}"),
        ms if ms < 99.95 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

/// Why cells have no figures.
fn notes(card: &SyncCard) -> Vec<String> {
    let mut notes = BTreeSet::new();
    for cell in &card.cells {
        match cell.outcome {
            SyncOutcome::Measured(_) => {}
            SyncOutcome::TooSmallForDirect(multiple) => {
                notes.insert(format!("too small: O_DIRECT goes in multiples of {multiple} here"));
            }
            SyncOutcome::NoDirect => {
                notes.insert("no O_DIRECT: the filesystem says that it has none".to_owned());
            }
            SyncOutcome::Refused(errno) => {
                let why = std::io::Error::from_raw_os_error(errno);
                notes.insert(format!("refused: the kernel said '{why}'"));
            }
        }
    }
    notes.into_iter().collect()
}

fn commit(page: &mut Page, card: &SyncCard) {
    let rate =
        |rate: Option<f64>| rate.map_or("not measured".to_owned(), |it| format!("{}/s", count(it)));
    let cost = &card.commit;
    page.head("A commit (a write of 4 KiB and fdatasync; each writer has a file of its own)");
    page.line(
        2,
        &format!(
            "in place {} by 1 writer, {} by 4; appended {} by 1, {} by 4",
            rate(cost.in_place_1),
            rate(cost.in_place_4),
            rate(cost.appended_1),
            rate(cost.appended_4)
        ),
    );
    page.line(
        2,
        &format!(
            "innodb_flush_log_at_trx_commit=1: one client commits {} at most; with sync_binlog=1 \
             too, {}",
            rate(cost.in_place_1),
            rate(cost.both_logs_1)
        ),
    );
}

fn share_of_flushes(card: &SyncCard) -> Option<f64> {
    let figures =
        card.figures(SyncMethod::DirectOdsync, SyncPlace::InPlace, Bytes::from_kib(4), 1)?;
    Some(figures.flushes? as f64 / figures.writes.max(1) as f64)
}

/// Whether each server's page is atomic, in one line where the answer is the same.
fn pages(card: &SyncCard) -> Vec<String> {
    let name = |found: &PageAnswer| {
        let server = match found.server {
            PageOwner::InnoDb => "InnoDB",
            PageOwner::PostgreSql => "PostgreSQL",
        };
        format!("{server} page ({})", found.size)
    };
    let mut lines: Vec<(AtomicAnswer, String)> = Vec::new();
    for found in &card.pages {
        match lines.iter_mut().find(|(answer, _)| *answer == found.answer) {
            Some((_, names)) => *names += &format!(", {}", name(found)),
            None => lines.push((found.answer, name(found))),
        }
    }
    lines.into_iter().map(|(answer, names)| format!("{names}: {}", atomic_write(answer))).collect()
}

/// What statx and the devices say, in one line.
fn units(atomic: &AtomicWrites) -> String {
    let said = match atomic.target {
        AtomicUnits::Sizes(sizes) => format!("statx says {} to {}", sizes.min, sizes.max),
        AtomicUnits::None => "statx says none".to_owned(),
        AtomicUnits::Unsaid => "statx does not say".to_owned(),
    };
    let devices = atomic.devices.iter().map(|device| match (device.unit_min, device.unit_max) {
        (_, Some(Bytes::ZERO)) => format!("{} has none", device.name),
        (Some(min), Some(max)) => format!("{} has {min} to {max}", device.name),
        _ => format!("{} does not say", device.name),
    });
    std::iter::once(said).chain(devices).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::{
        AtomicDevice, Bus, CacheEvidence, CommitCost, DurableBy, NoFsync, NoFsyncReason,
        NoFsyncVerdict, PowerLoss, PowerLossVerdict,
    };

    fn cell(method: SyncMethod, place: SyncPlace, size: u64, outcome: SyncOutcome) -> SyncCell {
        SyncCell { method, place, size: Bytes(size), writers: 1, outcome }
    }

    fn figures(p50: Option<u64>, p99: Option<u64>) -> SyncOutcome {
        let time = |micros: Option<u64>| micros.map(Nanos::from_micros);
        let (p50, p99) = (time(p50), time(p99));
        SyncOutcome::Measured(SyncFigures { writes: 7, p50, p99, ..SyncFigures::default() })
    }

    fn card() -> SyncCard {
        use SyncMethod::*;
        use SyncPlace::*;
        let name = || "sda".to_owned();
        let atomic = AtomicWrites {
            target: AtomicUnits::None,
            devices: vec![AtomicDevice { name: name(), unit_min: None, unit_max: None }],
        };
        SyncCard {
            target: "/srv/mysql".into(),
            kernel: "6.18.0".to_owned(),
            filesystem: "ext4".to_owned(),
            mount_point: "/srv".into(),
            devices: vec![SyncDevice {
                number: "8:0".parse().unwrap(),
                name: name(),
                bus: Bus::Sata,
                model: Some("ST4000NM0035".to_owned()),
                write_cache: Some("write back".to_owned()),
                fua: Some(true),
                rotational: None,
                buffered_loop: false,
                remote: false,
                is_lowest: true,
            }],
            counted: None,
            probe: None,
            cells: vec![
                cell(Fsync, InPlace, 512, figures(Some(999_600), None)),
                cell(Fsync, InPlace, 4096, figures(Some(41), Some(12_340))),
                cell(Fsync, Appended, 4096, figures(None, None)),
                cell(Direct, InPlace, 512, SyncOutcome::TooSmallForDirect(Bytes(4096))),
                cell(Direct, InPlace, 4096, SyncOutcome::Refused(22)),
                cell(Direct, Appended, 4096, SyncOutcome::NoDirect),
            ],
            commit: CommitCost { in_place_1: Some(166.6), ..CommitCost::default() },
            durable_by: DurableBy::Unknown,
            power_loss: PowerLoss {
                verdict: PowerLossVerdict::CannotBeTold,
                evidence: vec![CacheEvidence::NoDirectWrites],
            },
            pages: [PageOwner::InnoDb, PageOwner::PostgreSql]
                .map(|server| PageAnswer {
                    server,
                    size: server.page_size(),
                    answer: atomic.answer(server.page_size()),
                })
                .into(),
            atomic,
            no_fsync: NoFsync {
                verdict: NoFsyncVerdict::NotSafe,
                reasons: vec![NoFsyncReason::VolatileCache {
                    device: name(),
                    looks_protected: false,
                }],
            },
            took: Nanos::from_secs(90),
            beside: None,
        }
    }

    #[test]
    fn what_has_no_figures_says_why() {
        let text = sync_card(&card(), 80);
        let line = |start: &str| {
            let found = text.lines().find(|line| line.trim().starts_with(start));
            found.unwrap_or_else(|| panic!("no line '{start}' in:\n{text}")).trim().to_owned()
        };
        let words =
            |start: &str| line(start).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words("1 fsync"), ["1", "fsync", "1000/-", "0.041/12.3", "-/-"]);
        assert!(line("1 direct ").ends_with("too small     refused no O_DIRECT"), "{text}");
        assert_eq!(words("1 buffered"), ["1", "buffered", "-", "-", "-"]);
        assert!(line("too small:").contains("4 KiB"), "{text}");
        assert!(line("refused:").contains("Invalid argument"), "{text}");
        assert!(line("no O_DIRECT:").contains("filesystem"), "{text}");
        assert!(line("in place").contains("167/s by 1 writer, not measured by 4"), "{text}");
        assert!(line("sda (8:0)").contains("write_cache write back, fua 1"), "{text}");
        assert!(text.contains("Power loss: cannot be told"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn pages_with_different_answers_have_lines_of_their_own() {
        let mut card = card();
        let same = pages(&card);
        assert!(
            same.len() == 1 && same[0].starts_with("InnoDB page (16 KiB), PostgreSQL page (8 KiB)")
        );
        card.pages[1].answer = AtomicAnswer::ByDevice;
        assert_eq!(pages(&card).len(), 2);
        assert!(pages(&card)[1].contains("RWF_ATOMIC"));
    }
}
