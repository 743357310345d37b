//! What is served: the page as the run is now, and newer data to those who wait for them.

use super::request::Request;
use analysis::Analysis;
use record::{Following, Run, RunState};
use report::PageRun;
use std::{
    path::Path,
    rc::Rc,
    time::{Duration, Instant},
};

/// How long a browser's question for newer data stays open.
const HELD: Duration = Duration::from_secs(20);
/// Analysing a run and packing it takes processor time from what is measured: after each time, a
/// pause that is longer by this factor.
const REST: u32 = 20;
/// A run of ten thousand trials takes seconds, and a reader should not wait for minutes.
const MAX_REST: Duration = Duration::from_secs(60);

/// A whole HTTP answer; several clients may get the same.
pub type Answer = Rc<[u8]>;

/// What a client gets.
pub enum Reply {
    /// At once.
    Now(Answer),
    /// Once there is something newer.
    Later(Waiting),
}

/// A browser that waits for newer data.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    have: usize,
    since: Instant,
}

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Here it is.
    Found,
    /// It is no request.
    Bad,
    /// There is no such thing, or not for this client.
    NotFound,
    /// Nothing can be sent here.
    OnlyGet,
    /// The run file cannot be read.
    Unreadable,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Found => "200 OK",
            Status::Bad => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            Status::OnlyGet => "405 Method Not Allowed\r\nAllow: GET",
            Status::Unreadable => "503 Service Unavailable",
        }
    }
}

/// An answer with its head.
pub fn answer(status: Status, kind: &str, body: &str) -> Answer {
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\n\r\n",
        status.line(),
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat().into()
}

/// An answer in a few words.
pub fn words(status: Status, text: &str) -> Answer {
    answer(status, "text/plain; charset=utf-8", text)
}

/// The run that is shown.
pub struct Pages {
    following: Following,
    token: String,
    port: u16,
    /// When newer data are made again.
    rests_until: Instant,
}

impl Pages {
    /// Of a run file, behind a word, at a port.
    pub fn of(file: &Path, token: &str, port: u16) -> anyhow::Result<Pages> {
        let following = Following::of(file, record::Waiting::default())?;
        Ok(Pages { following, token: token.to_owned(), port, rests_until: Instant::now() })
    }

    /// What a request gets.
    pub fn reply(&mut self, request: &Request) -> Reply {
        if request.method != "GET" {
            return Reply::Now(words(Status::OnlyGet, "only GET"));
        }
        let path = request.below(&self.token, self.port);
        match path.and_then(|path| path.strip_prefix("data?have=")).map(str::parse) {
            Some(Ok(have)) => Reply::Later(Waiting { have, since: Instant::now() }),
            _ if path == Some("") => {
                let html = match self.following.read_on() {
                    Ok(()) => self.timed(page),
                    Err(error) => Err(error.into()),
                };
                Reply::Now(answered(html, "text/html; charset=utf-8"))
            }
            _ => Reply::Now(words(Status::NotFound, "not found")),
        }
    }

    /// For each of those who wait: what there is for them, if there is something newer, or if they
    /// have waited for long. At the `end` nobody is spared the work.
    pub fn newer(&mut self, waiting: &[Waiting], end: bool) -> Vec<Option<Answer>> {
        let rested = end || Instant::now() >= self.rests_until;
        let read = if rested { self.following.read_on() } else { Ok(()) };
        let run = self.following.run();
        let is_new = |it: &Waiting| run.trials.len() > it.have || run.state == RunState::Done;
        let ready: Vec<bool> = waiting.iter().map(|it| rested && is_new(it)).collect();
        let unread = read.is_err();
        let data = match read {
            Err(error) => Err(error.into()),
            Ok(()) if ready.contains(&true) => self.timed(packed),
            Ok(()) => Ok(String::new()),
        };
        let data = answered(data, "text/plain; charset=utf-8");
        let nothing = words(Status::Found, "");
        let each = waiting.iter().zip(ready).map(|(it, ready)| match ready || unread {
            true => Some(Rc::clone(&data)),
            false => (it.since.elapsed() > HELD).then(|| Rc::clone(&nothing)),
        });
        each.collect()
    }

    /// What is made of the run, and rests afterwards.
    fn timed(&mut self, make: impl Fn(&Run) -> anyhow::Result<String>) -> anyhow::Result<String> {
        let begun = Instant::now();
        let made = make(self.following.run());
        self.rests_until = Instant::now() + (begun.elapsed() * REST).min(MAX_REST);
        made
    }
}

fn answered(text: anyhow::Result<String>, kind: &str) -> Answer {
    match text {
        Ok(text) => answer(Status::Found, kind, &text),
        Err(error) => words(Status::Unreadable, &format!("the run cannot be read now: {error:#}")),
    }
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
