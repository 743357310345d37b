//! Bytes → lines of text: gzip, byte order marks, line ends, and what pasting does to characters.

use crate::DecodeError;
use std::io::Read;
use units::Bytes;

/// The most text that is read from one file.
const MAX_TEXT: u64 = 64 << 20;

/// Gzip data may be this many times as long when unpacked, beyond [`MIN_UNPACKED`].
const MAX_RATIO: u64 = 50;
const MIN_UNPACKED: u64 = 16 << 20;

/// The lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Without line ends; the place is the line's number less one.
    pub lines: Vec<String>,
}

/// Text from a file's bytes.
pub fn decode(bytes: &[u8]) -> Result<Text, DecodeError> {
    let unpacked;
    let bytes = match bytes {
        [0x1f, 0x8b, ..] => {
            unpacked = unpack(bytes)?;
            &unpacked[..]
        }
        _ => bytes,
    };
    if bytes.len() as u64 > MAX_TEXT {
        return Err(DecodeError::TooLong { limit: Bytes(MAX_TEXT) });
    }
    let text = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => match bytes.iter().take(4096).position(|byte| *byte == 0) {
            Some(place) => return Err(DecodeError::Binary { place }),
            None => String::from_utf8_lossy(bytes).into_owned(),
        },
    };
    Ok(Text { lines: split(&text).map(plain).collect() })
}

fn unpack(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let limit = MAX_TEXT.min(MIN_UNPACKED.max(bytes.len() as u64 * MAX_RATIO));
    let mut all = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(bytes).take(limit + 1);
    reader.read_to_end(&mut all).map_err(DecodeError::Gzip)?;
    match all.len() as u64 > limit {
        true => Err(DecodeError::TooLong { limit: Bytes(limit) }),
        false => Ok(all),
    }
}

/// UTF-16.
fn wide(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&units)
}

/// Lines end with LF, CR LF, or CR alone: progress lines end so, and the terminals of others.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.trim_end_matches('\r').split('\r'))
}

/// A line as the program printed it: without escape sequences of terminals, and with the characters that
/// editors of texts replace put back.
fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => {
                if characters.next_if_eq(&'[').is_some() {
                    while characters.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
                }
            }
            '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{3000}' => out.push(' '),
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{ab}' | '\u{bb}' | '\u{2033}' => {
                out.push('"')
            }
            '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{2032}' => out.push('\''),
            '\u{ff1a}' => out.push(':'),
            '\u{ff1d}' => out.push('='),
            '\u{2212}' => out.push('-'),
            '\u{200b}' | '\u{feff}' => {}
            other => out.push(other),
        }
    }
    if out.contains('&') {
        out = out
            .replace("&gt;", ">")
            .replace("&lt;", "<")
            .replace("&quot;", "\"")
            .replace("&amp;", "&");
    }
    out.truncate(out.trim_end().len());
    out
}

/// A number, with a decimal comma where there is one; signs, exponents and words are none.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let begins = text.strip_prefix('-').unwrap_or(text).bytes().next();
    if !begins.is_some_and(|byte| byte.is_ascii_digit()) || text.contains(['e', 'E']) {
        return None;
    }
    let value = match text.split_once(',') {
        Some((whole, part)) if !part.contains([',', '.']) && !whole.contains('.') => {
            format!("{whole}.{part}").parse()
        }
        _ => text.parse::<f64>(),
    };
    value.ok().filter(|value: &f64| value.is_finite())
}

/// A number that a unit may follow without a space: `0.68ms`, `16Kb`, `15.6k`.
pub(crate) fn number_with_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    Some((number(&text[..end])?, text[end..].trim()))
}

/// A whole number, without signs.
pub(crate) fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Bytes, in units of 1024 as these programs count them.
pub(crate) fn bytes(text: &str) -> Option<f64> {
    let (value, unit) = number_with_unit(text)?;
    let unit = unit.trim_end_matches("/s").trim_end_matches("/sec").to_ascii_lowercase();
    let unit = unit.trim_end_matches("bytes").trim_end_matches("ib").trim_end_matches('b');
    let power = match unit {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    Some(value * 1024f64.powi(power))
}

/// What stands before and after a colon, without the spaces around.
pub(crate) fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    Some((name.trim(), value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_it_was_printed() {
        let read = |bytes: &[u8]| decode(bytes).unwrap().lines;
        assert_eq!(read(b"a\r\nb\rc\n"), ["a", "b", "c", ""]);
        assert_eq!(read(b"\xef\xbb\xbfa"), ["a"]);
        assert_eq!(read(b"\xff\xfea\0\n\0b\0"), ["a", "b"]);
        assert_eq!(
            read("\u{1b}[1mx\u{1b}[0m\u{a0}\u{201c}y\u{201d} &gt; z".as_bytes()),
            ["x \"y\" > z"]
        );
        assert!(matches!(decode(b"a\0b"), Err(DecodeError::Binary { place: 1 })));
    }

    #[test]
    fn gzip_is_unpacked_and_a_bomb_is_not() {
        use std::io::Write;
        let pack = |bytes: &[u8]| {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        };
        assert_eq!(decode(&pack(b"a\nb")).unwrap().lines, ["a", "b"]);
        let bomb = pack(&vec![b'a'; 20 << 20]);
        assert!(bomb.len() < 100_000);
        assert!(matches!(decode(&bomb), Err(DecodeError::TooLong { .. })));
        assert!(matches!(decode(&pack(b"abc")[..10]), Err(DecodeError::Gzip(_))));
    }

    #[test]
    fn numbers_are_numbers() {
        assert_eq!(number("12,5"), Some(12.5));
        assert_eq!(number("0.21"), Some(0.21));
        assert_eq!(number("4,500,000"), None);
        assert_eq!(number("inf"), None);
        assert_eq!(number_with_unit("0.68ms"), Some((0.68, "ms")));
        assert_eq!(bytes("16Kb"), Some(16384.0));
        assert_eq!(bytes("64GiB"), Some(64.0 * 1073741824.0));
        assert_eq!(bytes("37500272KB"), Some(37500272.0 * 1024.0));
    }
}
