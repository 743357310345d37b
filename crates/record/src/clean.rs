//! Text of a file that anybody may have made, made fit to be shown.
//!
//! A name with a line feed would begin a line of its own in a script, an escape sequence would reach the terminal.
//! What is read from a file passes here once, so that no printer has to think of it.

use serde_json::Value;

/// Whether a character moves the cursor, begins a line, hides or turns round what follows.
fn is_unfit(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}')
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What stands in the place of such a character: a blank for what separates, else a sign that something was there.
fn fit(character: char) -> char {
    if !is_unfit(character) {
        character
    } else if character.is_whitespace() {
        ' '
    } else {
        char::REPLACEMENT_CHARACTER
    }
}

/// A text without control characters, on one line.
pub fn clean(text: String) -> String {
    if text.contains(is_unfit) { text.chars().map(fit).collect() } else { text }
}

/// All texts of a value, names of fields too.
pub fn clean_json(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(text)),
        Value::Array(all) => Value::Array(all.into_iter().map(clean_json).collect()),
        Value::Object(fields) => Value::Object(
            fields.into_iter().map(|(name, value)| (clean(name), clean_json(value))).collect(),
        ),
        other => other,
    }
}

/// Whether JSON may hold a text that is not fit: one with an escape in it, or with other signs than ASCII's.
pub(crate) fn may_be_unfit(json: &str) -> bool {
    json.bytes().any(|byte| byte == b'\\' || !(b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_on_its_line_and_moves_no_cursor() {
        assert_eq!(clean("sda (8:0), 4 µs".to_owned()), "sda (8:0), 4 µs");
        assert_eq!(clean("a\nb\tc\rd\u{2028}e".to_owned()), "a b c d e");
        assert_eq!(clean("\u{1b}[2J\u{7f}\u{9b}\u{202e}x\0".to_owned()), "�[2J���x�");
    }

    #[test]
    fn texts_of_json_are_cleaned_wherever_they_stand() {
        let text = r#"{"a\nb": ["c\u001b", {"d": "e\u0085f"}], "n": 1}"#;
        assert!(may_be_unfit(text) && may_be_unfit("\"é\"") && !may_be_unfit(r#"{"a": [1]}"#));
        let value = clean_json(serde_json::from_str(text).unwrap());
        assert_eq!(value.to_string(), r#"{"a b":["c�",{"d":"e f"}],"n":1}"#);
    }
}
