//! Embeds every page of docs/reference, so that `spindle explain` needs no files beside the program.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let root = manifest.join("../../docs/reference").canonicalize().expect("docs/reference exists");
    let mut pages = Vec::new();
    collect(&root, &mut pages);
    pages.sort();
    let mut code = "&[\n".to_owned();
    for page in &pages {
        let name = page.strip_prefix(&root).expect("below the root").to_string_lossy();
        writeln!(code, "({name:?}, include_str!({:?})),", page.to_string_lossy()).unwrap();
    }
    code.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    std::fs::write(out.join("pages.rs"), code).expect("OUT_DIR is writable");
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
    println!("cargo:rerun-if-changed={}", folder.display());
    for entry in std::fs::read_dir(folder).expect("a folder of docs/reference") {
        let path = entry.expect("an entry of docs/reference").path();
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|end| end == "md") {
            pages.push(path);
        }
    }
}
