//! What holds for programs that we start, and for signals while something is changed.

use crate::source::{crates, of_crate, without_comments};

#[test]
fn no_signal_of_a_terminal_reaches_what_we_start() {
    for name in crates() {
        for (path, text) in of_crate(&name) {
            let code = without_comments(&text);
            // clap has commands, too.
            if !code.contains("process::") {
                continue;
            }
            let starts = code.matches("Command::new(").count();
            let apart =
                code.matches(".process_group(0)").count() + code.matches("setsid()").count();
            assert!(
                starts <= apart,
                "{name}/{}: host::own_group_command starts a program in a group of its own",
                path.display()
            );
        }
    }
}

#[test]
fn no_signal_ends_a_verb_that_changes_something() {
    for (path, text) in of_crate("cli") {
        let code = without_comments(&text);
        let changes =
            ["Changes::begin(", "host::undo(", "settle_pending(", ".confirm(", "run_rounds("];
        let verb = path.starts_with("commands");
        if verb && changes.iter().any(|it| code.contains(it)) {
            let held = code.contains("interrupt::") || code.contains("stop: &");
            assert!(held, "cli/{}: interrupt::flag or interrupt::hold", path.display());
        }
    }
}
