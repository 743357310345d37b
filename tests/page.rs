//! The page: its functions under Node, and all of it in Debian's Chromium. web/tests has the tests.

use skipped::{Need, skip};
use std::{path::Path, process::Command};

#[test]
fn the_functions_of_the_page() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    if !web.join("node_modules/esbuild").exists() {
        skip(Need::Browser, "node and the packages of web/ (tools/test installs them)");
        return;
    }
    let ended =
        Command::new("node").args(["--test", "tests/unit/"]).current_dir(&web).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}\n{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn the_page_in_a_browser() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    if !Path::new("/usr/bin/chromium").exists()
        || !web.join("node_modules/playwright-core").exists()
    {
        skip(Need::Browser, "chromium, and the packages of web/ (tools/test installs them)");
        return;
    }
    let mut node = Command::new("node");
    node.args(["--test", "tests/page.test.mjs"]).current_dir(&web);
    let ended = node.env("SPINDLE", env!("CARGO_BIN_EXE_spindle")).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}\n{}", String::from_utf8_lossy(&ended.stderr));
}
