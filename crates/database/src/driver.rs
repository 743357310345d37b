//! One trial's load on a running server: clients in threads of their own, each with a connection, let
//! go together, watched second by second.
//!
//! A client stamps the intended start, the first statement and the last answer of each transaction.
//! What completes in the measured span counts. A transaction that another one was in the way of is
//! rolled back and retried with the same inputs; all attempts are within its latency.

use crate::{
    DatabaseError, Endpoint, SqlError,
    tally::{Completed, Tally},
    workloads::{Client, Clients, Done},
};
use random::Stream;
use record::{
    GeneratorCost, Histogram, Measurement, Queries, Second, SharePermille, Transactions, Warning,
};
use std::{
    sync::{
        Arc, Barrier, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use units::{Bytes, Nanos};
use workload::{DatabaseJob, Live, Rate, Schedule, TrialClock};

/// What is run, on what.
pub struct RunSpec<'a> {
    /// The work.
    pub job: &'a DatabaseJob,
    /// Where.
    pub endpoint: &'a Endpoint,
    /// How many clients.
    pub clients: u32,
    /// The rate of all clients together, where one is offered.
    pub rate: Option<Rate>,
    /// Time before measuring.
    pub warmup: Nanos,
    /// Time measured.
    pub measure: Nanos,
    /// The trial's seed.
    pub seed: u64,
}

/// A server that answers nothing for so long after the end hangs: InnoDB's default lock wait is 50 s.
const HUNG_AFTER: Duration = Duration::from_secs(120);

/// After so many rollbacks in a row a transaction is taken for one that never succeeds: where nine
/// attempts in ten fail, one transaction in 10^45 would be given up wrongly.
const MAX_ATTEMPTS: u32 = 1000;

/// The trial's clock, which counts from `start`.
#[derive(Clone, Copy)]
struct Times {
    start: Instant,
    clock: TrialClock,
}

impl Times {
    fn instant(&self, at: Nanos) -> Instant {
        self.start + at.as_duration()
    }

    fn end(&self) -> Instant {
        self.instant(self.clock.end)
    }

    /// Whether what completes at `now` counts.
    fn counts(&self, now: Instant) -> bool {
        now >= self.start && self.clock.counts(Nanos::from(now - self.start))
    }
}

/// What all threads share.
struct Shared {
    gate: Barrier,
    times: OnceLock<Times>,
    /// Ends early: a failure, or the user's wish.
    over: AtomicBool,
    failure: Mutex<Option<SqlError>>,
}

/// What a client's thread gives in the end.
struct Ended {
    queries: Queries,
    cpu: Nanos,
    backlog: u64,
    oldest: Duration,
}

/// Runs the load and measures it. `begun` is called when all clients are connected and begin, with the
/// warm-up; it and `each_second` run on the caller's thread.
pub fn run(
    spec: &RunSpec<'_>,
    stop: &AtomicBool,
    begun: &mut dyn FnMut(),
    each_second: &mut dyn FnMut(&Live),
) -> Result<Measurement, DatabaseError> {
    let clients = Clients::connect(spec.job, spec.endpoint, spec.clients, spec.seed)?;
    drive(clients, spec, stop, begun, each_second)
}

/// Runs clients that are ready.
pub(crate) fn drive(
    clients: Clients,
    spec: &RunSpec<'_>,
    stop: &AtomicBool,
    begun: &mut dyn FnMut(),
    each_second: &mut dyn FnMut(&Live),
) -> Result<Measurement, DatabaseError> {
    let audit = clients.audit.clone();
    let names = clients.types;
    let measured_clients = clients.measured.len();
    let members: Vec<_> = clients.measured.into_iter().chain(clients.helpers).collect();
    let shared = Arc::new(Shared {
        gate: Barrier::new(members.len() + 1),
        times: OnceLock::new(),
        over: AtomicBool::new(false),
        failure: Mutex::new(None),
    });
    let tallies: Vec<Arc<Mutex<Tally>>> =
        members.iter().map(|_| Arc::new(Mutex::new(Tally::new(names.len())))).collect();
    let mut threads = Vec::new();
    for (place, member) in members.into_iter().enumerate() {
        let helper = place >= measured_clients;
        let schedule = spec.rate.filter(|_| !helper).map(|rate| {
            let stream = Stream::new(spec.seed, &format!("arrivals of client {place}"));
            Schedule::new(rate, (place as u32, measured_clients as u32), Nanos::ZERO, stream)
        });
        let (shared, tally) = (Arc::clone(&shared), Arc::clone(&tallies[place]));
        let thread = std::thread::Builder::new()
            .name(format!("client {place}"))
            .stack_size(512 << 10)
            .spawn(move || work(member, schedule, &shared, &tally));
        threads.push(thread.map_err(DatabaseError::io("start a client's thread"))?);
    }
    let start = Instant::now() + Duration::from_millis(1);
    let times = Times { start, clock: TrialClock::new(Nanos::ZERO, spec.warmup, spec.measure) };
    // Set once, before any thread reads it.
    let _ = shared.times.set(times);
    shared.gate.wait();
    begun();
    let mut watch = Watch { times, tallies: &tallies, before: Nanos::ZERO, seconds: Vec::new() };
    let early = watch.until_end(&shared, stop, each_second);
    shared.over.store(true, Ordering::Relaxed);
    let span_end = if early { Instant::now().min(times.end()) } else { times.end() };
    let ended = join(threads)?;
    if let Some(failure) = lock(&shared.failure).take() {
        let message = failure.to_string();
        return Err(DatabaseError::of_client(failure, message));
    }
    if stop.load(Ordering::Relaxed) && early {
        return Err(DatabaseError::Stopped);
    }
    let seconds = watch.seconds;
    let span = span_end.saturating_duration_since(times.instant(times.clock.measure));
    let transactions = gathered(&tallies, names, measured_clients, &ended, &audit);
    if let Some(why) = nothing_came_through(&transactions) {
        return Err(DatabaseError::Void(why));
    }
    let mut warnings = Vec::new();
    warn_of_backlog(&ended, &mut warnings);
    Ok(Measurement {
        span: span.into(),
        transactions: Some(transactions),
        seconds,
        generator: cost(&ended, span),
        warnings,
        ..Measurement::default()
    })
}

/// That every attempt was rolled back, in the server's words for most of them.
fn nothing_came_through(transactions: &Transactions) -> Option<String> {
    let (why, _) = transactions.retries.iter().max_by_key(|(_, count)| **count)?;
    let attempts: u64 = transactions.retries.values().sum();
    (transactions.completed() == 0).then(|| {
        format!(
            "not one transaction came through: all {attempts} attempts were rolled back, most of \
             them for: {why}"
        )
    })
}

fn join(threads: Vec<JoinHandle<Ended>>) -> Result<Vec<Ended>, DatabaseError> {
    let begun = Instant::now();
    while !threads.iter().all(JoinHandle::is_finished) {
        if begun.elapsed() > HUNG_AFTER {
            return Err(DatabaseError::Void(format!(
                "the server answered nothing for {} s after the end",
                HUNG_AFTER.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let ended = threads.into_iter().map(JoinHandle::join);
    ended
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| DatabaseError::Void("a client's thread ended in a panic".to_owned()))
}

/// A client's thread.
fn work(
    mut client: Box<dyn Client>,
    mut schedule: Option<Schedule>,
    shared: &Shared,
    tally: &Mutex<Tally>,
) -> Ended {
    shared.gate.wait();
    let mut ended =
        Ended { queries: Queries::default(), cpu: Nanos::ZERO, backlog: 0, oldest: Duration::ZERO };
    let Some(times) = shared.times.get().copied() else { return ended };
    let _warm_up_is_not_counted = client.take_queries();
    let mut cpu_before = None;
    sleep_until(times.start, shared);
    let over = || shared.over.load(Ordering::Relaxed) || Instant::now() >= times.end();
    while !over() {
        if cpu_before.is_none() && times.counts(Instant::now()) {
            cpu_before = Some(thread_cpu());
            let _warm_up = client.take_queries();
        }
        let intended = match &schedule {
            Some(schedule) => {
                let due = times.start + schedule.next().as_duration();
                sleep_until(due.min(times.end()), shared);
                if due >= times.end() || over() {
                    break;
                }
                Some(due)
            }
            None => None,
        };
        if !client.draw(times.end(), &shared.over) {
            break;
        }
        if let Some(schedule) = &mut schedule {
            schedule.take();
        }
        match transaction(client.as_mut(), shared, tally, times, intended) {
            Ok(()) => {}
            Err(error) => {
                lock(&shared.failure).get_or_insert(error);
                shared.over.store(true, Ordering::Relaxed);
                break;
            }
        }
    }
    ended.cpu = thread_cpu().saturating_sub(cpu_before.unwrap_or_else(thread_cpu));
    ended.queries = client.take_queries();
    if let Some(schedule) = &schedule {
        let end = times.clock.end;
        ended.backlog = schedule.due_before(end);
        ended.oldest = end.saturating_sub(schedule.next()).as_duration();
    }
    ended
}

/// One transaction, retried until it succeeds, fails for good or the time is over.
fn transaction(
    client: &mut dyn Client,
    shared: &Shared,
    tally: &Mutex<Tally>,
    times: Times,
    intended: Option<Instant>,
) -> Result<(), SqlError> {
    let begun = Instant::now();
    let mut attempts = 0;
    loop {
        let why = match client.run() {
            Ok(done) => {
                let now = Instant::now();
                let Done { kind, rolled_back, since } = done;
                let Some(kind) = kind else {
                    client.pause(times.end(), &shared.over);
                    return Ok(());
                };
                let since_intended = |intended: Instant| Nanos::from(now - intended.min(now));
                let completed = Completed {
                    kind,
                    rolled_back,
                    service: Nanos::from(now - since.unwrap_or(begun).min(now)),
                    response: intended.map(since_intended),
                };
                let counts = times.counts(now);
                lock(tally).note(&completed, counts);
                client.pause(times.end(), &shared.over);
                return Ok(());
            }
            Err(SqlError::Retry(why)) => why,
            Err(SqlError::Duplicate(why)) if client.expects_duplicates() => why,
            // The trial is over, or has failed already: this error is not another failure.
            Err(_) if shared.over.load(Ordering::Relaxed) => return Ok(()),
            Err(other) => return Err(other),
        };
        let now = Instant::now();
        if times.counts(now) {
            *lock(tally).retries.entry(short(&why)).or_default() += 1;
        }
        client.roll_back()?;
        if now >= times.end() || shared.over.load(Ordering::Relaxed) {
            return Ok(());
        }
        attempts += 1;
        if attempts == MAX_ATTEMPTS {
            return Err(SqlError::Refused(format!(
                "a transaction was retried {MAX_ATTEMPTS} times in a row and never came \
                 through: {why}"
            )));
        }
    }
}

/// The server's message without what differs each time: `duplicate key … (1062)` names a key.
fn short(why: &str) -> String {
    match why.split_once('\'') {
        Some((before, rest)) => match rest.rsplit_once('\'') {
            Some((_, after)) => format!("{before}…{after}"),
            None => why.to_owned(),
        },
        None => why.to_owned(),
    }
}

/// Watches the clients and notes each second.
struct Watch<'a> {
    times: Times,
    tallies: &'a [Arc<Mutex<Tally>>],
    before: Nanos,
    seconds: Vec<Second>,
}

impl Watch<'_> {
    /// Until the end, or until something ends it early: then true.
    fn until_end(
        &mut self,
        shared: &Shared,
        stop: &AtomicBool,
        each_second: &mut dyn FnMut(&Live),
    ) -> bool {
        loop {
            let tick = self.times.clock.next_tick(self.before);
            let at = self.times.instant(tick);
            while Instant::now() < at {
                if stop.load(Ordering::Relaxed) || shared.over.load(Ordering::Relaxed) {
                    return true;
                }
                let left = at.saturating_duration_since(Instant::now());
                std::thread::sleep(left.min(Duration::from_millis(20)));
            }
            self.second(tick, each_second);
            if tick == self.times.clock.end {
                return false;
            }
        }
    }

    fn second(&mut self, tick: Nanos, each_second: &mut dyn FnMut(&Live)) {
        let mut sum = (0, Histogram::new());
        for tally in self.tallies {
            lock(tally).take_second(&mut sum);
        }
        let length = (tick - self.before).as_secs_f64().max(1e-9);
        self.before = tick;
        let at = self.times.clock.axis(tick);
        let quantile = |share| sum.1.quantile(share).unwrap_or_default();
        let second = Second {
            at,
            transactions: sum.0,
            bytes: Bytes::ZERO,
            p50: quantile(0.5),
            p99: quantile(0.99),
            max: sum.1.max().unwrap_or_default(),
            ..Second::default()
        };
        self.seconds.push(second);
        each_second(&Live {
            at,
            phase: self.times.clock.phase(tick),
            operations_per_second: sum.0 as f64 / length,
            bytes_per_second: 0.0,
            p99: second.p99,
        });
    }
}

fn gathered(
    tallies: &[Arc<Mutex<Tally>>],
    names: &[&str],
    measured_clients: usize,
    ended: &[Ended],
    audit: &Option<Arc<crate::workloads::tpcc::Audit>>,
) -> Transactions {
    let mut all = Transactions::default();
    for (place, tally) in tallies.iter().enumerate() {
        let tally = std::mem::replace(&mut *lock(tally), Tally::new(0));
        if place < measured_clients {
            all.clients.push(tally.completed);
        }
        for (name, measured) in names.iter().zip(tally.types.into_iter().map(|t| t.measured())) {
            if let Some(measured) = measured {
                all.types.entry((*name).to_owned()).or_default().merge(&measured);
            }
        }
        for (why, count) in tally.retries {
            *all.retries.entry(why).or_default() += count;
        }
    }
    for Ended { queries, .. } in ended {
        all.queries.reads += queries.reads;
        all.queries.writes += queries.writes;
        all.queries.others += queries.others;
    }
    all.checks = audit.as_ref().map(|audit| audit.checks()).unwrap_or_default();
    all
}

fn warn_of_backlog(ended: &[Ended], warnings: &mut Vec<Warning>) {
    let late: u64 = ended.iter().map(|ended| ended.backlog).sum();
    let oldest = ended.iter().map(|ended| ended.oldest).max().unwrap_or_default();
    if late > 0 && oldest > Duration::from_millis(100) {
        warnings
            .push(Warning::TransactionBacklog { transactions: late, oldest: Nanos::from(oldest) });
    }
}

fn cost(ended: &[Ended], span: Duration) -> GeneratorCost {
    let busiest = ended.iter().map(|ended| ended.cpu).max().unwrap_or_default();
    let share = busiest.as_secs_f64() / span.as_secs_f64().max(1e-9);
    GeneratorCost {
        user: Nanos(ended.iter().map(|ended| ended.cpu.0).sum()),
        system: Nanos::ZERO,
        threads: ended.len() as u32,
        busiest: SharePermille((share * 1000.0).min(1000.0) as u32),
    }
}

/// CPU time of this thread, in user mode and in the kernel together.
fn thread_cpu() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

fn sleep_until(when: Instant, shared: &Shared) {
    while !shared.over.load(Ordering::Relaxed) {
        let left = when.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client whose transaction fails so often, then comes through.
    struct Failing {
        fails: u32,
        failed: u32,
        /// Each attempt.
        takes: Duration,
    }

    impl Client for Failing {
        fn draw(&mut self, _: Instant, _: &AtomicBool) -> bool {
            self.failed = 0;
            true
        }

        fn run(&mut self) -> Result<Done, SqlError> {
            std::thread::sleep(self.takes);
            if self.failed == self.fails {
                return Ok(Done { kind: Some(0), ..Done::default() });
            }
            self.failed += 1;
            Err(SqlError::Retry("Deadlock found (1213)".to_owned()))
        }

        fn roll_back(&mut self) -> Result<(), SqlError> {
            Ok(())
        }

        fn take_queries(&mut self) -> Queries {
            Queries::default()
        }
    }

    fn failing(fails: u32, takes: Duration, measure: Nanos) -> Result<Measurement, DatabaseError> {
        let clients = Clients {
            measured: vec![Box::new(Failing { fails, failed: 0, takes })],
            helpers: Vec::new(),
            types: &["only"],
            audit: None,
        };
        let spec = RunSpec {
            job: &"oltp_write_only".parse().unwrap(),
            endpoint: &Endpoint::MySqlSocket { socket: "/nowhere".into() },
            clients: 1,
            rate: None,
            warmup: Nanos::ZERO,
            measure,
            seed: 1,
        };
        drive(clients, &spec, &AtomicBool::new(false), &mut || {}, &mut |_| {})
    }

    #[test]
    fn what_is_begun_anew_is_counted_and_within_the_latency() {
        let measured = failing(3, Duration::from_micros(10), Nanos::from_millis(300)).unwrap();
        let transactions = measured.transactions.unwrap();
        let came = transactions.completed();
        let again = transactions.retries["Deadlock found (1213)"];
        assert!(came > 0 && (3 * came..=3 * came + 3).contains(&again), "{came}, {again}");
        let latency = transactions.latency().quantile(0.0).unwrap_or_default();
        assert!(latency >= Nanos::from_micros(40), "four attempts of 10 µs or more: {latency}");
    }

    #[test]
    fn what_never_comes_through_voids_the_trial_in_the_servers_words() {
        let void = |ended: Result<Measurement, DatabaseError>| match ended {
            Err(DatabaseError::Void(why)) => why,
            other => panic!("{other:?}"),
        };
        let why = void(failing(u32::MAX, Duration::from_micros(10), Nanos::from_secs(60)));
        assert!(why.contains("1000 times in a row") && why.contains("Deadlock found"), "{why}");
        // The time is over before so many.
        let why = void(failing(u32::MAX, Duration::from_millis(2), Nanos::from_millis(500)));
        assert!(why.contains("not one transaction came through"), "{why}");
        assert!(why.contains("Deadlock found"), "{why}");
    }

    #[test]
    fn a_servers_message_without_the_key_that_it_names() {
        let text = "Duplicate entry '17' for key 'PRIMARY' (1062)";
        assert_eq!(short(text), "Duplicate entry … (1062)");
        assert_eq!(short("deadlock (1213)"), "deadlock (1213)");
    }
}
