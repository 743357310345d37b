//! The initial data (clause 4.3.3).

use super::{
    CUSTOMERS, DISTRICTS, ITEMS,
    random::{Constants, between, last_name, nurand},
};
use crate::{
    RowWriter, Session, SqlError,
    workloads::Part,
    workloads::text::{digits, letters},
};
use random::Stream;

/// Items and stock of one part.
const PART: i64 = 25_000;

/// What can be loaded side by side: items, each warehouse's stock, each district.
pub fn parts(warehouses: u32, seed: u64) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lane = 0;
    let mut part = |rows: i64, load: Box<LoadRows>| {
        lane += 1;
        parts.push(Part {
            rows: rows as u64,
            lane,
            load: Box::new(move |session, done| load(&mut Loader { session, done })),
        });
    };
    for first in (1..=ITEMS).step_by(PART as usize) {
        part(PART, Box::new(move |loader| loader.items(first, seed)));
    }
    for warehouse in 1..=i64::from(warehouses) {
        part(1, Box::new(move |loader| loader.warehouse(warehouse, seed)));
        for first in (1..=ITEMS).step_by(PART as usize) {
            part(PART, Box::new(move |loader| loader.stock(warehouse, first, seed)));
        }
        for district in 1..=DISTRICTS {
            // Customers, history, orders, 900 new orders, about ten lines an order.
            let rows = CUSTOMERS * 13 + 900;
            part(rows, Box::new(move |loader| loader.district(warehouse, district, seed)));
        }
    }
    parts
}

type LoadRows = dyn FnOnce(&mut Loader<'_>) -> Result<(), SqlError> + Send;

struct Loader<'a> {
    session: &'a mut dyn Session,
    done: &'a mut dyn FnMut(u64) -> bool,
}

/// One in ten rows has this within its data.
const ORIGINAL: &str = "ORIGINAL";

fn data(stream: &mut Stream, into: &mut String) {
    letters(stream, 26, 50, into);
    if stream.below(10) == 0 {
        let at = stream.below((into.len() - ORIGINAL.len() + 1) as u64) as usize;
        into.replace_range(at..at + ORIGINAL.len(), ORIGINAL);
    }
}

/// Name or first lines, city, state and zip code.
fn address(stream: &mut Stream, row: &mut RowWriter, text: &mut String) {
    for _ in 0..3 {
        letters(stream, 10, 20, text);
        row.text(text);
    }
    letters(stream, 2, 2, text);
    row.text(text);
    digits(stream, 4, text);
    text.push_str("11111");
    row.text(text);
}

impl Loader<'_> {
    fn fill(
        &mut self,
        table: &str,
        columns: &str,
        rows: impl Iterator<Item = i64>,
        mut write: impl FnMut(i64, &mut RowWriter),
    ) -> Result<(), SqlError> {
        let mut rows = rows;
        let done = &mut *self.done;
        self.session.fill(table, columns, &mut |row| match rows.next() {
            Some(key) if done(1) => {
                row.begin();
                write(key, row);
                row.end();
                true
            }
            _ => false,
        })
    }

    fn now(&mut self) -> Result<String, SqlError> {
        let rows = self.session.ask("SELECT CAST(CURRENT_TIMESTAMP AS CHAR(19))")?;
        let text = rows.into_iter().flatten().flatten().next().unwrap_or_default();
        Ok(text)
    }

    fn items(&mut self, first: i64, seed: u64) -> Result<(), SqlError> {
        let mut stream = Stream::new(seed, &format!("items from {first}"));
        let mut text = String::new();
        let columns = "i_id, i_im_id, i_name, i_price, i_data";
        self.fill("item", columns, first..first + PART, |id, row| {
            row.int(id);
            row.int(between(&mut stream, 1, 10_000));
            letters(&mut stream, 14, 24, &mut text);
            row.text(&text);
            row.int(between(&mut stream, 100, 10_000));
            data(&mut stream, &mut text);
            row.text(&text);
        })
    }

    fn warehouse(&mut self, warehouse: i64, seed: u64) -> Result<(), SqlError> {
        let mut stream = Stream::new(seed, &format!("warehouse {warehouse}"));
        let mut text = String::new();
        let columns = "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd";
        self.fill("warehouse", columns, warehouse..=warehouse, |id, row| {
            row.int(id);
            letters(&mut stream, 6, 10, &mut text);
            row.text(&text);
            address(&mut stream, row, &mut text);
            row.int(between(&mut stream, 0, 2000));
            row.int(30_000_000);
        })
    }

    fn stock(&mut self, warehouse: i64, first: i64, seed: u64) -> Result<(), SqlError> {
        let mut stream = Stream::new(seed, &format!("stock of {warehouse} from {first}"));
        let mut text = String::new();
        let columns = "s_i_id, s_w_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, \
                       s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10, s_ytd, \
                       s_order_cnt, s_remote_cnt, s_data";
        self.fill("stock", columns, first..first + PART, |id, row| {
            row.int(id);
            row.int(warehouse);
            row.int(between(&mut stream, 10, 100));
            for _ in 0..DISTRICTS {
                letters(&mut stream, 24, 24, &mut text);
                row.text(&text);
            }
            for _ in 0..3 {
                row.int(0);
            }
            data(&mut stream, &mut text);
            row.text(&text);
        })
    }

    fn district(&mut self, warehouse: i64, district: i64, seed: u64) -> Result<(), SqlError> {
        let mut stream = Stream::new(seed, &format!("district {district} of {warehouse}"));
        let mut text = String::new();
        let columns = "d_id, d_w_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, \
                       d_tax, d_ytd, d_next_o_id";
        self.fill("district", columns, district..=district, |id, row| {
            row.int(id);
            row.int(warehouse);
            letters(&mut stream, 6, 10, &mut text);
            row.text(&text);
            address(&mut stream, row, &mut text);
            row.int(between(&mut stream, 0, 2000));
            row.int(3_000_000);
            row.int(CUSTOMERS + 1);
        })?;
        let now = self.now()?;
        let place = (warehouse, district);
        self.customers(place, &now, Constants::of_load(seed), &mut stream)?;
        self.history(place, &now, &mut stream)?;
        self.orders(place, &now, &mut stream)
    }

    fn customers(
        &mut self,
        (warehouse, district): (i64, i64),
        now: &str,
        constant: u64,
        stream: &mut Stream,
    ) -> Result<(), SqlError> {
        let mut text = String::new();
        let columns = "c_id, c_d_id, c_w_id, c_first, c_middle, c_last, c_street_1, c_street_2, \
                       c_city, c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim, \
                       c_discount, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data";
        self.fill("customer", columns, 1..=CUSTOMERS, |id, row| {
            row.int(id);
            row.int(district);
            row.int(warehouse);
            letters(stream, 8, 16, &mut text);
            row.text(&text);
            row.text("OE");
            // Each of the first thousand has a name of its own, so that every name is somebody's.
            let name = match id {
                1..=1000 => id as u64 - 1,
                _ => nurand(stream, 255, constant, 0, 999),
            };
            last_name(name, &mut text);
            row.text(&text);
            address(stream, row, &mut text);
            digits(stream, 16, &mut text);
            row.text(&text);
            row.text(now);
            row.text(if stream.below(10) == 0 { "BC" } else { "GC" });
            row.int(5_000_000);
            row.int(between(stream, 0, 5000));
            row.int(-1000);
            row.int(1000);
            row.int(1);
            row.int(0);
            letters(stream, 300, 500, &mut text);
            row.text(&text);
        })
    }

    fn history(
        &mut self,
        (warehouse, district): (i64, i64),
        now: &str,
        stream: &mut Stream,
    ) -> Result<(), SqlError> {
        let mut text = String::new();
        let columns = "h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data";
        self.fill("history", columns, 1..=CUSTOMERS, |id, row| {
            for value in [id, district, warehouse, district, warehouse] {
                row.int(value);
            }
            row.text(now);
            row.int(1000);
            letters(stream, 12, 24, &mut text);
            row.text(&text);
        })
    }

    fn orders(
        &mut self,
        (warehouse, district): (i64, i64),
        now: &str,
        stream: &mut Stream,
    ) -> Result<(), SqlError> {
        /// The first order that is not delivered.
        const FIRST_NEW: i64 = 2101;
        let mut customers: Vec<i64> = (1..=CUSTOMERS).collect();
        stream.shuffle(&mut customers);
        let lines: Vec<i64> = customers.iter().map(|_| between(stream, 5, 15)).collect();
        let columns =
            "o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local";
        self.fill("orders", columns, 1..=CUSTOMERS, |id, row| {
            for value in [id, district, warehouse, customers[id as usize - 1]] {
                row.int(value);
            }
            row.text(now);
            match id < FIRST_NEW {
                true => row.int(between(stream, 1, 10)),
                false => row.null(),
            }
            row.int(lines[id as usize - 1]);
            row.int(1);
        })?;
        self.fill("new_order", "no_o_id, no_d_id, no_w_id", FIRST_NEW..=CUSTOMERS, |id, row| {
            for value in [id, district, warehouse] {
                row.int(value);
            }
        })?;
        let mut text = String::new();
        let columns = "ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, \
                       ol_delivery_d, ol_quantity, ol_amount, ol_dist_info";
        // An order's number and a line's, in one.
        let all = (1..=CUSTOMERS)
            .flat_map(|id| (1..=lines[id as usize - 1]).map(move |number| id * 100 + number));
        self.fill("order_line", columns, all, |both, row| {
            let (id, number) = (both / 100, both % 100);
            for value in [id, district, warehouse, number, between(stream, 1, ITEMS), warehouse] {
                row.int(value);
            }
            match id < FIRST_NEW {
                true => row.text(now),
                false => row.null(),
            }
            row.int(5);
            row.int(if id < FIRST_NEW { 0 } else { between(stream, 1, 999_999) });
            letters(stream, 24, 24, &mut text);
            row.text(&text);
        })
    }
}
