//! End to end, on the real kernel: one file for each verb.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod apply;
mod check;
mod compare;
mod data_folder;
mod database;
mod diff;
mod documentation;
mod emulate;
mod ending;
mod fleet;
mod guard;
mod import;
mod in_use;
mod inspect;
mod install;
mod machine;
mod page;
mod presets;
mod profiles;
mod recommend;
mod record;
mod restore;
mod running_server;
mod runs;
mod servers;
mod sessions;
mod simulated;
mod stacks;
mod swapped;
mod sync_card;
mod terminal;
mod validate;
mod watch;
mod words;
