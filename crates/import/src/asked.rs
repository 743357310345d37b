//! What was set and asked for: by `--cell`, by a transcript's commands, by a file's name.

use crate::{
    Conditions, Format, Output, Part, Source, checks,
    line::{Line, quoted},
    settings::scheduler_named,
};
use plan::{Factor, Level};
use record::Doubt;
use std::collections::BTreeMap;

/// What was set: by `--cell`, by the transcript, or as the file's name says.
pub(crate) fn settings(source: &Source<'_>, part: &Part) -> BTreeMap<Factor, Level> {
    let mut levels: BTreeMap<Factor, Level> = part
        .settings
        .levels
        .iter()
        .map(|(factor, (level, _))| (factor.clone(), level.clone()))
        .collect();
    if let Some(cell) = &source.cell {
        levels.extend(cell.levels.iter().map(|(factor, level)| (factor.clone(), level.clone())));
        return levels;
    }
    if let Some(level) = scheduler_of_file(&source.file) {
        levels.entry(Factor::Scheduler).or_insert(level);
    }
    levels
}

/// The one scheduler that a file's name names.
fn scheduler_of_file(file: &str) -> Option<Level> {
    let name = file.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let mut words = name
        .split(|c: char| !(c.is_alphanumeric() || c == '-'))
        // mq-deadline is one word, and noop-rndwr two.
        .flat_map(|word| match scheduler_named(word) {
            Some(_) => vec![word],
            None => word.split('-').collect(),
        })
        .filter(|word| scheduler_named(word).is_some());
    match (words.next(), words.next()) {
        (Some(word), None) => Factor::Scheduler.level(word).ok(),
        _ => None,
    }
}

/// What the command asked for, where the output does not say it; where both say it they should agree.
pub(crate) fn flags(output: &mut Output, part: &Part, lines: &[Line<'_>]) {
    let Some(command) = &part.command else { return };
    let number = |names: &[&str]| command.any(names).and_then(crate::text::whole);
    let bytes =
        |names: &[&str]| command.any(names).and_then(crate::text::bytes).map(|bytes| bytes as u64);
    let clients = number(&["--threads", "--num-threads", "-c", "--client", "-T", "--numjobs"]);
    let asked = &mut output.conditions;
    if let (Some(flag), Some(said)) = (clients, asked.clients)
        && flag != said
        && part.piece.format == Format::Sysbench
    {
        let at = lines.iter().find(|line| {
            line.number >= part.piece.first && line.text.contains("Number of threads")
        });
        output.doubts.push(Doubt::Contradiction {
            what: "threads".to_owned(),
            stated: said as f64,
            computed: flag as f64,
            at: at.map(Line::quoted).unwrap_or_default(),
            against: quoted(lines, command.line),
        });
    }
    asked.clients = asked.clients.or(clients);
    asked.block_size = asked.block_size.or(bytes(&["--file-block-size", "--bs", "--blocksize"]));
    asked.size = asked.size.or(bytes(&["--file-total-size", "--size"]));
    asked.depth = asked.depth.or(number(&["--iodepth"]));
    let direct = command.option("--file-extra-flags").map(|it| it.contains("direct"));
    let direct = direct.or(command.option("--direct").map(|it| it == "1"));
    asked.direct = asked.direct.or(direct);
    let tables = number(&["--tables", "--oltp-tables-count"]);
    let rows = number(&["--table-size", "--table_size", "--oltp-table-size"]);
    asked.tables = asked.tables.or(tables.zip(rows));
    if part.piece.format == Format::Sysbench && asked.benchmark == "fileio"
        || asked.pattern.is_none()
    {
        test_mode(asked, command.option("--file-test-mode"));
    }
    let test = command.option("--test").map(str::to_owned).or_else(|| {
        command
            .words
            .iter()
            .find(|word| word.starts_with("oltp_") || word.ends_with(".lua"))
            .cloned()
    });
    if let Some(test) = test
        && matches!(asked.benchmark.as_str(), "database test" | "oltp")
    {
        let name = test.rsplit('/').next().unwrap_or_default().trim_end_matches(".lua");
        name.clone_into(&mut asked.benchmark);
    }
    // Without a command to say it, the block size was not known when the output was checked.
    for subject in ["read", "write"] {
        if part.piece.format == Format::Sysbench && !lines_say_block_size(part, lines) {
            checks::bandwidth_of_rate(output, lines, subject);
        }
    }
}

fn lines_say_block_size(part: &Part, lines: &[Line<'_>]) -> bool {
    let of_part = |line: &&Line<'_>| (part.piece.first..=part.piece.last).contains(&line.number);
    lines.iter().filter(of_part).any(|line| line.text.trim().starts_with("Block size "))
}

fn test_mode(asked: &mut Conditions, mode: Option<&str>) {
    let Some(mode) = mode else { return };
    let pattern = match mode {
        "rndrd" => "randread",
        "rndwr" => "randwrite",
        "rndrw" => "randrw:60",
        "seqrd" => "read",
        "seqwr" | "seqrewr" => "write",
        _ => return,
    };
    asked.pattern = pattern.parse().ok();
    asked.benchmark = format!("fileio {mode}");
}
