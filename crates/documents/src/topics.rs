//! The topics of `spindle explain`: every page of docs/reference, and every heading in one that
//! names something.
//!
//! A page is a topic under its file's name. A heading of the second level is one or more topics,
//! separated by commas: words in backticks, or single words in lower case (`## read_expire`,
//! ``## `no difference` ``). Headings of prose begin with a capital letter and are no topics.

use crate::synonyms;

/// Every page of docs/reference: its path there, and its text.
static PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Something that can be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The word that names it.
    pub name: String,
    /// What it belongs to: the folder of its page (`findings`), or the page (`tunables`).
    pub group: &'static str,
    /// Its text, in Markdown.
    pub text: &'static str,
}

/// All topics, in the order of the pages.
pub fn all() -> Vec<Topic> {
    PAGES.iter().flat_map(|(path, text)| of_page(path, text)).collect()
}

/// Everything that `word` names. `queue/nr_requests` and `iosched/fifo_batch` are read as the file's
/// name. A word without a topic of its own is read as what is behind the dot of a topic (`%util` is
/// `device.%util`), then as the part behind its own first dot, so that `mq-deadline.fifo_batch`
/// finds the tunable and `server.innodb_io_capacity` the variable. A flag finds the sections that
/// describe it: `--queues` the factor nr_requests. What then has no topic is looked for among the words that people type
/// (`synonyms`), and among the variables that pages of presets and servers name.
pub fn find(word: &str) -> Vec<Topic> {
    let topics = all();
    let such = |wanted: &dyn Fn(&str) -> bool| -> Vec<Topic> {
        topics.iter().filter(|topic| wanted(&topic.name)).cloned().collect()
    };
    let named = |word: &str| such(&|name| name.eq_ignore_ascii_case(word));
    let word = word.trim().trim_start_matches("--");
    let file = word.rsplit_once("queue/").or_else(|| word.rsplit_once("iosched/"));
    let word = file.map_or(word, |(_, name)| name);
    let word = word.strip_prefix("iosched/").unwrap_or(word);
    let found = named(word);
    if !found.is_empty() {
        return found;
    }
    let synonyms = synonyms::topics_of(word);
    if !synonyms.is_empty() {
        return synonyms.iter().flat_map(|name| named(name)).collect();
    }
    // `%util` is written without its sign, too.
    let behind_dot = |name: &str| name.split_once('.').map(|(_, behind)| behind.to_owned());
    let short = such(&|name| {
        behind_dot(name).is_some_and(|it| it == word || it.strip_prefix('%') == Some(word))
    });
    let found = match word.split_once('.') {
        _ if !short.is_empty() => short,
        Some(("server", _)) => named("server.VARIABLE"),
        Some((_, name)) => named(name),
        None => {
            let flag = format!("`--{word}");
            let describes = |topic: &&Topic| {
                let behind = topic.text.split(&flag).skip(1);
                topic.text.starts_with("## ")
                    && behind.take(1).any(|rest| rest.starts_with([' ', '`', '=']))
            };
            topics.iter().filter(describes).cloned().collect()
        }
    };
    if !found.is_empty() {
        return found;
    }
    // Variables of servers: the pages of presets and servers that name them, the one that does most first.
    let mut pages: Vec<(usize, Topic)> = topics
        .iter()
        .filter(|topic| ["presets", "servers"].contains(&topic.group))
        .filter(|topic| !topic.text.starts_with("## ") && word.contains('_'))
        .map(|topic| (mentions(topic.text, word), topic.clone()))
        .filter(|(count, _)| *count > 0)
        .collect();
    pages.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    pages.into_iter().take(2).map(|(_, topic)| topic).collect()
}

/// How often a text has a word.
fn mentions(text: &str, word: &str) -> usize {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|it| it.eq_ignore_ascii_case(word)).count()
}

/// Up to three names of topics that are spelled like `word`, nearest first.
pub fn near(word: &str) -> Vec<String> {
    let wanted = word.to_lowercase();
    let mut near: Vec<(usize, String)> = all()
        .into_iter()
        .map(|topic| (strsim::damerau_levenshtein(&wanted, &topic.name.to_lowercase()), topic.name))
        // One edit in four letters: what is further is another word.
        .filter(|(edits, name)| *edits <= (name.len().min(wanted.len()) / 4).max(1))
        .collect();
    near.sort();
    near.dedup_by(|a, b| a.1 == b.1);
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

fn of_page(path: &'static str, text: &'static str) -> Vec<Topic> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".md");
    let group = if folder.is_empty() { stem } else { folder };
    let page = Topic {
        name: stem.to_owned(),
        group: if folder.is_empty() { "pages" } else { group },
        text,
    };
    let mut topics = match stem {
        // The index of a folder is for readers of the files.
        "README" => Vec::new(),
        _ => vec![page],
    };
    for section in sections(text) {
        let heading = section.lines().next().unwrap_or_default();
        for name in names(heading.trim_start_matches("## ")) {
            topics.push(Topic { name, group, text: section });
        }
    }
    topics
}

/// The sections of the second level, each with its heading.
fn sections(text: &'static str) -> Vec<&'static str> {
    let mut starts: Vec<usize> = text.match_indices("\n## ").map(|(at, _)| at + 1).collect();
    starts.push(text.len());
    starts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// The topics that a heading names.
fn names(heading: &str) -> Vec<String> {
    let parts = heading.split(", ").map(|part| {
        let quoted = part.strip_prefix('`').and_then(|part| part.strip_suffix('`'));
        let word = !part.contains([' ', '`']) && !part.starts_with(char::is_uppercase);
        quoted.or(word.then_some(part)).map(str::to_owned)
    });
    // One part that is prose makes the whole heading prose.
    parts.collect::<Option<Vec<_>>>().unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn headings_name_topics_or_are_prose() {
        assert_eq!(names("read_expire"), ["read_expire"]);
        assert_eq!(names("`no difference`, better"), ["no difference", "better"]);
        assert_eq!(names("0, 1"), ["0", "1"]);
        assert!(names("Layout").is_empty());
        assert!(names("The way to the model").is_empty());
    }

    #[test]
    fn every_topic_has_text_and_belongs_somewhere() {
        for topic in all() {
            assert!(!topic.text.trim().is_empty(), "{}", topic.name);
            assert!(!topic.group.is_empty(), "{}", topic.name);
        }
    }

    #[test]
    fn a_word_is_found_as_the_kernel_spells_it() {
        for word in ["bfq", "rotational-flag", "cache"] {
            assert_eq!(find(word)[0].name, word);
        }
        assert_eq!(find("--queues")[0].name, "nr_requests");
        assert_eq!(find("queue/nr_requests"), find("nr_requests"));
        assert!(find("nothing-of-the-kind").is_empty());
        assert_eq!(near("unstedy"), ["unsteady"]);
    }

    #[test]
    fn words_that_people_type_lead_to_topics() {
        for (topics, words) in synonyms::SYNONYMS {
            for name in *topics {
                let is_topic = all().iter().any(|topic| topic.name == *name);
                assert!(is_topic, "no topic '{name}'");
            }
            for word in *words {
                let is_topic = all().iter().any(|topic| topic.name.eq_ignore_ascii_case(word));
                assert!(!is_topic || topics.contains(word), "'{word}' is a topic itself");
                assert_eq!(find(word)[0].name, topics[0], "{word}");
            }
        }
        assert_eq!(find("util")[0].name, "device.%util");
        for (variable, page) in [
            ("innodb_flush_method", "flush"),
            ("innodb_doublewrite", "doublewrite"),
            ("innodb_io_capacity", "capacity"),
            ("sync_binlog", "durability"),
        ] {
            assert_eq!(find(variable)[0].name, page, "{variable}");
        }
    }
}
