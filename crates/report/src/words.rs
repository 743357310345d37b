//! How figures are spelled.

use analysis::{Comparison, Metric, Verdict};

/// `12,345`; below 100 with one decimal.
pub fn count(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value.abs() < 99.95 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A ratio as a change: `+5.3 %`, `-12 %`.
pub fn percent(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    match change.abs() {
        _ if !change.is_finite() => "-".to_owned(),
        size if size < 0.05 => "0.0 %".to_owned(),
        size if size < 99.95 => format!("{change:+.1} %"),
        _ => format!("{change:+.0} %"),
    }
}

/// A share: `2.8 %`, `12 %`.
pub(crate) fn share(share: f64) -> String {
    match share * 100.0 {
        percent if !percent.is_finite() => "any size".to_owned(),
        percent if percent > 100.0 => "more than 100 %".to_owned(),
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// `+5.3 % (+2.0..+9.1)`.
pub(crate) fn change(comparison: &Comparison) -> String {
    change_within(comparison.ratio, comparison.low, comparison.high)
}

/// The same of a ratio and the ends of its interval; of too few rounds there is none.
pub(crate) fn change_within(ratio: f64, low: f64, high: f64) -> String {
    format!("{} ({})", percent(ratio), interval(low, high))
}

/// `+2.0..+9.9`.
fn interval(low: f64, high: f64) -> String {
    match (end(low).as_str(), end(high).as_str()) {
        ("-100", "any") => "no interval".to_owned(),
        (low, high) => format!("{low}..{high}"),
    }
}

/// Of several, from the least to the most, and the ends of all intervals: `+5.3 % to +9.9 % (+2.0..+12)`.
pub(crate) fn changes(comparisons: &[&Comparison]) -> String {
    let least =
        |of: fn(&Comparison) -> f64| comparisons.iter().map(|it| of(it)).fold(f64::NAN, f64::min);
    let most =
        |of: fn(&Comparison) -> f64| comparisons.iter().map(|it| of(it)).fold(f64::NAN, f64::max);
    let (first, last) = (percent(least(|it| it.ratio)), percent(most(|it| it.ratio)));
    let range = if first == last { first } else { format!("{first} to {last}") };
    format!("{range} ({})", interval(least(|it| it.low), most(|it| it.high)))
}

/// The end of an interval, as a change in percent.
fn end(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    match change.abs() {
        _ if !change.is_finite() || change > 9999.0 => "any".to_owned(),
        size if size < 9.95 => format!("{change:+.1}"),
        _ => format!("{change:+.0}"),
    }
}

/// The verdict's word, the same in tables, sentences and documents.
pub fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "same",
        Verdict::NotSettled => "open",
    }
}

/// The figure's name in a sentence.
pub(crate) fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::P99 => "p99 latency",
        Metric::Fairness => "fairness",
    }
}

/// Seconds since 1970 as `2026-11-21 20:55 UTC`; of a time that no calendar has, the seconds.
pub(crate) fn date(seconds: i64) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        Err(_) => format!("{seconds} s since 1970"),
    }
}

/// A name for a new run: when it started, and its target's last part: `2026-11-21-2055-mysql`.
pub fn run_name(started_at: i64, target: &str) -> String {
    let when: String = date(started_at)
        .trim_end_matches(" UTC")
        .chars()
        .filter(|c| *c != ':')
        .map(|c| if c == ' ' { '-' } else { c })
        .collect();
    let last = target.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or("");
    let last: String = last
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        .collect();
    if last.is_empty() { format!("{when}-root") } else { format!("{when}-{last}") }
}

/// Breaks text into lines of at most `width` columns, the later ones indented by `indent`. A word that
/// is longer stays whole.
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    wrap_after("", text, width, indent)
}

/// The same behind `start`, which the first line begins with.
pub(crate) fn wrap_after(start: &str, text: &str, width: usize, indent: usize) -> String {
    let later = " ".repeat(indent);
    let options = textwrap::Options::new(width)
        .initial_indent(start)
        .subsequent_indent(&later)
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
    textwrap::fill(&text.split_whitespace().collect::<Vec<_>>().join(" "), options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_spelled_for_people() {
        assert_eq!(count(1234567.0), "1,234,567");
        assert_eq!(count(123.4), "123");
        assert_eq!(count(-1234.0), "-1,234");
        assert_eq!(count(9.87), "9.9");
        assert_eq!(percent(1.053), "+5.3 %");
        assert_eq!(percent(0.5), "-50.0 %");
        assert_eq!(percent(1.0), "0.0 %");
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(1_709_210_096), "2024-02-29 12:34 UTC");
        assert_eq!(run_name(1_709_210_096, "/var/lib/mysql/"), "2024-02-29-1234-mysql");
        assert_eq!(run_name(1_709_210_096, "/"), "2024-02-29-1234-root");
    }

    #[test]
    fn wrapped_lines_keep_within_the_width() {
        let text = wrap("one two three four five six seven", 12, 2);
        assert_eq!(text, "one two\n  three four\n  five six\n  seven");
    }
}
