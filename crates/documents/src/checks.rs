//! What must hold for all pages: links resolve, every page is reachable, none is longer than agreed.

use crate::{DocumentError, data, markers};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Every Markdown file of the documentation below `root`, relative to it, sorted: those of docs/, and
/// the ones at the root.
pub fn pages(root: &Path) -> Result<Vec<PathBuf>, DocumentError> {
    let mut found = Vec::new();
    collect(&root.join("docs"), &mut found)?;
    found.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    let mut pages: Vec<PathBuf> = found
        .into_iter()
        .filter(|path| path.is_file())
        .filter_map(|path| path.strip_prefix(root).ok().map(Path::to_owned))
        .collect();
    pages.sort();
    Ok(pages)
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), DocumentError> {
    let unreadable = |source| DocumentError::Read { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// The text of a page.
pub fn read(root: &Path, page: &Path) -> Result<String, DocumentError> {
    let path = root.join(page);
    std::fs::read_to_string(&path).map_err(|source| DocumentError::Read { path, source })
}

/// Pages whose marked sections differ from what they should hold. With `write` they are brought up
/// to date.
pub fn stale(
    root: &Path,
    write: bool,
    generate: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<PathBuf>, DocumentError> {
    let mut stale = Vec::new();
    for page in pages(root)? {
        let text = read(root, &page)?;
        let rendered = markers::render(root, &page.display().to_string(), &text, generate)?;
        if rendered != text {
            if write {
                let path = root.join(&page);
                std::fs::write(&path, rendered)
                    .map_err(|source| DocumentError::Write { path, source })?;
            }
            stale.push(page);
        }
    }
    Ok(stale)
}

/// Relative links that lead nowhere, as `page: link`: a file that does not exist, or a heading that
/// the page does not have.
pub fn broken_links(root: &Path) -> Result<Vec<String>, DocumentError> {
    let mut broken = Vec::new();
    for page in pages(root)? {
        let text = read(root, &page)?;
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { resolve(&page, file) };
            let there = root.join(&target).exists();
            let anchored = anchor.is_empty() || !there || {
                let text = read(root, &target)?;
                text.lines().filter(|line| line.starts_with('#')).any(|line| slug(line) == anchor)
            };
            if !there || !anchored {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    Ok(broken)
}

/// Pages that no chain of links leads to from the README, ARCHITECTURE or CONTRIBUTING.
pub fn unreachable(root: &Path) -> Result<Vec<PathBuf>, DocumentError> {
    let all = pages(root)?;
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    let mut open: Vec<PathBuf> =
        all.iter().filter(|page| page.components().count() == 1).cloned().collect();
    while let Some(page) = open.pop() {
        if !root.join(&page).is_file() || !seen.insert(page.clone()) {
            continue;
        }
        if page.extension().is_some_and(|end| end == "md") {
            let text = read(root, &page)?;
            open.extend(links(&text).iter().map(|link| {
                resolve(&page, link.split_once('#').map_or(link.as_str(), |(file, _)| file))
            }));
        }
    }
    Ok(all.into_iter().filter(|page| !seen.contains(page)).collect())
}

/// Words of a page outside tables, comments and generated sections.
pub fn words(text: &str) -> usize {
    let mut generated = false;
    let mut words = 0;
    for line in text.lines() {
        generated = match line.trim() {
            line if line.starts_with("<!-- generated") => true,
            "<!-- end -->" => false,
            _ => generated,
        };
        if !generated && !line.starts_with('|') && !line.starts_with("<!--") {
            words += line.split_whitespace().count();
        }
    }
    words
}

/// CSV files of data/ that no manifest describes, and manifest entries without a file.
pub fn undescribed(root: &Path) -> Result<Vec<PathBuf>, DocumentError> {
    let mut wrong = Vec::new();
    for folder in data::folders(&root.join("data"))? {
        let described: BTreeSet<PathBuf> =
            data::manifest(&folder)?.table.iter().map(|entry| folder.join(&entry.file)).collect();
        let unreadable = |source| DocumentError::Read { path: folder.clone(), source };
        let mut files = BTreeSet::new();
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|end| end == "csv") {
                files.insert(path);
            }
        }
        wrong.extend(files.symmetric_difference(&described).cloned());
    }
    Ok(wrong)
}

/// Targets of the links of a page that lead to a file or a heading of this repository.
fn links(text: &str) -> Vec<String> {
    let prose: Vec<&str> = text.lines().filter(|line| !line.starts_with("    ")).collect();
    let prose = prose.join("\n");
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let relative = |link: &&str| !link.contains("://") && !link.contains(char::is_whitespace);
    targets.map(|(link, _)| link).filter(relative).map(str::to_owned).collect()
}

/// The path that a link of a page means, relative to the root.
fn resolve(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().map(Path::to_owned).unwrap_or_default();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

/// A heading's anchor, as GitHub makes it.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_from_their_page() {
        let page = Path::new("docs/science/noise.md");
        assert_eq!(resolve(page, "../reference/traps.md"), Path::new("docs/reference/traps.md"));
        assert_eq!(links("[a](b.md#c) [d](https://e)\n    [x](y)\n"), ["b.md#c"]);
        assert_eq!(slug("## Why cells miss"), "why-cells-miss");
    }

    #[test]
    fn words_of_tables_and_generated_sections_do_not_count() {
        let page = "one two\n| a | b |\n<!-- generated x -->\nthree\n<!-- end -->\nfour\n";
        assert_eq!(words(page), 3);
    }
}
