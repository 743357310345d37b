//! The page of a run that goes on, over HTTP: on the loopback address alone, behind a random word in its
//! address. It reads the run file on from where it was: a comparison waits for some milliseconds of that between
//! two trials, and never for a browser.

use analysis::Analysis;
use anyhow::Context;
use record::{Following, Run, RunState};
use report::PageRun;
use std::{
    fs::File,
    io::Read,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tiny_http::{Header, Request, Response, Server};

/// How long a browser's question for newer data stays open.
const HELD: Duration = Duration::from_secs(20);
/// How often the run file is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Analysing a run and packing it takes processor time from what is measured: after each time, a pause that
/// is longer by this factor.
const REST: u32 = 20;
/// A run of ten thousand trials takes seconds, and a reader should not wait for minutes.
const MAX_REST: Duration = Duration::from_secs(60);

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
        let following = Following::of(file)?;
        let mut pages =
            Pages { following, token: token.clone(), port, rests_until: Instant::now() };
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
    following: Following,
    token: String,
    port: u16,
    /// When newer data are made again.
    rests_until: Instant,
}

/// A question of a browser that waits for newer data.
struct Waiting {
    request: Request,
    have: usize,
    since: Instant,
}

impl Pages {
    fn serve(&mut self, server: &Server, stop: &AtomicBool) {
        let mut waiting: Vec<Waiting> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            if let Ok(Some(request)) = server.recv_timeout(LOOK_EVERY) {
                waiting.extend(self.answer(request));
            }
            if !waiting.is_empty() {
                waiting = self.answer_waiting(waiting);
            }
        }
    }

    /// Answers those for whom there is something new, and those who have waited for long; gives the others.
    fn answer_waiting(&mut self, waiting: Vec<Waiting>) -> Vec<Waiting> {
        let rested = Instant::now() >= self.rests_until;
        let read = if rested { self.following.read_on() } else { Ok(()) };
        let run = self.following.run();
        let is_new = |it: &Waiting| run.trials.len() > it.have || run.state == RunState::Done;
        let ready = rested && waiting.iter().any(is_new);
        let (now, later): (Vec<Waiting>, Vec<Waiting>) = waiting
            .into_iter()
            .partition(|it| (ready && is_new(it)) || read.is_err() || it.since.elapsed() > HELD);
        let data = match read {
            Err(error) => Err(error.into()),
            Ok(()) if ready => self.timed(packed),
            Ok(()) => Ok(String::new()),
        };
        for one in now {
            let text = match &data {
                Ok(text) => Ok(text.clone()),
                Err(error) => Err(anyhow::anyhow!("{error:#}")),
            };
            respond(one.request, text, "text/plain");
        }
        later
    }

    /// What is made of the run, and rests afterwards.
    fn timed(&mut self, make: impl Fn(&Run) -> anyhow::Result<String>) -> anyhow::Result<String> {
        let begun = Instant::now();
        let made = make(self.following.run());
        self.rests_until = Instant::now() + (begun.elapsed() * REST).min(MAX_REST);
        made
    }

    /// Answers at once, or keeps the question.
    fn answer(&mut self, request: Request) -> Option<Waiting> {
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
                let html = match self.following.read_on() {
                    Ok(()) => self.timed(page),
                    Err(error) => Err(error.into()),
                };
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
