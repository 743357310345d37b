//! The form of rules: keys, operators and values.

use crate::owner::joined_lines;
use std::path::{Path, PathBuf};

/// A line of a rules file, its continuations joined.
#[derive(Debug)]
pub(super) struct Rule {
    pub file: PathBuf,
    pub line: usize,
    pub text: String,
    pub tokens: Vec<Token>,
}

/// `ATTR{queue/scheduler}="none"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub key: String,
    pub attribute: Option<String>,
    pub op: Op,
    pub value: String,
    /// `i"…"`: without regard to case.
    pub any_case: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Equal,
    NotEqual,
    Assign,
    Add,
    Remove,
    AssignFinally,
}

impl Op {
    pub(super) fn assigns(self) -> bool {
        !matches!(self, Op::Equal | Op::NotEqual)
    }
}

/// The rules of a file. A line that udev would not understand is one that it ignores.
pub(super) fn parse(file: &Path, text: &str) -> Vec<Rule> {
    joined_lines(text, &['#'])
        .into_iter()
        .filter_map(|line| {
            let tokens = tokens(&line.text)?;
            Some(Rule { file: file.to_owned(), line: line.number, text: line.text, tokens })
        })
        .collect()
}

fn tokens(line: &str) -> Option<Vec<Token>> {
    let mut rest = line;
    let mut all = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if rest.is_empty() {
            return Some(all);
        }
        let (token, after) = token(rest)?;
        all.push(token);
        rest = after;
    }
}

fn token(text: &str) -> Option<(Token, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_uppercase() || c == '_'))?;
    let (key, mut rest) = text.split_at(end);
    let mut attribute = None;
    if let Some(inside) = rest.strip_prefix('{') {
        let (name, after) = inside.split_once('}')?;
        attribute = Some(name.to_owned());
        rest = after;
    }
    rest = rest.trim_start();
    let (op, after) = [
        ("==", Op::Equal),
        ("!=", Op::NotEqual),
        ("+=", Op::Add),
        ("-=", Op::Remove),
        (":=", Op::AssignFinally),
        ("=", Op::Assign),
    ]
    .into_iter()
    .find_map(|(sign, op)| Some((op, rest.strip_prefix(sign)?)))?;
    rest = after.trim_start();
    let quote = rest.find('"')?;
    let (prefix, rest) = (&rest[..quote], &rest[quote + 1..]);
    if !prefix.chars().all(|c| c == 'i' || c == 'e') || key.is_empty() {
        return None;
    }
    let (value, after) = quoted(rest)?;
    let any_case = prefix.contains('i');
    Some((Token { key: key.to_owned(), attribute, op, value, any_case }, after))
}

/// Up to the quotation mark that no backslash stands before.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' if text[at + 1..].starts_with('"') => {
                value.push('"');
                characters.next();
            }
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_operators_and_values() {
        let line =
            r#"ACTION=="add|change", KERNEL != i"SD*",ATTR{queue/x}:="a\"b" RUN+="sh -c 'echo'""#;
        let found = tokens(line).unwrap();
        let short: Vec<(&str, Option<&str>, Op, &str, bool)> = found
            .iter()
            .map(|it| (&*it.key, it.attribute.as_deref(), it.op, &*it.value, it.any_case))
            .collect();
        assert_eq!(
            short,
            [
                ("ACTION", None, Op::Equal, "add|change", false),
                ("KERNEL", None, Op::NotEqual, "SD*", true),
                ("ATTR", Some("queue/x"), Op::AssignFinally, "a\"b", false),
                ("RUN", None, Op::Add, "sh -c 'echo'", false),
            ]
        );
        assert_eq!(tokens("ACTION==add"), None);
        assert_eq!(tokens("KERNEL==\"sda"), None);
    }

    #[test]
    fn lines_are_joined_and_comments_between_them_left_out() {
        let text = "# one\nKERNEL==\"sda\", \\\n# two\n  ATTR{a}=\"b\"\n\nLABEL=\"x\"\n";
        let rules = parse(Path::new("/x.rules"), text);
        let short: Vec<(usize, usize)> =
            rules.iter().map(|rule| (rule.line, rule.tokens.len())).collect();
        assert_eq!(short, [(2, 2), (6, 1)]);
    }
}
