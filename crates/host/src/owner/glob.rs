//! Patterns of names, as the shell, udev and tuned have them.

/// Whether `text` is one of the alternatives of `pattern`: `sd*[!0-9]|nvme?n1`.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    alternatives(pattern).iter().any(|one| one_matches(&one.chars().collect::<Vec<_>>(), &text))
}

/// What stands between `|` outside of brackets.
fn alternatives(pattern: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut bracket = false;
    for c in pattern.chars() {
        match c {
            '[' => bracket = true,
            ']' => bracket = false,
            _ => {}
        }
        if c == '|' && !bracket {
            all.push(String::new());
        } else if let Some(last) = all.last_mut() {
            last.push(c);
        }
    }
    all
}

fn one_matches(pattern: &[char], text: &[char]) -> bool {
    match pattern.first() {
        None => text.is_empty(),
        Some('*') => (0..=text.len()).any(|at| one_matches(&pattern[1..], &text[at..])),
        Some('?') => !text.is_empty() && one_matches(&pattern[1..], &text[1..]),
        Some('[') => match (bracket(&pattern[1..]), text.first()) {
            (Some((set, after)), Some(c)) => set.has(*c) && one_matches(after, &text[1..]),
            (Some(_), None) => false,
            // Without its end a bracket is itself.
            (None, first) => first == Some(&'[') && one_matches(&pattern[1..], &text[1..]),
        },
        Some('\\') if pattern.len() > 1 => {
            text.first() == Some(&pattern[1]) && one_matches(&pattern[2..], &text[1..])
        }
        Some(c) => text.first() == Some(c) && one_matches(&pattern[1..], &text[1..]),
    }
}

/// The characters between brackets.
struct Set<'a> {
    inside: &'a [char],
    negated: bool,
}

impl Set<'_> {
    fn has(&self, c: char) -> bool {
        let mut at = 0;
        let mut found = false;
        while at < self.inside.len() {
            let (first, last) = match self.inside[at..] {
                [first, '-', last, ..] => (first, last),
                _ => (self.inside[at], self.inside[at]),
            };
            found |= (first..=last).contains(&c);
            at += if self.inside[at..].len() >= 3 && self.inside[at + 1] == '-' { 3 } else { 1 };
        }
        found != self.negated
    }
}

/// The set and what follows its `]`, from behind the `[`.
fn bracket(pattern: &[char]) -> Option<(Set<'_>, &[char])> {
    let negated = matches!(pattern.first(), Some('!' | '^'));
    let start = usize::from(negated);
    // A `]` that comes first is one of the set.
    let end = (start + 1..pattern.len()).find(|at| pattern[*at] == ']')?;
    Some((Set { inside: &pattern[start..end], negated }, &pattern[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn as_the_shell_has_them() {
        for (pattern, text, wanted) in [
            ("sd*[!0-9]", "sda", true),
            ("sd*[!0-9]", "sda1", false),
            ("sd[a-c]|nvme*", "nvme0n1", true),
            ("sd[a-c]", "sdd", false),
            ("nvme[0-9]*n?", "nvme10n1", true),
            ("*", "", true),
            ("", "", true),
            ("?*", "", false),
            ("a|", "", true),
            ("[]x]y", "]y", true),
            ("[", "[", true),
            ("vd\\*", "vd*", true),
            ("vd\\*", "vda", false),
            ("[^a]", "b", true),
        ] {
            assert_eq!(matches(pattern, text), wanted, "{pattern} {text}");
        }
    }
}
