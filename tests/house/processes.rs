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
