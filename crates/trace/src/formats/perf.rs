//! Block events as `perf script`, trace-cmd and the kernel's own trace file print them:
//! `fio 1234 [000] 5121.481516: block:block_rq_issue: 8,0 R 4096 () 1000 + 8 [fio]`.

use super::{Line, blkparse, time, unexpected};
use crate::{
    LineError,
    event::{BlockEvent, BlockStage},
    unit::TimeUnit,
};

/// Events, and blkparse's letter for each.
const EVENTS: [(&str, &str); 5] = [
    ("block_bio_queue:", "Q"),
    ("block_rq_issue:", "D"),
    ("block_rq_complete:", "C"),
    ("block_bio_complete:", "C"),
    ("block_bio_remap:", "A"),
];

/// The event of a line, as the kernel's trace file prints it; `None` where there is none.
pub(crate) fn event(line: &str) -> Option<BlockEvent<'_>> {
    let (name, stage) = [
        ("block_bio_queue:", BlockStage::Queued),
        ("block_rq_issue:", BlockStage::Issued),
        ("block_bio_complete:", BlockStage::Completed),
        ("block_rq_complete:", BlockStage::Completed),
    ]
    .into_iter()
    .find(|(name, _)| line.contains(name))?;
    let (before, after) = line.split_once(name)?;
    let before: Vec<&str> = before.trim_end_matches("block:").split_whitespace().collect();
    let at = TimeUnit::Seconds.parse(before.last()?.trim_end_matches(':'))?;
    let cpu =
        before.iter().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')?.parse().ok());
    let words: Vec<&str> = after.split_whitespace().collect();
    let (major, minor) = words.first()?.split_once(',')?;
    let plus = words.iter().position(|word| *word == "+")?;
    let (sector, sectors) = (words.get(plus.checked_sub(1)?)?, words.get(plus + 1)?);
    // A flush is one of no sectors at the sector −1.
    let sector = sector.parse().ok().map(|sector| if sector == u64::MAX { 0 } else { sector })?;
    Some(BlockEvent {
        stage,
        at,
        cpu: cpu.unwrap_or(0),
        pid: pid(&before).parse().unwrap_or(0),
        device: (major.parse().ok()?, minor.parse().ok()?),
        letters: words.get(1)?,
        sector,
        sectors: sectors.parse().ok()?,
    })
}

pub(crate) fn line(line: &str) -> Result<Line, LineError> {
    if let Some(lost) = lost(line) {
        return Ok(Line::Lost(lost));
    }
    let found = EVENTS.iter().find_map(|(name, action)| Some((line.find(name)?, *name, *action)));
    let Some((at, name, action)) = found else {
        return match is_event(line) {
            true => Ok(Line::Nothing),
            false => Err(unexpected(
                "an event such as 'fio 1234 [000] 5.1: block:block_rq_issue: …'",
                line,
            )),
        };
    };
    let before: Vec<&str> = line[..at].trim_end_matches("block:").split_whitespace().collect();
    let seconds = before.last().map_or("", |word| word.trim_end_matches(':'));
    let at = time(seconds, TimeUnit::Seconds, "seconds before the event's name")?;
    let words: Vec<&str> =
        line[line.find(name).unwrap_or(0) + name.len()..].split_whitespace().collect();
    let [device, letters, rest @ ..] = &words[..] else {
        return Err(LineError::Columns { layout: "device letters …", found: words.len() });
    };
    if !blkparse::is_device(device) {
        return Err(unexpected("a device 'major,minor'", device));
    }
    // Requests have their bytes and a command before the sectors.
    let plus = rest.iter().position(|word| *word == "+");
    let range = plus.and_then(|place| rest.get(place.checked_sub(1)?..)).unwrap_or(rest);
    let is_empty = matches!(range, [_, "+", "0", ..]);
    let (pid, empty) = (pid(&before), [range.last().copied().unwrap_or_default()]);
    // A flush is one of no sectors at the sector −1, or 0.
    let range = if is_empty && letters.starts_with('F') { &empty[..] } else { range };
    blkparse::Stage { action, device, letters, at, pid, range }.line()
}

/// Any event: a processor in brackets, a time with a colon.
fn is_event(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let has_processor = words.any(|word| {
        let inside = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        inside.is_some_and(|it| it.len() == 3 && it.bytes().all(|byte| byte.is_ascii_digit()))
    });
    has_processor
        && words.any(|word| {
            let time = word.strip_suffix(':').and_then(|word| word.split_once('.'));
            time.is_some_and(|(whole, part)| {
                whole.parse::<u64>().is_ok() && part.parse::<u64>().is_ok()
            })
        })
}

/// The number before the processor: `1234`, `fio-1234`, `1234/1235`.
fn pid<'a>(before: &[&'a str]) -> &'a str {
    let processor = before.iter().position(|word| word.starts_with('[') && word.ends_with(']'));
    let word = processor.and_then(|place| before.get(place.checked_sub(1)?)).copied();
    let word = word.unwrap_or_default().rsplit('/').next().unwrap_or_default();
    word.rsplit('-').next().unwrap_or_default()
}

/// `CPU:0 [LOST 5 EVENTS]`.
fn lost(line: &str) -> Option<u64> {
    line.split("[LOST ").nth(1)?.split_whitespace().next()?.parse().ok()
}
