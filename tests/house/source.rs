//! The source files of the workspace.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The workspace's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Names of all crates.
pub fn crates() -> Vec<String> {
    let folders = fs::read_dir(root().join("crates")).unwrap();
    let mut names: Vec<String> =
        folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// All files below a folder whose names end so, with their text.
pub fn files(folder: &Path, ending: &str) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let text = fs::read_to_string(&path).unwrap();
                all.push((path, text));
            }
        }
    }
    all.sort();
    all
}

/// The source of a crate without its tests: files called tests, and what follows `#[cfg(test)]`.
pub fn of_crate(name: &str) -> Vec<(PathBuf, String)> {
    let folder = root().join("crates").join(name).join("src");
    files(&folder, ".rs")
        .into_iter()
        .filter(|(path, _)| !path.components().any(|part| part.as_os_str() == "tests.rs"))
        .map(|(path, text)| {
            let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
            (path.strip_prefix(&folder).unwrap().to_owned(), text[..end].to_owned())
        })
        .collect()
}

/// Code without comments: what stands behind `//` up to the line's end.
pub fn without_comments(text: &str) -> String {
    text.lines()
        .map(|line| match line.find("//") {
            // Not the `//` of an address in a string.
            Some(at) if !line[..at].ends_with(':') => &line[..at],
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}
