//! No two modules of a crate depend on each other, directly or through others.
//!
//! A node is a module with everything below it, an edge a path that begins with `crate::` or `super::`
//! and leads to a sibling. An item that the parent re-exports counts as its module's own. A module may
//! use what its parent itself defines: parent and child are one node.

use crate::source;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// `a/b.rs` and `a/b/mod.rs` are the module a::b; `lib.rs` and `main.rs` are the crate.
fn module_of(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") || parts == ["lib"] || parts == ["main"] {
        parts.pop();
    }
    parts
}

/// Every path of a use tree: `a::{b, c::{d, e}}` is a::b, a::c::d, a::c::e.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or("").split("::");
        return vec![path.map(|part| part.trim().to_owned()).filter(|p| !p.is_empty()).collect()];
    };
    let prefix: Vec<String> = tree[..open]
        .split("::")
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect();
    let (mut depth, mut start, mut all) = (0, open + 1, Vec::new());
    for (at, character) in tree.char_indices().skip_while(|(at, _)| *at < open) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if (character == ',' && depth == 1) || (character == '}' && depth == 0) {
            for path in expand(&tree[start..at]) {
                all.push(prefix.iter().cloned().chain(path).collect());
            }
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    all
}

/// The paths of a file that begin with `crate::` or `super::`, absolute within the crate.
fn paths(module: &[String], text: &str) -> Vec<Vec<String>> {
    let text = source::without_comments(text);
    let mut all = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                continue;
            }
            let rest = &text[at..];
            let mut depth = 0;
            let end = rest
                .char_indices()
                .find(|(_, c)| {
                    match c {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        _ => {}
                    }
                    let of_path = c.is_alphanumeric() || matches!(c, '_' | ':' | '{' | '}');
                    let inside = depth > 0 && (c.is_whitespace() || *c == ',' || *c == '*');
                    depth < 0 || !(of_path || inside)
                })
                .map_or(rest.len(), |(end, _)| end);
            all.extend(expand(&rest[..end]));
        }
    }
    all.into_iter()
        .filter_map(|path| {
            let mut base = module.to_vec();
            let mut rest = path.as_slice();
            if rest.first()? == "crate" {
                return Some(rest[1..].to_vec());
            }
            while rest.first().is_some_and(|part| part == "super") {
                base.pop()?;
                rest = &rest[1..];
            }
            Some(base.into_iter().chain(rest.iter().cloned()).collect())
        })
        .collect()
}

/// What a module re-exports of its children: item to the child.
fn exports(text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let text = source::without_comments(text);
    for (at, _) in text.match_indices("use ") {
        let before = text[..at].trim_end();
        if !(before.ends_with("pub") || before.ends_with(')')) {
            continue;
        }
        let Some(end) = text[at..].find(';') else { continue };
        for path in expand(&text[at + 4..at + end]) {
            let path: Vec<String> = path.into_iter().skip_while(|part| part == "self").collect();
            if let [child, .., item] = path.as_slice() {
                all.insert(item.clone(), child.clone());
            }
        }
    }
    all
}

/// Edges between siblings, by their parent.
type Edges = BTreeMap<Vec<String>, BTreeMap<String, BTreeSet<String>>>;

fn edges(name: &str) -> Edges {
    let files = source::of_crate(name);
    let modules: BTreeSet<Vec<String>> = files.iter().map(|(file, _)| module_of(file)).collect();
    let exported: BTreeMap<Vec<String>, BTreeMap<String, String>> =
        files.iter().map(|(file, text)| (module_of(file), exports(text))).collect();
    let mut edges = Edges::new();
    for (file, text) in &files {
        let from = module_of(file);
        for path in paths(&from, text) {
            let shared = from.iter().zip(&path).take_while(|(a, b)| a == b).count();
            let (Some(own), Some(first)) = (from.get(shared), path.get(shared)) else { continue };
            let parent = path[..shared].to_vec();
            let mut child = parent.clone();
            child.push(first.clone());
            let to = match modules.contains(&child) {
                true => first.clone(),
                false => match exported.get(&parent).and_then(|items| items.get(first)) {
                    Some(child) => child.clone(),
                    None => continue,
                },
            };
            if to != *own {
                edges.entry(parent).or_default().entry(own.clone()).or_default().insert(to);
            }
        }
    }
    edges
}

/// A cycle, if there is one.
fn cycle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk<'a>(
        graph: &'a BTreeMap<String, BTreeSet<String>>,
        at: &'a str,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = way.iter().position(|step| *step == at) {
            return Some(way[start..].iter().chain([&at]).map(|step| (*step).to_owned()).collect());
        }
        if !done.insert(at) {
            return None;
        }
        way.push(at);
        for to in graph.get(at).into_iter().flatten() {
            if let Some(found) = walk(graph, to, way, done) {
                return Some(found);
            }
        }
        way.pop();
        None
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|start| walk(graph, start, &mut Vec::new(), &mut done))
}

#[test]
fn no_module_depends_on_one_that_depends_on_it() {
    let mut found = Vec::new();
    for name in source::crates() {
        for (parent, graph) in edges(&name) {
            if let Some(cycle) = cycle(&graph) {
                let place = std::iter::once(name.clone()).chain(parent).collect::<Vec<_>>();
                found.push(format!("{}: {}", place.join("::"), cycle.join(" → ")));
            }
        }
    }
    assert!(found.is_empty(), "cycles between modules:\n{}", found.join("\n"));
}

#[test]
fn paths_and_cycles_are_seen() {
    let module = ["a".to_owned(), "b".to_owned()];
    let text = "use super::{c::D, e::{self, F}};\nlet x = crate::g::h(1); // crate::no";
    let found = paths(&module, text);
    let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["g::h", "a::c::D", "a::e::self", "a::e::F"]);
    let graph = |pairs: &[(&str, &str)]| {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in pairs {
            all.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        all
    };
    assert_eq!(cycle(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    let round = cycle(&graph(&[("a", "b"), ("b", "c"), ("c", "b")])).unwrap();
    assert_eq!(round, ["b", "c", "b"]);
}
