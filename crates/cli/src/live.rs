//! The page of a run that goes on, over HTTP: on the loopback address alone, behind a random word in its
//! address. It reads the run file as anybody could, without a lock, so that a comparison never waits for a
//! browser.

use analysis::Analysis;
use anyhow::Context;
use record::{Run, RunState, Store};
use report::PageRun;
use std::{
    fs::File,
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tempfile::NamedTempFile;
use tiny_http::{Header, Request, Response, Server};

/// How long a browser's question for newer data stays open.
const HELD: Duration = Duration::from_secs(20);
/// How often the run file is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A server; it ends when it is dropped.
pub struct Live {
    /// Where the page is.
    pub address: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Serves the page of a run file.
    pub fn start(file: &Path) -> anyhow::Result<Live> {
        let server = Server::http("127.0.0.1:0")
            .map_err(|error| anyhow::anyhow!("cannot listen on the loopback address: {error}"))?;
        let port = server.server_addr().to_ip().context("no address")?.port();
        let token = token()?;
        let stop = Arc::new(AtomicBool::new(false));
        let pages = Pages { file: file.to_owned(), token: token.clone(), port };
        let (stopped, server) = (Arc::clone(&stop), Arc::new(server));
        let thread = std::thread::spawn(move || pages.serve(&server, &stopped));
        let address = format!("http://127.0.0.1:{port}/{token}/");
        Ok(Live { address, stop, thread: Some(thread) })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

/// A word that nobody guesses: 128 bits of the kernel's.
fn token() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom").and_then(|mut it| it.read_exact(&mut bytes))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

struct Pages {
    file: PathBuf,
    token: String,
    port: u16,
}

/// A question of a browser that waits for newer data.
struct Waiting {
    request: Request,
    have: usize,
    since: Instant,
}

impl Pages {
    fn serve(&self, server: &Server, stop: &AtomicBool) {
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut seen = None;
        while !stop.load(Ordering::Relaxed) {
            if let Ok(Some(request)) = server.recv_timeout(LOOK_EVERY) {
                waiting.extend(self.answer(request));
            }
            if waiting.is_empty() {
                continue;
            }
            let now = changed(&self.file);
            let fresh = seen != now;
            seen = now;
            // Newcomers may have less than what did not change since.
            let new = waiting.iter().any(|it| it.since.elapsed() < 2 * LOOK_EVERY);
            let run = (fresh || new).then(|| snapshot(&self.file).ok()).flatten();
            for one in std::mem::take(&mut waiting) {
                match &run {
                    Some(run) if run.trials.len() > one.have || run.state == RunState::Done => {
                        respond(one.request, packed(run), "text/plain");
                    }
                    _ if one.since.elapsed() > HELD => {
                        respond(one.request, Ok(String::new()), "text/plain");
                    }
                    _ => waiting.push(one),
                }
            }
        }
    }

    /// Answers at once, or keeps the question.
    fn answer(&self, request: Request) -> Option<Waiting> {
        if !self.is_own(&request) {
            let refusal = Response::from_string("not found").with_status_code(404);
            // Whoever asked has gone.
            let _ = request.respond(refusal);
            return None;
        }
        let url = request.url().to_owned();
        let path = url.strip_prefix(&format!("/{}/", self.token)).unwrap_or_default();
        match path.strip_prefix("data?have=").map(str::parse) {
            Some(Ok(have)) => Some(Waiting { request, have, since: Instant::now() }),
            _ if path.is_empty() => {
                let html = snapshot(&self.file).and_then(|run| page(&run));
                respond(request, html, "text/html; charset=utf-8");
                None
            }
            _ => {
                let _ = request.respond(Response::from_string("not found").with_status_code(404));
                None
            }
        }
    }

    /// With the word, for this address, and from no other page.
    fn is_own(&self, request: &Request) -> bool {
        let value = |name: &'static str| {
            let header = request.headers().iter().find(|it| it.field.equiv(name));
            header.map(|it| it.value.as_str().to_owned())
        };
        let own = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let host = value("Host").is_some_and(|host| own.contains(&host));
        let origin = value("Origin")
            .is_none_or(|origin| own.iter().any(|it| origin == format!("http://{it}")));
        let site =
            value("Sec-Fetch-Site").is_none_or(|site| site == "same-origin" || site == "none");
        host && origin && site && request.url().starts_with(&format!("/{}/", self.token))
    }
}

fn respond(request: Request, text: anyhow::Result<String>, kind: &str) {
    let (text, code) = match text {
        Ok(text) => (text, 200),
        Err(error) => (format!("the run cannot be read now: {error:#}"), 503),
    };
    let mut response = Response::from_string(text).with_status_code(code);
    for (name, value) in [
        ("Content-Type", kind),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Referrer-Policy", "no-referrer"),
    ] {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    // A browser that has gone needs no answer.
    let _ = request.respond(response);
}

/// What tells that a file was written.
fn changed(file: &Path) -> Option<(std::time::SystemTime, u64)> {
    let meta = std::fs::metadata(file).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

/// Where memory is a filesystem.
const MEMORY: &str = "/dev/shm";

/// How long copies are tried until one is whole.
const TRIED: Duration = Duration::from_secs(2);
/// The pause between two copies: a write takes milliseconds.
const PAUSE: Duration = Duration::from_millis(20);

/// The run as it stands. A copy that was made in the middle of a write is no database: the next is.
fn snapshot(file: &Path) -> anyhow::Result<Run> {
    let begun = Instant::now();
    loop {
        match copied(file) {
            Err(_) if begun.elapsed() < TRIED => std::thread::sleep(PAUSE),
            run => return run,
        }
    }
}

/// Reads a copy of the file, in memory where that can be.
fn copied(file: &Path) -> anyhow::Result<Run> {
    let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    let mut copy = NamedTempFile::new_in(MEMORY).or_else(|_| NamedTempFile::new())?;
    copy.write_all(&bytes)?;
    Ok(Store::open(copy.path())?.read()?)
}

fn with_page<T>(run: &Run, use_it: impl Fn(&[PageRun]) -> std::io::Result<T>) -> anyhow::Result<T> {
    let analysis = Analysis::of(run);
    Ok(use_it(&[PageRun { run, analysis: &analysis, logs: &[] }])?)
}

fn packed(run: &Run) -> anyhow::Result<String> {
    with_page(run, report::packed)
}

fn page(run: &Run) -> anyhow::Result<String> {
    with_page(run, report::live_html)
}
