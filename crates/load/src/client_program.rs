//! What is started for a client that is a process.

use std::{io, path::PathBuf};

/// The verb with which a program becomes a client: it then calls [`serve_client`](crate::serve_client).
pub const CLIENT_VERB: &str = "load-client";

/// A program that calls [`serve_client`](crate::serve_client) when it is started with these arguments.
#[derive(Clone, Debug)]
pub struct ClientProgram {
    /// Its file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl ClientProgram {
    /// The program that runs, with the verb [`CLIENT_VERB`].
    pub fn own() -> io::Result<Self> {
        let program = std::env::current_exe()?;
        Ok(ClientProgram { program, arguments: vec![CLIENT_VERB.to_owned()] })
    }
}
