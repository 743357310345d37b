//! Random text, as the workloads' specifications want it.

use random::Stream;

/// Groups of eleven digits joined by `-`: sysbench's `c` has ten, its `pad` five.
pub fn digit_groups(stream: &mut Stream, groups: usize, into: &mut String) {
    into.clear();
    for group in 0..groups {
        if group > 0 {
            into.push('-');
        }
        // Eleven digits of one draw: 10^11 is far below 2^64.
        let mut value = stream.below(100_000_000_000);
        let mut digits = [b'0'; 11];
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (value % 10) as u8;
            value /= 10;
        }
        into.push_str(std::str::from_utf8(&digits).unwrap_or_default());
    }
}

const ALPHANUMERIC: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// `least` to `most` letters and digits (TPC-C 4.3.2.2: a random a-string).
pub fn letters(stream: &mut Stream, least: u64, most: u64, into: &mut String) {
    let length = least + stream.below(most - least + 1);
    push_from(ALPHANUMERIC, stream, length, into);
}

/// So many digits (TPC-C 4.3.2.2: a random n-string).
pub fn digits(stream: &mut Stream, length: u64, into: &mut String) {
    push_from(b"0123456789", stream, length, into);
}

fn push_from(alphabet: &[u8], stream: &mut Stream, length: u64, into: &mut String) {
    into.clear();
    let base = alphabet.len() as u64;
    let (mut bits, mut left) = (0, 0);
    for _ in 0..length {
        if left == 0 {
            // Eight draws from 62 or fewer fit into 64 bits; the bias is below 10^-4.
            (bits, left) = (stream.bits() >> 8, 8);
        }
        into.push(char::from(alphabet[(bits % base) as usize]));
        bits /= base;
        left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_sysbenchs_form() {
        let (mut stream, mut text) = (Stream::new(1, "text"), String::new());
        digit_groups(&mut stream, 10, &mut text);
        assert_eq!(text.len(), 119);
        assert!(text.split('-').all(|group| group.len() == 11), "{text}");
    }

    #[test]
    fn letters_have_every_length_and_every_letter() {
        let (mut stream, mut text) = (Stream::new(1, "text"), String::new());
        let mut seen = std::collections::BTreeSet::new();
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..2000 {
            letters(&mut stream, 5, 9, &mut text);
            lengths.insert(text.len());
            seen.extend(text.chars());
        }
        assert_eq!((seen.len(), lengths.len()), (62, 5));
    }
}
