//! The data folders of database servers, which are no place for scratch files: MySQL and MariaDB take each folder
//! in theirs for a database, and all servers' backups take what they find.

use crate::{DataServer, Error, Host, NoPlace, Result, error::io_error, mounts::mount_id};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The data folder of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFolder {
    /// Where it is.
    pub path: PathBuf,
    /// Whose.
    pub server: DataServer,
}

/// Where scratch files for measuring in a folder go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScratchPlace {
    /// The folder in which they are made: on the same filesystem.
    pub folder: PathBuf,
    /// The data folder in which they would be otherwise.
    pub beside: Option<DataFolder>,
}

impl ScratchPlace {
    /// The folder itself where it is in no data folder, else the nearest above that is in none, on the same mount
    /// and writable.
    pub fn of(host: &Host, folder: &Path) -> Result<ScratchPlace> {
        let folder = fs::canonicalize(folder).map_err(io_error("follow", folder))?;
        let Some(data) = data_folder_above(host, &folder) else {
            return Ok(ScratchPlace { folder, beside: None });
        };
        let refused = |why| Error::InDataFolder {
            path: folder.clone(),
            data: data.path.clone(),
            server: data.server,
            why,
        };
        let home = place_on(&folder).map_err(io_error("look at", &folder))?;
        let mut why = NoPlace::WholeFilesystem;
        for above in data.path.ancestors().skip(1) {
            if place_on(above).ok() != Some(home) {
                break;
            }
            let wanted = Access::WRITE_OK | Access::EXEC_OK;
            if accessat(CWD, above, wanted, AtFlags::EACCESS).is_ok() {
                return Ok(ScratchPlace { folder: above.to_owned(), beside: Some(data) });
            }
            why = NoPlace::NotPermitted;
        }
        Err(refused(why))
    }
}

/// The filesystem of a folder, and the mount through which it is seen.
fn place_on(folder: &Path) -> std::io::Result<(u64, Option<u64>)> {
    Ok((fs::metadata(folder)?.dev(), mount_id(CWD, folder, AtFlags::empty())))
}

/// The uppermost data folder that a folder, with all links followed, is or lies in.
pub(crate) fn data_folder_above(host: &Host, folder: &Path) -> Option<DataFolder> {
    let running = running_in(host);
    let of = |path: &Path| {
        let server = has_marks(path).or_else(|| {
            let id = identity(path)?;
            let all = running.iter();
            all.filter(|(its, _)| *its == id).map(|(_, server)| *server).next()
        })?;
        Some(DataFolder { path: path.to_owned(), server })
    };
    folder.ancestors().filter_map(of).last()
}

/// Whose data a folder has, by the files that servers keep at the top of theirs.
fn has_marks(folder: &Path) -> Option<DataServer> {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    // A folder `mysql` alone is none: the folder above a data folder has one, too.
    let mysql = ["ibdata1", "aria_log_control", "auto.cnf", "mysql.ibd"].into_iter().any(has)
        || ["user.frm", "db.frm", "global_priv.frm"]
            .into_iter()
            .any(|it| has(&format!("mysql/{it}")));
    let postgresql = || has("PG_VERSION") && has("global");
    let mongodb = || has("WiredTiger") || has("storage.bson") || has("mongod.lock");
    match () {
        () if mysql => Some(DataServer::MySql),
        () if postgresql() => Some(DataServer::PostgreSql),
        () if mongodb() => Some(DataServer::MongoDb),
        () => None,
    }
}

type Identity = (u64, u64);

fn identity(folder: &Path) -> Option<Identity> {
    let known = fs::metadata(folder).ok()?;
    Some((known.dev(), known.ino()))
}

/// The folders in which servers run now, as far as we may see: the one that they work in, and those in which they
/// have a file open that is at the top of a data folder.
fn running_in(host: &Host) -> BTreeSet<(Identity, DataServer)> {
    let server_of = |pid: &str| match host.text(format!("/proc/{pid}/comm"))?.as_str() {
        "mysqld" | "mariadbd" => Some(DataServer::MySql),
        "postgres" => Some(DataServer::PostgreSql),
        "mongod" => Some(DataServer::MongoDb),
        _ => None,
    };
    let mut all = BTreeSet::new();
    for pid in host.names("/proc").iter().filter(|name| name.parse::<u32>().is_ok()) {
        let Some(server) = server_of(pid) else { continue };
        let process = host.path(format!("/proc/{pid}"));
        let root = identity(&process.join("root"));
        let works_in = identity(&process.join("cwd")).filter(|it| Some(*it) != root);
        // mongod works where it was started.
        all.extend(works_in.filter(|_| server != DataServer::MongoDb).map(|id| (id, server)));
        for fd in crate::tree::names(process.join("fd")) {
            all.extend(open_at_top(&process, &fd).map(|id| (id, server)));
        }
    }
    all
}

/// The folder of a file that a server has open, when the file is one that is at the top of a data folder.
fn open_at_top(process: &Path, fd: &str) -> Option<Identity> {
    const AT_TOP: [&str; 7] = [
        "ibdata1",
        "aria_log_control",
        "mysql.ibd",
        "postmaster.pid",
        "mongod.lock",
        "WiredTiger.lock",
        "WiredTiger.wt",
    ];
    let file = fs::read_link(process.join("fd").join(fd)).ok()?;
    let name = file.file_name()?.to_str()?;
    // The path is one in the process's own mounts.
    let folder = file.parent()?.strip_prefix("/").ok()?;
    AT_TOP.contains(&name).then(|| identity(&process.join("root").join(folder))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files in it.
    fn with(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    fn place_of(folder: &Path) -> Result<ScratchPlace> {
        ScratchPlace::of(&Host::here(), folder)
    }

    #[test]
    fn scratch_files_go_beside_a_data_folder_and_never_into_it() {
        for (files, server) in [
            (&["data/ibdata1", "data/shop/a.ibd"][..], DataServer::MySql),
            (&["data/auto.cnf", "data/shop/a.ibd"], DataServer::MySql),
            (&["data/mysql/db.frm", "data/shop/a.frm"], DataServer::MySql),
            (&["data/PG_VERSION", "data/global/1", "data/shop/1"], DataServer::PostgreSql),
            (&["data/WiredTiger", "data/shop/a.wt"], DataServer::MongoDb),
        ] {
            let folder = with(files);
            let above = folder.path().canonicalize().unwrap();
            for named in ["data", "data/shop"] {
                let place = place_of(&above.join(named)).unwrap();
                assert_eq!(place.folder, above, "{named} {files:?}");
                let data = DataFolder { path: above.join("data"), server };
                assert_eq!(place.beside, Some(data));
            }
            assert_eq!(place_of(&above).unwrap(), ScratchPlace { folder: above, beside: None });
        }
    }

    #[test]
    fn a_data_folder_in_another_leads_outside_of_both() {
        let folder = with(&["data/ibdata1", "data/inner/PG_VERSION", "data/inner/global/1"]);
        let above = folder.path().canonicalize().unwrap();
        let place = place_of(&above.join("data/inner")).unwrap();
        assert_eq!(place.folder, above);
    }

    #[test]
    fn files_with_ordinary_names_make_no_data_folder() {
        let folder = with(&["mysql/notes", "PG_VERSION", "README"]);
        let above = folder.path().canonicalize().unwrap();
        assert_eq!(place_of(&above).unwrap().beside, None, "a folder mysql is above a data folder");
    }
}
