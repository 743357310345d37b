//! Another user owns the folder that root measures in, and puts something else under the names of what root made
//! there, at random moments: root's load must never reach what it did not make.

use crate::{
    database::has_mariadb,
    machine::{Ended, NOBODY, Place, has_loop_devices},
};
use random::Stream;
use skipped::{Need, skip};
use std::{
    fs,
    os::unix::fs::{MetadataExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How many moments are tried, when nothing says more.
const MOMENTS: u64 = 5;
/// Names more moments.
const VARIABLE: &str = "SPINDLE_SWAPS";

/// The longest that a swap waits after the scratch folder has appeared: about as long as the run takes.
const LATEST_MS: u64 = 1500;

/// What comes into the scratch folder's place.
const SWAPS: [&str; 4] = [
    // A link to the victim's folder.
    "mv $scratch $away && ln -s $victim $scratch",
    // A folder with links to the victim's files.
    "mv $scratch $away && mkdir $scratch && ln -s $victim/* $scratch/",
    // A folder with files of its own.
    "mv $scratch $away && mkdir $scratch && cp $victim/* $scratch/",
    // The folder above, with a link in its place.
    "mv $folder/in $folder/away && ln -s $victim $folder/in",
];

const RUNS: [&[&str]; 5] = [
    &["compare", "--sync", "direct,fdatasync"],
    &["compare", "--sync", "buffered,osync", "--patterns", "randwrite", "--engine", "sync"],
    &["compare", "--sync", "direct,fdatasync", "--loop"],
    &["compare", "--clients", "1,2", "--processes", "--patterns", "randwrite"],
    &["compare", "--clients", "1,2", "--patterns", "randwrite", "--engine", "fio"],
];

/// A folder of another user's, in which root measures, and files of root's that nobody may touch.
struct Scene {
    place: Place,
    folder: PathBuf,
    victim: PathBuf,
}

/// What tells whether a file was touched.
type Seen = Vec<(PathBuf, Vec<u8>, i64, i64)>;

impl Scene {
    fn new() -> Scene {
        let place = Place::new();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(place.path(), open).unwrap();
        let [folder, victim] = ["theirs", "victim"].map(|name| place.path().join(name));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(folder.join("in")).unwrap();
        fs::create_dir(&victim).unwrap();
        for path in [&folder, &folder.join("in")] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        // Every name that a run gives, as long as the load is.
        for name in ["data", "data-0", "beside", "log-0", "growing-0"] {
            fs::write(victim.join(name), vec![7; 16 << 20]).unwrap();
        }
        Scene { place, folder, victim }
    }

    fn target(&self) -> PathBuf {
        self.folder.join("in")
    }

    fn victims(&self) -> Seen {
        let files = fs::read_dir(&self.victim).unwrap().map(|entry| entry.unwrap().path());
        let mut seen: Seen = files
            .map(|path| {
                let known = fs::metadata(&path).unwrap();
                let content = fs::read(&path).unwrap();
                (path, content, known.mtime(), known.mtime_nsec())
            })
            .collect();
        seen.sort();
        seen
    }

    /// Runs the program while the other user swaps at a moment after the scratch folder has appeared.
    fn swapped(&self, words: &[&str], swap: &str, after: Duration) -> Ended {
        let (verb, more) = words.split_first().unwrap();
        let target = self.target();
        let all: Vec<&str> =
            [*verb, target.to_str().unwrap()].into_iter().chain(more.iter().copied()).collect();
        let mut command = self.place.spindle(&all);
        let program = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let scratch = scratch_in(&target);
        let mut helper = scratch.map(|scratch| self.helper(&scratch, swap, after));
        let ended = Ended::of(program.wait_with_output().unwrap());
        if let Some(helper) = &mut helper {
            helper.wait().unwrap();
        }
        ended
    }

    /// The other user, about to swap.
    fn helper(&self, scratch: &Path, swap: &str, after: Duration) -> Child {
        let script = format!("sleep {}; {swap}", after.as_secs_f64());
        Command::new("setpriv")
            .arg(format!("--reuid={NOBODY}"))
            .arg(format!("--regid={NOBODY}"))
            .args(["--clear-groups", "sh", "-c", &script])
            .env("scratch", scratch)
            .env("away", self.folder.join("away"))
            .env("folder", &self.folder)
            .env("victim", &self.victim)
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// The run went on on its own files or ended with a reason; nothing that it made is left, but what could not be
    /// followed to where it was moved, which is said.
    fn nothing_was_touched(&self, before: &Seen, ended: &Ended, what: &str) {
        assert!(self.victims() == *before, "the victim's files were touched: {what}: {ended:?}");
        let reasons = ["somebody", "may write in", "is now a link", "moved"];
        let told = reasons.iter().any(|reason| ended.err.contains(reason));
        assert!(ended.code == Some(0) || ended.code == Some(1) && told, "{what}: {ended:?}");
        let left = roots_below(&self.folder);
        assert!(
            left.iter().all(|it| ended.err.contains(it.to_str().unwrap())),
            "{what}: {left:?} {ended:?}"
        );
        assert!(
            left.iter().all(|it| fs::read_dir(it).unwrap().next().is_none()),
            "{what}: {left:?}"
        );
    }
}

/// The scratch folder in a folder, once it is there; none when the program ends without making one.
fn scratch_in(folder: &Path) -> Option<PathBuf> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        let mut names = fs::read_dir(folder).ok()?.map(|entry| entry.unwrap().path());
        let is_scratch =
            |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("spindle-");
        if let Some(found) = names.find(is_scratch) {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

/// What root made below a folder, links not followed.
fn roots_below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let known = fs::symlink_metadata(&path).unwrap();
        if known.uid() == 0 {
            all.push(path.clone());
        }
        if known.is_dir() {
            all.extend(roots_below(&path));
        }
    }
    all
}

fn moments() -> u64 {
    std::env::var(VARIABLE).map_or(MOMENTS, |count| count.parse().unwrap())
}

/// Numbers that are others each time; a failure names the moment.
fn chance() -> Stream {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Stream::new(now.as_nanos() as u64, "moments")
}

const SHORT: [&str; 8] = ["--size", "16M", "--rounds", "3", "--measure", "100ms", "--warmup", "0s"];

#[test]
fn what_comes_into_the_scratch_folders_place_is_never_written() {
    if !has_loop_devices() {
        return;
    }
    let fio = Command::new("fio").arg("--version").output().is_ok();
    let mut chance = chance();
    for moment in 0..moments() {
        let words = RUNS[(moment % RUNS.len() as u64) as usize];
        if words.contains(&"fio") && !fio {
            skip(Need::Fio, "apt install fio");
            continue;
        }
        let scene = Scene::new();
        let before = scene.victims();
        let swap = SWAPS[chance.below(SWAPS.len() as u64) as usize];
        let after = Duration::from_millis(chance.below(LATEST_MS));
        let what = format!("{words:?} with '{swap}' after {after:?}");
        let ended = scene.swapped(&[words, &SHORT].concat(), swap, after);
        scene.nothing_was_touched(&before, &ended, &what);
    }
}

#[test]
fn a_sync_card_is_measured_in_its_own_files() {
    if !has_loop_devices() {
        return;
    }
    let scene = Scene::new();
    let before = scene.victims();
    let after = Duration::from_millis(chance().below(LATEST_MS));
    let words = ["inspect", "--sync", "--sync-time", "3s", "--no-probe"];
    let ended = scene.swapped(&words, SWAPS[0], after);
    scene.nothing_was_touched(&before, &ended, &format!("the card, after {after:?}"));
}

#[test]
fn a_server_whose_folder_was_moved_ends_the_run() {
    if !has_loop_devices() || !has_mariadb() {
        return;
    }
    let scene = Scene::new();
    let before = scene.victims();
    let words = [
        "compare",
        "--workload",
        "oltp_read_write,tables=1,rows=1000",
        "--clients",
        "1,2",
        "--rounds",
        "2",
        "--measure",
        "1s",
        "--warmup",
        "0s",
    ];
    let after = Duration::from_millis(chance().below(4 * LATEST_MS));
    let what = format!("a database, after {after:?}");
    let ended = scene.swapped(&words, SWAPS[3], after);
    assert_eq!(ended.code, Some(1), "{what}: {ended:?}");
    scene.nothing_was_touched(&before, &ended, &what);
}
