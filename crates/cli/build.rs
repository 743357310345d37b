//! Tells the program which commit it is built from and for which target. A commit that is made, or another that is
//! checked out, builds this crate again; nothing else does. Changes that are not committed are not seen: whoever ships
//! a program built from such sources, or from sources without git, says so in `SPINDLE_COMMIT`.

#![allow(clippy::expect_used)]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=SPINDLE_COMMIT");
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo");
    let root = Path::new(&manifest).join("../..").canonicalize().expect("the workspace's folder");
    let told = std::env::var("SPINDLE_COMMIT").ok().filter(|told| !told.trim().is_empty());
    let commit = told
        .or_else(|| commit(&root))
        .unwrap_or_else(|| "not known: built from sources without git".to_owned());
    let target = std::env::var("TARGET").expect("set by cargo");
    println!("cargo:rustc-env=SPINDLE_COMMIT={}", commit.lines().next().unwrap_or_default());
    println!("cargo:rustc-env=SPINDLE_TARGET={target}");
}

/// The commit that is checked out and its date; none where `root` is not the folder of a git work tree: sources that
/// were unpacked inside somebody else's work tree are not of its commit.
fn commit(root: &Path) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    // What a commit and a checkout change. A path that does not exist would build the crate each time.
    for name in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(root, &["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(root, &["log", "-1", "--abbrev=12", "--format=%h of %cs"])
}

fn git(root: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
