//! Which pages each kind of transaction touches.

use super::rows::draw;
use random::Stream;
use workload::{DatabaseFamily, DatabaseJob, DatabaseKind};

/// InnoDB's page.
pub(crate) const PAGE: u64 = 16_384;
/// Bytes that rows fill in a page that was loaded in key order.
const FILLED: u64 = PAGE * 15 / 16;
/// A row of sysbench's table in the clustered index, its head included.
const OLTP_ROW: u64 = 215;
/// An entry of an index on an integer.
const ENTRY: u64 = 24;
/// Bytes of redo log for a changed row: an assumption.
const REDO_A_ROW: u64 = 400;

/// A page that a transaction needs; it may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub page: u32,
    pub writes: bool,
}

/// Pages one after the other: a table or an index.
#[derive(Clone, Copy, Debug)]
struct Area {
    first: u32,
    pages: u32,
}

impl Area {
    /// The page at a share (0 to 1) of the area.
    fn at(&self, share: f64) -> u32 {
        self.first + ((share * f64::from(self.pages)) as u32).min(self.pages - 1)
    }
    fn anywhere(&self, stream: &mut Stream) -> u32 {
        self.first + stream.below(u64::from(self.pages)) as u32
    }
}

/// The data, and how transactions go over it. Blocks above the leaves are in memory: there are a
/// hundred times fewer of them.
#[derive(Debug)]
pub(crate) struct Work {
    job: DatabaseJob,
    /// oltp: clustered index and secondary index; tpcc: stock, customers, orders and lines, items;
    /// insert: the table and its indexes.
    areas: Vec<Area>,
    pub pages: u32,
}

impl Work {
    pub fn new(job: &DatabaseJob) -> Self {
        let bytes: Vec<u64> = match job.kind.family() {
            DatabaseFamily::Tpcc => {
                // A warehouse: 100,000 stock rows of 306 bytes, 30,000 customers of 655, orders with
                // about 300,000 lines of 54 and 30,000 rows of history; 100,000 items of 82 in all.
                let each = u64::from(job.warehouses);
                vec![30_600_000 * each, 19_650_000 * each, 18_000_000 * each, 8_200_000]
            }
            DatabaseFamily::Insert => {
                let rows = job.prefill.max(100_000);
                let index = (rows * ENTRY) as f64 / std::f64::consts::LN_2;
                vec![rows * 70, index as u64, index as u64, index as u64]
            }
            DatabaseFamily::Oltp => {
                let rows = u64::from(job.tables) * job.rows;
                vec![rows * OLTP_ROW, rows * ENTRY]
            }
        };
        let mut areas = Vec::new();
        let mut first = 0u32;
        for bytes in bytes {
            let pages = bytes.div_ceil(FILLED).clamp(1, u64::from(u32::MAX / 8)) as u32;
            areas.push(Area { first, pages });
            first += pages;
        }
        Work { job: job.clone(), areas, pages: first }
    }

    /// A transaction: its pages in the order in which they are needed, and its redo log in bytes.
    pub fn transaction(&self, stream: &mut Stream, accesses: &mut Vec<Access>) -> u64 {
        accesses.clear();
        let mut list = List { accesses, redo: 0 };
        match self.job.kind {
            DatabaseKind::OltpReadOnly => self.reads(stream, &mut list),
            DatabaseKind::OltpWriteOnly => self.writes(stream, &mut list),
            DatabaseKind::OltpReadWrite => {
                self.reads(stream, &mut list);
                self.writes(stream, &mut list);
            }
            DatabaseKind::OltpPointSelect => list.read(self.row(stream)),
            DatabaseKind::OltpInsert => {
                list.write(self.areas[0].at(1.0));
                list.write(self.areas[1].anywhere(stream));
            }
            DatabaseKind::Tpcc => self.tpcc(stream, &mut list),
            DatabaseKind::Insert => {
                list.write(self.areas[0].at(1.0));
                for index in 1..4 {
                    list.write(self.areas[index].anywhere(stream));
                }
            }
        }
        list.redo
    }

    /// The clustered index's page of a drawn row: any table's, they are all alike.
    fn row(&self, stream: &mut Stream) -> u32 {
        let table = stream.below(u64::from(self.job.tables)) as f64;
        let row = draw(self.job.distribution, self.job.rows, stream) as f64;
        let share = (table + row / self.job.rows as f64) / f64::from(self.job.tables);
        self.areas[0].at(share)
    }

    fn reads(&self, stream: &mut Stream, list: &mut List) {
        let s = &self.job.statements;
        for _ in 0..s.point_selects {
            list.read(self.row(stream));
        }
        let ranges = s.simple_ranges + s.sum_ranges + s.order_ranges + s.distinct_ranges;
        let pages = (u64::from(s.range_size) * OLTP_ROW).div_ceil(FILLED) as u32;
        for _ in 0..ranges {
            let first = self.row(stream);
            let last = self.areas[0].at(1.0);
            (0..=pages).for_each(|next| list.read((first + next).min(last)));
        }
    }

    fn writes(&self, stream: &mut Stream, list: &mut List) {
        let s = &self.job.statements;
        for _ in 0..s.index_updates {
            list.write(self.row(stream));
            // The new entry lies next to the old one, on the same page.
            let entry = self.areas[1].anywhere(stream);
            list.write(entry);
        }
        for _ in 0..s.non_index_updates {
            list.write(self.row(stream));
        }
        for _ in 0..s.delete_inserts {
            let row = self.row(stream);
            list.write(row);
            list.write(self.areas[1].anywhere(stream));
            list.write(row);
            list.write(self.areas[1].anywhere(stream));
        }
    }

    /// One of the five, by the deck of 23.
    fn tpcc(&self, stream: &mut Stream, list: &mut List) {
        let [stock, customers, orders, items] = [0, 1, 2, 3].map(|area| self.areas[area]);
        let warehouses = f64::from(self.job.warehouses);
        let home = stream.below(u64::from(self.job.warehouses)) as f64;
        let within = |area: Area, share: f64| area.at((home + share) / warehouses);
        // The newest orders of a district lie at the end of its part.
        let district = stream.below(10) as f64;
        let newest = within(orders, (district + 0.99) / 10.0);
        match stream.below(23) {
            0..=9 => {
                list.read(within(customers, stream.unit()));
                let lines = 5 + stream.below(11);
                for _ in 0..lines {
                    list.read(items.anywhere(stream));
                    list.write(within(stock, stream.unit()));
                }
                list.write(newest);
                list.redo += lines * REDO_A_ROW;
            }
            10..=19 => {
                let remote = stream.below(100) < 15;
                let customer = match remote {
                    true => customers.anywhere(stream),
                    false => within(customers, stream.unit()),
                };
                // By last name, three rows are looked at on average.
                if stream.below(100) < 60 {
                    list.read(within(customers, stream.unit()));
                    list.read(within(customers, stream.unit()));
                }
                list.write(customer);
                list.write(newest);
            }
            20 => {
                list.read(within(customers, stream.unit()));
                list.read(within(orders, stream.unit()));
            }
            21 => {
                for district in 0..10 {
                    list.write(within(orders, (f64::from(district) + 0.9) / 10.0));
                    list.write(within(customers, stream.unit()));
                    list.redo += 10 * REDO_A_ROW;
                }
            }
            _ => {
                list.read(newest);
                (0..200).for_each(|_| list.read(within(stock, stream.unit())));
            }
        }
    }
}

/// What a transaction asks so far.
struct List<'a> {
    accesses: &'a mut Vec<Access>,
    redo: u64,
}

impl List<'_> {
    fn read(&mut self, page: u32) {
        self.accesses.push(Access { page, writes: false });
    }
    fn write(&mut self, page: u32) {
        self.accesses.push(Access { page, writes: true });
        self.redo += REDO_A_ROW;
    }
}
