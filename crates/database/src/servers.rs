//! The servers that can be started for a comparison: one file each, and one line in [`find`].

pub mod mariadb;
mod my_option_file;
pub mod mysql;
pub mod postgresql;

use crate::{DatabaseError, server::ServerKind};
use host::Host;
use std::path::{Path, PathBuf};
use workload::PrivateServer;

/// Where a server's programs are looked for.
pub(crate) struct Search<'a> {
    /// Where users are looked up, for servers that do not run as root.
    pub host: &'a Host,
    /// The server program that the user named (`--server-program`).
    pub program: Option<&'a Path>,
}

/// Finds the programs of a kind of server and reads its version.
pub(crate) fn find(
    kind: PrivateServer,
    search: &Search<'_>,
) -> Result<Box<dyn ServerKind>, DatabaseError> {
    match kind {
        PrivateServer::MariaDb => mariadb::MariaDb::find(search).map(boxed),
        PrivateServer::MySql => mysql::MySql::find(search).map(boxed),
        PrivateServer::PostgreSql => postgresql::PostgreSql::find(search).map(boxed),
    }
}

fn boxed<'a>(kind: impl ServerKind + 'a) -> Box<dyn ServerKind + 'a> {
    Box::new(kind)
}

impl Search<'_> {
    /// The server program: the one that the user named, or `names` in `folders`, on PATH and in the
    /// folders of system programs.
    fn server(
        &self,
        names: &[&str],
        folders: &[PathBuf],
    ) -> Result<Option<PathBuf>, DatabaseError> {
        match self.program {
            Some(program) if program.is_file() => Ok(Some(program.to_owned())),
            Some(program) => Err(DatabaseError::NoSuchProgram { program: program.to_owned() }),
            None => Ok(names.iter().find_map(|name| program(name, folders))),
        }
    }

    /// A program that belongs to the server: beside the one that the user named (or in `../bin`), else
    /// like the server itself.
    fn companion(&self, name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
        let beside: Vec<PathBuf> = match self.program.and_then(Path::parent) {
            Some(folder) => vec![folder.to_owned(), folder.join("../bin")],
            None => Vec::new(),
        };
        program(name, &[&beside, folders].concat())
    }
}

/// A program in one of the folders, on PATH or where system programs are.
fn program(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"].map(PathBuf::from);
    folders
        .iter()
        .cloned()
        .chain(std::env::split_paths(&path))
        .chain(system)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}
