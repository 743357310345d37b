//! TPC-C-like: the five transactions of the TPC-C specification (revision 5.11) on its tables.
//!
//! What differs: money is held in whole cents and rates in ten-thousandths, which clause 1.3.1
//! permits (any physical representation). What is missing from TPC-C: no terminals' screens, no durability
//! tests, no pricing; so no figure of it is a tpmC.

pub mod conditions;
pub mod load;
pub mod random;
pub mod schema;
mod terminal;
mod transaction;

use super::{Client, Clients, DatabaseWorkload, Part, Shape};
use crate::{Endpoint, Session, SqlError};
use ::random::Stream;
use record::Check;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering::Relaxed},
    mpsc,
};
use workload::DatabaseJob;

/// Types of transactions, in the order of their numbers.
pub const TYPES: [&str; 5] = ["new_order", "payment", "order_status", "delivery", "stock_level"];

/// Districts of a warehouse.
pub const DISTRICTS: i64 = 10;
/// Customers of a district.
pub const CUSTOMERS: i64 = 3000;
/// Items.
pub const ITEMS: i64 = 100_000;

/// Clients for each that does what they defer.
const CLIENTS_PER_HELPER: u32 = 10;

/// The workload.
pub struct Tpcc;

impl DatabaseWorkload for Tpcc {
    fn data(&self, job: &DatabaseJob) -> String {
        format!("tpcc, {} warehouses", job.warehouses)
    }

    fn tables(&self, _: &DatabaseJob) -> Vec<String> {
        schema::TABLES.map(str::to_owned).to_vec()
    }

    fn create(&self, session: &mut dyn Session, _: &Shape, seed: u64) -> Result<(), SqlError> {
        schema::create(session, seed)
    }

    fn parts(&self, job: &DatabaseJob, seed: u64) -> Vec<Part> {
        load::parts(job.warehouses, seed)
    }

    fn finish(&self, session: &mut dyn Session, _: &DatabaseJob) -> Result<(), SqlError> {
        schema::finish(session)
    }

    fn clients(
        &'static self,
        job: &DatabaseJob,
        endpoint: &Endpoint,
        clients: u32,
        seed: u64,
    ) -> Result<Clients, SqlError> {
        connect(job, endpoint, clients, seed)
    }

    fn check(&self, job: &DatabaseJob, endpoint: &Endpoint) -> Result<Vec<Check>, SqlError> {
        conditions::check(endpoint.connect()?.as_mut(), job.all_checks)
    }
}

/// All terminals, and those who deliver.
fn connect(
    job: &DatabaseJob,
    endpoint: &Endpoint,
    clients: u32,
    seed: u64,
) -> Result<Clients, SqlError> {
    let mut session = endpoint.connect()?;
    let constants = random::Constants::of_run(schema::loaded_constant(session.as_mut())?, seed);
    drop(session);
    let audit = Arc::new(Audit::new(job.warehouses));
    let (sender, receiver) = mpsc::sync_channel(clients as usize * 2);
    let pace = if job.think { 1.0 } else { 0.0 };
    let mut all: Vec<Box<dyn Client>> = Vec::new();
    for client in 0..clients {
        let place = terminal::Place::of(client, job.warehouses);
        let stream = Stream::new(seed, &format!("tpcc terminal {client}"));
        let inputs = terminal::Inputs { constants, place, audit: Arc::clone(&audit), stream };
        let session: Box<dyn Session> = endpoint.connect()?;
        all.push(Box::new(terminal::Terminal::new(session, inputs, sender.clone(), pace)?));
    }
    let receiver = Arc::new(Mutex::new(receiver));
    let mut helpers: Vec<Box<dyn Client>> = Vec::new();
    for _ in 0..clients.div_ceil(CLIENTS_PER_HELPER) {
        let session: Box<dyn Session> = endpoint.connect()?;
        helpers.push(Box::new(terminal::Deliverer::new(session, Arc::clone(&receiver))?));
    }
    Ok(Clients { measured: all, helpers, types: &TYPES, audit: Some(audit) })
}

/// What the clients drew, of which clause 5.3 wants certain shares.
pub struct Audit {
    warehouses: u32,
    orders: AtomicU64,
    rolled_back: AtomicU64,
    lines: AtomicU64,
    remote_lines: AtomicU64,
    payments: AtomicU64,
    remote_payments: AtomicU64,
    customers: AtomicU64,
    by_name: AtomicU64,
}

impl Audit {
    fn new(warehouses: u32) -> Audit {
        Audit {
            warehouses,
            orders: AtomicU64::new(0),
            rolled_back: AtomicU64::new(0),
            lines: AtomicU64::new(0),
            remote_lines: AtomicU64::new(0),
            payments: AtomicU64::new(0),
            remote_payments: AtomicU64::new(0),
            customers: AtomicU64::new(0),
            by_name: AtomicU64::new(0),
        }
    }

    /// The specification's bands. A short trial draws few: what lies outside a band by less than four
    /// standard deviations of so many draws (1 trial in 16,000) is chance and holds.
    pub fn checks(&self) -> Vec<Check> {
        let of = |count: &AtomicU64| count.load(Relaxed);
        let mut checks = vec![
            share(
                "audit: new orders rolled back",
                of(&self.rolled_back),
                of(&self.orders),
                1.0,
                0.1,
            ),
            self.lines_check(),
            share("audit: customers by name", of(&self.by_name), of(&self.customers), 60.0, 3.0),
        ];
        if self.warehouses > 1 {
            let (remote, lines) = (of(&self.remote_lines), of(&self.lines));
            checks.push(share("audit: remote order lines", remote, lines, 1.0, 0.05));
            let (remote, payments) = (of(&self.remote_payments), of(&self.payments));
            checks.push(share("audit: remote payments", remote, payments, 15.0, 1.0));
        }
        checks
    }

    fn lines_check(&self) -> Check {
        /// Of a uniform draw from 5 to 15.
        const DEVIATION: f64 = 3.1623;
        let orders = self.orders.load(Relaxed) as f64;
        let mean = self.lines.load(Relaxed) as f64 / orders.max(1.0);
        let tolerance = 0.5 + 4.0 * DEVIATION / orders.max(1.0).sqrt();
        Check {
            name: "audit: lines an order".to_owned(),
            holds: orders == 0.0 || (mean - 10.0).abs() <= tolerance,
            found: format!("{mean:.2} of {orders} orders, 9.5 to 10.5 wanted"),
        }
    }
}

/// That `part` of `all` is `percent ± band` percent.
fn share(name: &str, part: u64, all: u64, percent: f64, band: f64) -> Check {
    let found = part as f64 / all.max(1) as f64 * 100.0;
    let p = percent / 100.0;
    let deviation = 100.0 * (p * (1.0 - p) / all.max(1) as f64).sqrt();
    Check {
        name: name.to_owned(),
        holds: all == 0 || (found - percent).abs() <= band + 4.0 * deviation,
        found: format!("{found:.2} % of {all}, {} to {} % wanted", percent - band, percent + band),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_tells_chance_from_a_wrong_share() {
        // 1.4 % of 1,000 is 1.3 standard deviations off; of 100,000 it is 13.
        assert!(share("x", 14, 1000, 1.0, 0.1).holds);
        assert!(!share("x", 1400, 100_000, 1.0, 0.1).holds);
        assert!(!share("x", 0, 100_000, 1.0, 0.1).holds);
        let audit = Audit::new(1);
        audit.orders.store(10_000, Relaxed);
        audit.lines.store(120_000, Relaxed);
        assert!(!audit.lines_check().holds);
        assert_eq!(audit.checks().len(), 3, "one warehouse has no remote ones");
    }
}
