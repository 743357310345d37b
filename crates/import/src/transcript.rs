//! A long text of commands, outputs and sentences: outputs, each with what was set before it.

use crate::{
    Format, Piece, PieceKind, Text,
    line::Line,
    quoting::unquoted,
    settings::{Command, Settings, command},
};

/// An output of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The output.
    pub piece: Piece,
    /// What was set before it.
    pub settings: Settings,
    /// How often something had been set before it: outputs of the same number are of one set-up.
    pub epoch: u64,
    /// The command that made it, if one of its program stands before it.
    pub command: Option<Command>,
}

/// What a text has: its outputs, and the lines that belong to none.
pub(crate) struct Transcript<'a> {
    pub parts: Vec<Part>,
    pub prose: Vec<Line<'a>>,
    pub lines: Vec<Line<'a>>,
}

/// The outputs of a text.
pub fn parts(text: &Text) -> Vec<Part> {
    read(text).parts
}

/// What a text has of a format whose output begins on its first line.
pub fn read_as(text: &Text, format: Format) -> Vec<Piece> {
    let lines = unquoted(text);
    let mut pieces = Vec::new();
    let mut rest = &lines[..];
    while !rest.is_empty() {
        let reading = format.read(rest);
        pieces.extend(reading.pieces);
        rest = &rest[reading.lines.clamp(1, rest.len())..];
    }
    pieces
}

/// The outputs of a text, and what lies between them.
pub(crate) fn read(text: &Text) -> Transcript<'_> {
    let lines = unquoted(text);
    let mut reader = Reader::default();
    let mut prose = Vec::new();
    let ends = output_ends(&lines);
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(begin) = command(line.text) {
            at += reader.command(&begin, &lines[at..]);
            continue;
        }
        match Format::ALL.iter().find(|format| format.begins(line.text)) {
            Some(format) => {
                let reading = format.read(&lines[at..ends[at]]);
                if reading.pieces.is_empty() {
                    prose.extend(&lines[at..at + reading.lines.max(1)]);
                }
                reader.pieces(*format, reading.pieces);
                at += reading.lines.max(1);
            }
            None => {
                reader.prose(&line);
                prose.push(line);
                at += 1;
            }
        }
    }
    Transcript { parts: reader.parts, prose, lines }
}

/// Where an output that begins on a line ends at the latest: before the next command.
fn output_ends(lines: &[Line<'_>]) -> Vec<usize> {
    let mut ends = vec![lines.len(); lines.len()];
    for at in (1..lines.len()).rev() {
        ends[at - 1] = if command(lines[at].text).is_some() { at } else { ends[at] };
    }
    ends
}

#[derive(Default)]
struct Reader {
    parts: Vec<Part>,
    settings: Settings,
    epoch: u64,
    command: Option<Command>,
}

impl Reader {
    /// Takes a command and its continuation lines; says how many lines it took.
    fn command(&mut self, begin: &str, lines: &[Line<'_>]) -> usize {
        let mut text = begin.trim_end().to_owned();
        let mut used = 1;
        while let Some(line) = lines.get(used) {
            let continued = text.ends_with('\\');
            let next = line.text.trim();
            let is_marked = next.strip_prefix('>').map(str::trim_start);
            let is_option = next.starts_with("--") || next.starts_with('\u{2014}');
            if used > 60
                || !(continued || is_marked.is_some_and(|it| it.starts_with('-')) || is_option)
            {
                break;
            }
            let next = is_marked.unwrap_or(next);
            text.truncate(text.trim_end_matches('\\').trim_end().len());
            text.push(' ');
            text.push_str(next);
            used += 1;
        }
        let whole = command(&text).unwrap_or(text);
        let before = self.settings.clone();
        self.settings.apply(&whole, lines[0].number);
        self.epoch += u64::from(self.settings.levels != before.levels);
        self.command = Some(Command::of(&whole, lines[0].number));
        used
    }

    fn prose(&mut self, line: &Line<'_>) {
        let before = self.settings.clone();
        if !self.settings.shown(line.text, line.number) {
            self.settings.heading(line.text, line.number);
        }
        self.epoch += u64::from(self.settings.levels != before.levels);
    }

    fn pieces(&mut self, format: Format, pieces: Vec<Piece>) {
        for mut piece in pieces {
            if let PieceKind::Variables(all) = &piece.kind {
                self.settings.variables.extend(all.iter().cloned());
            }
            let command = self.command.clone().filter(|command| runs(command, format));
            if let (PieceKind::Devices(reports), Some(command)) = (&mut piece.kind, &command)
                && format == Format::Iostat
                && command.words.iter().any(|word| is_flag(word, 'y'))
            {
                // With -y there is no report since boot.
                reports.iter_mut().for_each(|report| report.since_boot = false);
            }
            let (settings, epoch) = (self.settings.clone(), self.epoch);
            self.parts.push(Part { piece, settings, epoch, command });
        }
    }
}

/// `-y`, `-xy`, `-dxy`.
fn is_flag(word: &str, letter: char) -> bool {
    word.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains(letter))
}

fn runs(command: &Command, format: Format) -> bool {
    match format {
        Format::GoTpc => command.runs("go-tpc") || command.runs("tiup"),
        Format::TpccMysql => command.runs("tpcc_start"),
        Format::HammerDb | Format::Variables => false,
        Format::Sysbench | Format::Fio | Format::Pgbench | Format::Iostat | Format::Vmstat => {
            command.runs(&format.to_string())
        }
    }
}
