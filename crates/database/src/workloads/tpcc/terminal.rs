//! Terminals: what each draws, its pauses, and those who do the deliveries that terminals defer.

use super::{
    Audit, CUSTOMERS, DISTRICTS, ITEMS,
    random::{Constants, between, last_name, nurand},
    transaction::{Connection, Customer, Line, NewOrder, Payment, UNUSED_ITEM},
};
use crate::{
    Session, SqlError,
    workloads::{Client, Done},
};
use random::Stream;
use record::Queries;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, SyncSender},
    },
    time::{Duration, Instant},
};

/// Where a terminal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its home warehouse, for good.
    warehouse: i64,
    /// The district whose stock it asks for.
    district: i64,
    /// How many warehouses there are.
    warehouses: i64,
}

impl Place {
    /// Of a client: spread over the warehouses, then over the districts.
    pub fn of(client: u32, warehouses: u32) -> Place {
        Place {
            warehouse: 1 + i64::from(client % warehouses),
            district: 1 + i64::from(client / warehouses) % DISTRICTS,
            warehouses: i64::from(warehouses),
        }
    }
}

/// What a terminal's user draws from.
pub struct Inputs {
    pub constants: Constants,
    pub place: Place,
    pub audit: Arc<Audit>,
    pub stream: Stream,
}

/// Transactions in a deck: each mix of 23 has exactly these.
const DECK: [(usize, usize); 5] = [(0, 10), (1, 10), (2, 1), (3, 1), (4, 1)];

/// Keying and mean think times in seconds (clause 5.2.5.7).
const PAUSES: [(f64, f64); 5] = [(18.0, 12.0), (3.0, 12.0), (2.0, 10.0), (2.0, 5.0), (2.0, 5.0)];

/// A delivery that waits for a helper.
pub struct Deferred {
    warehouse: i64,
    carrier: i64,
    since: Instant,
}

/// A transaction's inputs.
enum Drawn {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(i64, i64, Customer),
    Delivery(i64, i64),
    StockLevel(i64, i64, i64),
}

/// A terminal.
pub struct Terminal {
    connection: Connection,
    inputs: Inputs,
    deck: Vec<usize>,
    kind: usize,
    drawn: Drawn,
    deferred: SyncSender<Deferred>,
    /// How much of the specification's keying and think times it takes: all, or for a stress none.
    pace: f64,
}

impl Terminal {
    pub fn new(
        session: Box<dyn Session>,
        inputs: Inputs,
        deferred: SyncSender<Deferred>,
        pace: f64,
    ) -> Result<Terminal, SqlError> {
        let drawn = Drawn::Delivery(inputs.place.warehouse, 1);
        let connection = Connection::new(session)?;
        Ok(Terminal { connection, inputs, deck: Vec::new(), kind: 3, drawn, deferred, pace })
    }
}

impl Inputs {
    fn draw(&mut self, kind: usize) -> Drawn {
        let home = self.place.warehouse;
        match kind {
            0 => Drawn::NewOrder(self.new_order()),
            1 => Drawn::Payment(self.payment()),
            2 => {
                let district = between(&mut self.stream, 1, DISTRICTS);
                Drawn::OrderStatus(home, district, self.customer())
            }
            3 => Drawn::Delivery(home, between(&mut self.stream, 1, 10)),
            _ => {
                let threshold = between(&mut self.stream, 10, 20);
                Drawn::StockLevel(home, self.place.district, threshold)
            }
        }
    }

    fn new_order(&mut self) -> NewOrder {
        let (stream, audit) = (&mut self.stream, &self.audit);
        let district = between(stream, 1, DISTRICTS);
        let customer = nurand(stream, 1023, self.constants.customer, 1, CUSTOMERS as u64) as i64;
        let count = between(stream, 5, 15);
        let rolls_back = stream.below(100) == 0;
        let lines: Vec<Line> = (1..=count)
            .map(|number| {
                let item = nurand(stream, 8191, self.constants.item, 1, ITEMS as u64) as i64;
                let item = if rolls_back && number == count { UNUSED_ITEM } else { item };
                let supplier = match stream.below(100) == 0 {
                    true => another(stream, self.place),
                    false => self.place.warehouse,
                };
                Line { item, supplier, quantity: between(stream, 1, 10) }
            })
            .collect();
        let remote = lines.iter().filter(|line| line.supplier != self.place.warehouse).count();
        audit.orders.fetch_add(1, Relaxed);
        audit.rolled_back.fetch_add(u64::from(rolls_back), Relaxed);
        audit.lines.fetch_add(lines.len() as u64, Relaxed);
        audit.remote_lines.fetch_add(remote as u64, Relaxed);
        NewOrder { warehouse: self.place.warehouse, district, customer, lines }
    }

    fn payment(&mut self) -> Payment {
        let warehouse = self.place.warehouse;
        let district = between(&mut self.stream, 1, DISTRICTS);
        let (mut customer_warehouse, mut customer_district) = (warehouse, district);
        if self.stream.below(100) < 15 {
            customer_warehouse = another(&mut self.stream, self.place);
            customer_district = between(&mut self.stream, 1, DISTRICTS);
        }
        let customer = self.customer();
        let remote = u64::from(customer_warehouse != warehouse);
        self.audit.payments.fetch_add(1, Relaxed);
        self.audit.remote_payments.fetch_add(remote, Relaxed);
        let cents = between(&mut self.stream, 100, 500_000);
        Payment { warehouse, district, customer_warehouse, customer_district, customer, cents }
    }

    /// Six in ten by last name.
    fn customer(&mut self) -> Customer {
        let stream = &mut self.stream;
        let by_name = stream.below(100) < 60;
        self.audit.customers.fetch_add(1, Relaxed);
        self.audit.by_name.fetch_add(u64::from(by_name), Relaxed);
        if by_name {
            let mut name = String::new();
            last_name(nurand(stream, 255, self.constants.last_name, 0, 999), &mut name);
            Customer::Name(name)
        } else {
            let c = self.constants.customer;
            Customer::Id(nurand(stream, 1023, c, 1, CUSTOMERS as u64) as i64)
        }
    }
}

/// A warehouse that is not the home; where there is only one, that.
fn another(stream: &mut Stream, place: Place) -> i64 {
    if place.warehouses == 1 {
        return place.warehouse;
    }
    let other = between(stream, 1, place.warehouses - 1);
    if other >= place.warehouse { other + 1 } else { other }
}

impl Client for Terminal {
    fn draw(&mut self, end: Instant, over: &AtomicBool) -> bool {
        if self.deck.is_empty() {
            for (kind, count) in DECK {
                self.deck.extend(std::iter::repeat_n(kind, count));
            }
            self.inputs.stream.shuffle(&mut self.deck);
        }
        self.kind = self.deck.pop().unwrap_or(0);
        self.drawn = self.inputs.draw(self.kind);
        wait(PAUSES[self.kind].0 * self.pace, end, over);
        Instant::now() < end && !over.load(Relaxed)
    }

    fn run(&mut self) -> Result<Done, SqlError> {
        let connection = &mut self.connection;
        let mut rolled_back = false;
        match &self.drawn {
            Drawn::NewOrder(order) => rolled_back = connection.new_order(order)?,
            Drawn::Payment(payment) => connection.payment(payment)?,
            Drawn::OrderStatus(warehouse, district, who) => {
                connection.order_status(*warehouse, *district, who)?;
            }
            Drawn::Delivery(warehouse, carrier) => {
                let (warehouse, carrier) = (*warehouse, *carrier);
                let deferred = Deferred { warehouse, carrier, since: Instant::now() };
                // Whoever does it counts it. When all of them have gone, the trial is over.
                let _ = self.deferred.send(deferred);
                return Ok(Done::default());
            }
            Drawn::StockLevel(warehouse, district, threshold) => {
                connection.stock_level(*warehouse, *district, *threshold)?;
            }
        }
        Ok(Done { kind: Some(self.kind), rolled_back, since: None })
    }

    fn pause(&mut self, end: Instant, over: &AtomicBool) {
        if self.pace > 0.0 {
            let mean = PAUSES[self.kind].1;
            let think = self.inputs.stream.exponential(mean).min(mean * 10.0);
            wait(think * self.pace, end, over);
        }
    }

    fn roll_back(&mut self) -> Result<(), SqlError> {
        self.connection.roll_back()
    }

    fn take_queries(&mut self) -> Queries {
        self.connection.take_queries()
    }
}

fn wait(seconds: f64, end: Instant, over: &AtomicBool) {
    let until = (Instant::now() + Duration::from_secs_f64(seconds)).min(end);
    while !over.load(Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

/// Does deliveries one after the other.
pub struct Deliverer {
    connection: Connection,
    deferred: Arc<Mutex<Receiver<Deferred>>>,
    next: Option<Deferred>,
}

impl Deliverer {
    pub fn new(
        session: Box<dyn Session>,
        deferred: Arc<Mutex<Receiver<Deferred>>>,
    ) -> Result<Deliverer, SqlError> {
        Ok(Deliverer { connection: Connection::new(session)?, deferred, next: None })
    }
}

impl Client for Deliverer {
    fn draw(&mut self, end: Instant, over: &AtomicBool) -> bool {
        while Instant::now() < end && !over.load(Relaxed) {
            let receiver = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
            match receiver.recv_timeout(Duration::from_millis(10)) {
                Ok(next) => {
                    self.next = Some(next);
                    return true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        false
    }

    fn run(&mut self) -> Result<Done, SqlError> {
        let Some(Deferred { warehouse, carrier, since }) = &self.next else {
            return Ok(Done::default());
        };
        self.connection.delivery(*warehouse, *carrier)?;
        Ok(Done { kind: Some(3), rolled_back: false, since: Some(*since) })
    }

    fn roll_back(&mut self) -> Result<(), SqlError> {
        self.connection.roll_back()
    }

    fn take_queries(&mut self) -> Queries {
        self.connection.take_queries()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Arg, Endpoint, Field, QueryKind, RowWriter, RunSpec, StatementId,
        driver::drive,
        workloads::{Clients, tpcc::TYPES},
    };
    use record::Measurement;
    use std::sync::mpsc;
    use units::Nanos;
    use workload::Dialect;

    fn inputs(warehouses: u32) -> Inputs {
        Inputs {
            constants: Constants::of_run(5, 7),
            place: Place::of(1, warehouses),
            audit: Arc::new(Audit::new(warehouses)),
            stream: Stream::new(9, "terminal"),
        }
    }

    #[test]
    fn what_terminals_draw_passes_the_audit() {
        let mut inputs = inputs(10);
        for _ in 0..100_000 {
            let order = inputs.new_order();
            assert!((5..=15).contains(&order.lines.len()));
            let payment = inputs.payment();
            assert!((1..=10).contains(&payment.customer_warehouse));
        }
        for check in inputs.audit.checks() {
            assert!(check.holds, "{check:?}");
        }
    }

    #[test]
    fn another_warehouse_is_never_the_home_and_any_other() {
        let mut stream = Stream::new(1, "another");
        let place = Place::of(1, 4);
        let seen: std::collections::BTreeSet<i64> =
            (0..200).map(|_| another(&mut stream, place)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 3, 4]);
    }

    /// A server that answers at once.
    struct Instantly(Queries);

    impl Session for Instantly {
        fn dialect(&self) -> Dialect {
            Dialect::MySql
        }
        fn prepare(&mut self, _: &str, _: QueryKind) -> Result<StatementId, SqlError> {
            Ok(StatementId(0))
        }
        fn run(&mut self, _: StatementId, _: &[Arg<'_>]) -> Result<u64, SqlError> {
            Ok(1)
        }
        fn rows(&mut self, _: StatementId, _: &[Arg<'_>]) -> Result<Vec<Vec<Field>>, SqlError> {
            Ok(vec![vec![Field::Int(1); 20]])
        }
        fn script(&mut self, _: &str) -> Result<(), SqlError> {
            Ok(())
        }
        fn text(&mut self, _: &str, _: QueryKind) -> Result<(), SqlError> {
            Ok(())
        }
        fn ask(&mut self, _: &str) -> Result<Vec<Vec<Option<String>>>, SqlError> {
            Ok(Vec::new())
        }
        fn counters(&mut self) -> crate::ServerCounters {
            crate::ServerCounters::default()
        }
        fn variables(&mut self, _: &[String]) -> Result<Vec<(String, String)>, SqlError> {
            Ok(Vec::new())
        }
        fn set_variable(&mut self, _: &str, _: &str) -> Result<(), SqlError> {
            Ok(())
        }
        fn tables(&mut self) -> Result<Vec<String>, SqlError> {
            Ok(Vec::new())
        }
        fn fill(
            &mut self,
            _: &str,
            _: &str,
            _: &mut dyn FnMut(&mut RowWriter) -> bool,
        ) -> Result<(), SqlError> {
            Ok(())
        }
        fn take_queries(&mut self) -> Queries {
            std::mem::take(&mut self.0)
        }
    }

    /// What this many terminals complete in a second of warm-up and `span`, at a pace.
    fn paced(terminals: u32, pace: f64, span: Nanos) -> Measurement {
        let session = || Box::new(Instantly(Queries::default()));
        let (sender, receiver) = mpsc::sync_channel(terminals as usize);
        let terminal = |client: u32| {
            let stream = Stream::new(11, &format!("terminal {client}"));
            let inputs = Inputs { stream, ..inputs(6) };
            let terminal = Terminal::new(session(), inputs, sender.clone(), pace).unwrap();
            Box::new(terminal) as Box<dyn Client>
        };
        let helper = Deliverer::new(session(), Arc::new(Mutex::new(receiver))).unwrap();
        let clients = Clients {
            measured: (0..terminals).map(terminal).collect(),
            helpers: vec![Box::new(helper)],
            types: &TYPES,
            audit: None,
        };
        let spec = RunSpec {
            job: &"tpcc,warehouses=6".parse().unwrap(),
            endpoint: &Endpoint::MySqlSocket { socket: "/nowhere".into() },
            clients: terminals,
            rate: None,
            warmup: Nanos::from_secs(1),
            measure: span,
            seed: 1,
        };
        drive(clients, &spec, &AtomicBool::new(false), &mut || {}, &mut |_| {}).unwrap()
    }

    #[test]
    fn keying_and_think_times_give_the_rate_of_their_arithmetic() {
        // Ten terminals for each of six warehouses, at a hundred times the specification's pace.
        const TERMINALS: u32 = 60;
        const PACE: f64 = 0.01;
        // Clause 5.2.5.7: a deck is 10·(18 + 12) + 10·(3 + 12) + (2 + 10) + 2·(2 + 5) seconds, so 12.6
        // new orders a minute and warehouse; clause 4.1 has 12.86 as the most.
        const DECK_SECONDS: f64 = 476.0;
        let span = Nanos::from_secs(4);
        let measured = paced(TERMINALS, PACE, span);
        let decks = f64::from(TERMINALS) * span.as_secs_f64() / (DECK_SECONDS * PACE);
        let types = measured.transactions.unwrap().types;
        let all: u64 = types.values().map(|of_type| of_type.transactions).sum();
        for (name, found, expected) in [
            ("all", all, 23.0 * decks),
            ("new_order", types["new_order"].transactions, 10.0 * decks),
            ("payment", types["payment"].transactions, 10.0 * decks),
        ] {
            // Counts of renewals whose intervals vary less than exponential ones: below √n.
            let off = (found as f64 - expected).abs() / expected.sqrt();
            assert!(off < 4.0, "{name}: {found}, {expected:.0} expected");
        }
    }

    #[test]
    fn a_stress_waits_for_nobody() {
        // Two terminals with the pace of the specification make a transaction in some twenty seconds each; how many they
        // make without waiting is the machine's, which others may use.
        let span = Nanos::from_millis(200);
        let (without, with) = (paced(2, 0.0, span).operations(), paced(2, 1.0, span).operations());
        assert!(without > 20 * (with + 1), "{without} without waiting, {with} with");
    }

    #[test]
    fn a_deck_has_each_its_count() {
        assert_eq!(DECK.iter().map(|(_, count)| count).sum::<usize>(), 23);
    }
}
