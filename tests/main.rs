//! End to end, on the real kernel: one file for each verb.

mod compare;
mod guard;
mod inspect;
mod machine;
mod restore;
mod words;
