//! The page of a comparison that goes on (`compare --live`), and what other users of this machine
//! can do to it.

use crate::{
    machine::{Ended, Place},
    terminal::{children, is_there},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread::{JoinHandle, scope},
    time::{Duration, Instant},
};

/// A comparison with its page.
struct Comparison {
    child: Child,
    own: Pid,
    page: Pid,
    port: u16,
    /// `/word/`.
    path: String,
    said: JoinHandle<String>,
}

/// A comparison of some seconds that needs nothing of the machine.
fn comparison(place: &Place, rounds: &str) -> Comparison {
    let folder = place.scratch();
    let words = [
        "compare",
        folder.to_str().unwrap(),
        "--clients",
        "1,2",
        "--engine",
        "null",
        "--size",
        "1M",
        "--rounds",
        rounds,
        "--measure",
        "100ms",
        "--warmup",
        "0s",
        "--live",
    ];
    let mut child =
        place.spindle(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("the page is at")).unwrap();
    let (_, address) = line.split_once("http://127.0.0.1:").unwrap();
    let (port, path) = address.split_once('/').unwrap();
    let said = std::thread::spawn(move || lines.collect::<Vec<_>>().join("\n"));
    let own = Pid::from_child(&child);
    let [page] = children(own)[..] else { panic!("{:?}", children(own)) };
    let (port, path) = (port.parse().unwrap(), format!("/{path}"));
    Comparison { child, own, page, port, path, said }
}

impl Comparison {
    fn descriptors(&self, process: Pid) -> usize {
        let folder = format!("/proc/{}/fd", process.as_raw_nonzero());
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    /// A client that means well: its answer, if it gets one in ten seconds.
    fn get(&self, path: &str) -> Option<String> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(20) {
            let headers = format!("Host: 127.0.0.1:{}\r\n\r\n", self.port);
            let answer = self.send(&format!("GET {path} HTTP/1.1\r\n{headers}"));
            if answer.as_ref().is_some_and(|answer| answer.starts_with("HTTP/1.1 ")) {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    fn connect(&self) -> Option<TcpStream> {
        let address = ([127, 0, 0, 1], self.port).into();
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        Some(stream)
    }

    fn send(&self, text: &str) -> Option<String> {
        let mut stream = self.connect()?;
        stream.write_all(text.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Ends in time, and its page with it.
    #[track_caller]
    fn expect_end(self, within: Duration) -> Ended {
        self.expect_end_as(0, within)
    }

    #[track_caller]
    fn expect_end_as(self, code: i32, within: Duration) -> Ended {
        let begun = Instant::now();
        let ended = Ended::of(self.child.wait_with_output().unwrap());
        assert!(begun.elapsed() < within, "{:?}", begun.elapsed());
        assert!(!is_there(self.page), "the page is still there");
        let err = self.said.join().unwrap();
        Ended { err, ..ended }.expect(code)
    }
}

/// Clients that mean no good, until `over`: each kind in its own thread, on the loopback address
/// alone.
fn flood(run: &Comparison, over: &AtomicBool) {
    let goes_on = || !over.load(Ordering::Relaxed);
    let start = format!("GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", run.path, run.port);
    scope(|threads| {
        // Say nothing, 200 at once.
        threads.spawn(|| {
            while goes_on() {
                let all: Vec<_> =
                    (0..200).take_while(|_| goes_on()).filter_map(|_| run.connect()).collect();
                std::thread::sleep(Duration::from_millis(200));
                drop(all);
            }
        });
        // Headers without end, and a line without end.
        for endless in ["X: y\r\n", "x"] {
            threads.spawn(move || {
                while goes_on() {
                    let Some(mut stream) = run.connect() else { continue };
                    let _ = stream.write_all(b"GET / HTTP/1.1\r\n");
                    while goes_on() && stream.write_all(endless.as_bytes()).is_ok() {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            });
        }
        // A body of a terabyte.
        threads.spawn(|| {
            while goes_on() {
                let Some(mut stream) = run.connect() else { continue };
                let _ =
                    stream.write_all(b"POST / HTTP/1.1\r\nContent-Length: 1000000000000\r\n\r\n");
                while goes_on() && stream.write_all(&[b'x'; 4096]).is_ok() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        // Somebody with the word who never reads the answer, and one who waits and goes.
        threads.spawn(|| {
            let mut all = Vec::new();
            while goes_on() {
                let Some(mut stream) = run.connect() else { continue };
                let _ = stream.write_all(format!("{start}\r\n").as_bytes());
                all.push(stream);
                if all.len() > 4 {
                    all.remove(0);
                }
                let Some(mut stream) = run.connect() else { continue };
                let asks = start.replace("/ HTTP", "/data?have=1000000 HTTP");
                let _ = stream.write_all(format!("{asks}\r\n").as_bytes());
                let _ = stream.shutdown(Shutdown::Both);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
    });
}

#[test]
fn clients_that_mean_no_good_hurt_neither_run_nor_page() {
    let place = Place::new();
    // Longer than the flood, however slow that is here.
    let run = comparison(&place, "10000");
    assert!(run.get(&run.path).unwrap().contains("200 OK"));
    let before = run.descriptors(run.own);
    let over = AtomicBool::new(false);
    let (mut most, mut most_of_page) = (0, 0);
    scope(|threads| {
        threads.spawn(|| flood(&run, &over));
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(4) {
            most = most.max(run.descriptors(run.own));
            most_of_page = most_of_page.max(run.descriptors(run.page));
            std::thread::sleep(Duration::from_millis(2));
        }
        over.store(true, Ordering::Relaxed);
    });
    println!("descriptors: the run {before}, then {most} at most; its page {most_of_page} at most");
    // Those of a trial's own, and none for a client of the page.
    assert!(most <= before + 16, "{before}, then {most}");
    assert!(most_of_page <= 32, "{most_of_page}");
    let page = run.get(&run.path).expect("an answer after the flood");
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("</html>"), "{page}");
    assert!(run.get("/").unwrap().starts_with("HTTP/1.1 404"));
    let newer = run.get(&format!("{}data?have=0", run.path)).unwrap();
    assert!(newer.starts_with("HTTP/1.1 200 OK"), "{newer}");
    kill_process(run.own, Signal::INT).unwrap();
    run.expect_end_as(130, Duration::from_secs(60));
}

#[test]
fn nothing_but_get_is_answered_and_no_body_is_read() {
    let place = Place::new();
    let run = comparison(&place, "10");
    let host = format!("Host: 127.0.0.1:{}\r\n", run.port);
    let post = run.send(&format!("POST {} HTTP/1.1\r\n{host}\r\n", run.path)).unwrap();
    assert!(post.starts_with("HTTP/1.1 405"), "{post}");
    let bad = run.send("no request at all\r\n\r\n").unwrap();
    assert!(bad.starts_with("HTTP/1.1 400"), "{bad}");
    let long = format!("GET /{} HTTP/1.1\r\n{host}\r\n", "x".repeat(1 << 16));
    assert!(run.send(&long).is_none_or(|it| it.is_empty() || it.starts_with("HTTP/1.1 400")));
    // Who says nothing is not waited for.
    let mut silent = run.connect().unwrap();
    let begun = Instant::now();
    assert_eq!(silent.read(&mut [0; 16]).unwrap_or(0), 0);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    run.expect_end(Duration::from_secs(60));
}

#[test]
fn a_page_that_ends_leaves_the_run_and_a_run_that_is_killed_takes_its_page_along() {
    let place = Place::new();
    let run = comparison(&place, "3");
    kill_process(run.page, Signal::KILL).unwrap();
    run.expect_end(Duration::from_secs(60));

    let mut run = comparison(&place, "1000");
    run.child.kill().unwrap();
    run.child.wait().unwrap();
    let begun = Instant::now();
    while is_there(run.page) {
        assert!(begun.elapsed() < Duration::from_secs(10), "the page outlives its run");
        std::thread::sleep(Duration::from_millis(5));
    }
    place.run(&["undo"]).expect(0);
}
