//! The five transactions (clauses 2.4 to 2.8): their statements, and running them.

use super::{DISTRICTS, ITEMS};
use crate::{Arg, Arg::Int, Arg::Text, Field, QueryKind, Session, SqlError, StatementId};
use record::Queries;

/// A customer, as a terminal's user names it.
#[derive(Clone, Debug)]
pub enum Customer {
    /// By number.
    Id(i64),
    /// By last name: the one in the middle of all who have it.
    Name(String),
}

/// A line of an order.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub item: i64,
    pub supplier: i64,
    pub quantity: i64,
}

/// New-Order's inputs.
#[derive(Clone, Debug)]
pub struct NewOrder {
    pub warehouse: i64,
    pub district: i64,
    pub customer: i64,
    pub lines: Vec<Line>,
}

/// Payment's inputs.
#[derive(Clone, Debug)]
pub struct Payment {
    pub warehouse: i64,
    pub district: i64,
    pub customer_warehouse: i64,
    pub customer_district: i64,
    pub customer: Customer,
    pub cents: i64,
}

/// An item that no warehouse has: the order is rolled back.
pub const UNUSED_ITEM: i64 = ITEMS + 1;

/// A connection with all statements.
pub struct Connection {
    session: Box<dyn Session>,
    all: Statements,
}

macro_rules! statements {
    ($($name:ident: $kind:ident $sql:expr;)*) => {
        struct Statements { $($name: StatementId,)* stock: Vec<StatementId> }
        impl Statements {
            fn prepare(session: &mut dyn Session) -> Result<Statements, SqlError> {
                let mut stock = Vec::new();
                for district in 1..=DISTRICTS {
                    stock.push(session.prepare(&format!(
                        "SELECT s_quantity, s_data, s_dist_{district:02} FROM stock \
                         WHERE s_i_id = ? AND s_w_id = ? FOR UPDATE"
                    ), QueryKind::Read)?);
                }
                Ok(Statements { $($name: session.prepare($sql, QueryKind::$kind)?,)* stock })
            }
        }
    };
}

statements! {
    begin: Other "BEGIN";
    commit: Other "COMMIT";
    rollback: Other "ROLLBACK";
    tax_of_warehouse: Read "SELECT w_tax FROM warehouse WHERE w_id = ?";
    next_order: Read "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ? \
        FOR UPDATE";
    advance_order: Write "UPDATE district SET d_next_o_id = d_next_o_id + 1 \
        WHERE d_w_id = ? AND d_id = ?";
    discount: Read "SELECT c_discount, c_last, c_credit FROM customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    insert_order: Write "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, \
        o_all_local) VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP, ?, ?)";
    insert_new_order: Write "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)";
    item: Read "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?";
    update_stock: Write "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, \
        s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? \
        WHERE s_i_id = ? AND s_w_id = ?";
    insert_line: Write "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, \
        ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    pay_warehouse: Write "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?";
    warehouse: Read "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse \
        WHERE w_id = ?";
    pay_district: Write "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?";
    district: Read "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
        WHERE d_w_id = ? AND d_id = ?";
    by_name: Read "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? \
        ORDER BY c_first";
    payer: Read "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, \
        c_state, c_zip, c_phone, c_credit_lim, c_discount, c_balance, c_data FROM customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE";
    pay: Write "UPDATE customer SET c_balance = c_balance - ?, \
        c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1 \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    pay_bad: Write "UPDATE customer SET c_balance = c_balance - ?, \
        c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1, c_data = ? \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    insert_history: Write "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, \
        h_date, h_amount, h_data) VALUES (?, ?, ?, ?, ?, CURRENT_TIMESTAMP, ?, ?)";
    balance: Read "SELECT c_balance, c_first, c_middle, c_last FROM customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    last_order: Read "SELECT o_id, o_carrier_id, CAST(o_entry_d AS CHAR(26)) FROM orders \
        WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1";
    lines: Read "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
        CAST(ol_delivery_d AS CHAR(26)) FROM order_line \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    oldest: Read "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
        ORDER BY no_o_id LIMIT 1 FOR UPDATE";
    take_oldest: Write "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?";
    customer_of: Read "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
    carry: Write "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
    deliver_lines: Write "UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    amount: Read "SELECT SUM(ol_amount) FROM order_line \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    charge: Write "UPDATE customer SET c_balance = c_balance + ?, \
        c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    order_reached: Read "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?";
    low_stock: Read "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock \
        ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ? AND s_quantity < ?";
}

impl Connection {
    /// Prepares all statements.
    pub fn new(mut session: Box<dyn Session>) -> Result<Connection, SqlError> {
        let all = Statements::prepare(session.as_mut())?;
        Ok(Connection { session, all })
    }

    /// Statements sent since the last call.
    pub fn take_queries(&mut self) -> Queries {
        self.session.take_queries()
    }

    /// Rolls back, uncounted.
    pub fn roll_back(&mut self) -> Result<(), SqlError> {
        self.session.roll_back()
    }

    fn row(&mut self, statement: StatementId, args: &[Arg<'_>]) -> Result<Vec<Field>, SqlError> {
        let mut rows = self.session.rows(statement, args)?;
        if rows.is_empty() {
            return Err(SqlError::Refused(
                "a row of TPC-C's is missing: the data are not what was loaded".to_owned(),
            ));
        }
        Ok(rows.swap_remove(0))
    }

    /// Runs New-Order; true when its unused item rolled it back.
    pub fn new_order(&mut self, order: &NewOrder) -> Result<bool, SqlError> {
        let NewOrder { warehouse, district, customer, .. } = *order;
        let place = [Int(warehouse), Int(district)];
        self.session.run(self.all.begin, &[])?;
        let warehouse_tax = self.row(self.all.tax_of_warehouse, &place[..1])?[0].int();
        let of_district = self.row(self.all.next_order, &place)?;
        let (district_tax, id) = (of_district[0].int(), of_district[1].int());
        self.session.run(self.all.advance_order, &place)?;
        let who = [place[0], place[1], Int(customer)];
        let discount = self.row(self.all.discount, &who)?[0].int();
        let all_local = order.lines.iter().all(|line| line.supplier == warehouse);
        let count = Int(order.lines.len() as i64);
        let columns =
            [Int(id), place[1], place[0], Int(customer), count, Int(i64::from(all_local))];
        self.session.run(self.all.insert_order, &columns)?;
        self.session.run(self.all.insert_new_order, &[Int(id), place[1], place[0]])?;
        let mut total = 0;
        for (number, line) in order.lines.iter().enumerate() {
            let found = self.session.rows(self.all.item, &[Int(line.item)])?;
            let Some(item) = found.first() else {
                self.session.run(self.all.rollback, &[])?;
                return Ok(true);
            };
            total += self.line(id, order, number, line, item[0].int())?;
        }
        // Clause 2.4.2.2: what the terminal would show.
        let _shown = total * (10_000 - discount) / 10_000 * (10_000 + warehouse_tax + district_tax);
        self.session.run(self.all.commit, &[])?;
        Ok(false)
    }

    /// One line of an order; its amount in cents.
    fn line(
        &mut self,
        id: i64,
        order: &NewOrder,
        number: usize,
        line: &Line,
        price: i64,
    ) -> Result<i64, SqlError> {
        let of_stock = [Int(line.item), Int(line.supplier)];
        let stock = self.row(self.all.stock[order.district as usize - 1], &of_stock)?;
        let left = stock[0].int() - line.quantity;
        let left = if left >= 10 { left } else { left + 91 };
        let remote = i64::from(line.supplier != order.warehouse);
        let columns = [Int(left), Int(line.quantity), Int(remote), of_stock[0], of_stock[1]];
        self.session.run(self.all.update_stock, &columns)?;
        let amount = price * line.quantity;
        let columns = [
            Int(id),
            Int(order.district),
            Int(order.warehouse),
            Int(number as i64 + 1),
            of_stock[0],
            of_stock[1],
            Int(line.quantity),
            Int(amount),
            Text(stock[2].text()),
        ];
        self.session.run(self.all.insert_line, &columns)?;
        Ok(amount)
    }

    /// A customer's number. Of several with one name it is the one in the middle, rounded up.
    fn customer(&mut self, place: [Arg<'_>; 2], who: &Customer) -> Result<i64, SqlError> {
        match who {
            Customer::Id(id) => Ok(*id),
            Customer::Name(name) => {
                let rows =
                    self.session.rows(self.all.by_name, &[place[0], place[1], Text(name)])?;
                let middle = rows.len().div_ceil(2).saturating_sub(1);
                rows.get(middle).map(|row| row[0].int()).ok_or_else(|| {
                    SqlError::Refused(format!(
                        "no customer is called {name}: the data are not what was loaded"
                    ))
                })
            }
        }
    }

    /// Runs Payment.
    pub fn payment(&mut self, payment: &Payment) -> Result<(), SqlError> {
        let cents = Int(payment.cents);
        let place = [Int(payment.warehouse), Int(payment.district)];
        self.session.run(self.all.begin, &[])?;
        self.session.run(self.all.pay_warehouse, &[cents, place[0]])?;
        let warehouse = self.row(self.all.warehouse, &place[..1])?;
        self.session.run(self.all.pay_district, &[cents, place[0], place[1]])?;
        let district = self.row(self.all.district, &place)?;
        let at = [Int(payment.customer_warehouse), Int(payment.customer_district)];
        let id = self.customer(at, &payment.customer)?;
        let who = [at[0], at[1], Int(id)];
        let customer = self.row(self.all.payer, &who)?;
        if customer[0].text() == "BC" {
            let mut data = format!(
                "{id} {} {} {} {} {}|{}",
                payment.customer_district,
                payment.customer_warehouse,
                payment.district,
                payment.warehouse,
                payment.cents,
                customer[13].text()
            );
            data.truncate(500);
            let columns = [cents, cents, Text(&data), who[0], who[1], who[2]];
            self.session.run(self.all.pay_bad, &columns)?;
        } else {
            self.session.run(self.all.pay, &[cents, cents, who[0], who[1], who[2]])?;
        }
        let seen = format!("{}    {}", warehouse[0].text(), district[0].text());
        let columns = [who[2], who[1], who[0], place[1], place[0], cents, Text(&seen)];
        self.session.run(self.all.insert_history, &columns)?;
        self.session.run(self.all.commit, &[]).map(drop)
    }

    /// Runs Order-Status.
    pub fn order_status(
        &mut self,
        warehouse: i64,
        district: i64,
        who: &Customer,
    ) -> Result<(), SqlError> {
        let place = [Int(warehouse), Int(district)];
        self.session.run(self.all.begin, &[])?;
        let id = self.customer(place, who)?;
        let who = [place[0], place[1], Int(id)];
        self.row(self.all.balance, &who)?;
        let order = self.row(self.all.last_order, &who)?[0].int();
        self.session.run(self.all.lines, &[place[0], place[1], Int(order)])?;
        self.session.run(self.all.commit, &[]).map(drop)
    }

    /// Runs Delivery of the oldest new order of each district that has one.
    pub fn delivery(&mut self, warehouse: i64, carrier: i64) -> Result<(), SqlError> {
        self.session.run(self.all.begin, &[])?;
        for district in 1..=DISTRICTS {
            let place = [Int(warehouse), Int(district)];
            let Some(id) = self.oldest(place)? else { continue };
            let order = [place[0], place[1], Int(id)];
            self.session.run(self.all.take_oldest, &order)?;
            let customer = self.row(self.all.customer_of, &order)?[0].int();
            let carried = [Int(carrier), order[0], order[1], order[2]];
            self.session.run(self.all.carry, &carried)?;
            self.session.run(self.all.deliver_lines, &order)?;
            let cents = self.row(self.all.amount, &order)?[0].int();
            let charged = [Int(cents), place[0], place[1], Int(customer)];
            self.session.run(self.all.charge, &charged)?;
        }
        self.session.run(self.all.commit, &[]).map(drop)
    }

    /// The oldest new order of a district. Under READ COMMITTED one that another delivery has just
    /// taken is waited for and then not there: asked again, the next is found.
    fn oldest(&mut self, place: [Arg<'_>; 2]) -> Result<Option<i64>, SqlError> {
        for _ in 0..3 {
            let rows = self.session.rows(self.all.oldest, &place)?;
            if let Some(row) = rows.first() {
                return Ok(Some(row[0].int()));
            }
        }
        Ok(None)
    }

    /// Runs Stock-Level over the last twenty orders.
    pub fn stock_level(
        &mut self,
        warehouse: i64,
        district: i64,
        threshold: i64,
    ) -> Result<(), SqlError> {
        let place = [Int(warehouse), Int(district)];
        self.session.run(self.all.begin, &[])?;
        let next = self.row(self.all.order_reached, &place)?[0].int();
        let columns = [place[0], place[1], Int(next), Int(next - 20), Int(threshold)];
        self.session.run(self.all.low_stock, &columns)?;
        self.session.run(self.all.commit, &[]).map(drop)
    }
}
