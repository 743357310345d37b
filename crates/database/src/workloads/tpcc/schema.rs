//! The nine tables (clause 1.3), and one of ours that keeps what the data were loaded with.

use super::random::Constants;
use crate::{Session, SqlError};
use workload::Dialect;

/// All tables, ours last.
pub const TABLES: [&str; 10] = [
    "warehouse",
    "district",
    "customer",
    "history",
    "new_order",
    "orders",
    "order_line",
    "item",
    "stock",
    "spindle_tpcc",
];

/// `TIME` stands for the dialect's type of a date with its time.
const CREATE: [&str; 10] = [
    "warehouse (w_id INT NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), \
     w_street_2 VARCHAR(20), w_city VARCHAR(20), w_state CHAR(2), w_zip CHAR(9), w_tax INT, \
     w_ytd BIGINT, PRIMARY KEY (w_id))",
    "district (d_id INT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10), d_street_1 VARCHAR(20), \
     d_street_2 VARCHAR(20), d_city VARCHAR(20), d_state CHAR(2), d_zip CHAR(9), d_tax INT, \
     d_ytd BIGINT, d_next_o_id INT, PRIMARY KEY (d_w_id, d_id))",
    "customer (c_id INT NOT NULL, c_d_id INT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16), \
     c_middle CHAR(2), c_last VARCHAR(16), c_street_1 VARCHAR(20), c_street_2 VARCHAR(20), \
     c_city VARCHAR(20), c_state CHAR(2), c_zip CHAR(9), c_phone CHAR(16), c_since TIME, \
     c_credit CHAR(2), c_credit_lim BIGINT, c_discount INT, c_balance BIGINT, \
     c_ytd_payment BIGINT, c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500), \
     PRIMARY KEY (c_w_id, c_d_id, c_id))",
    "history (h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT, h_date TIME, \
     h_amount INT, h_data VARCHAR(24))",
    "new_order (no_o_id INT NOT NULL, no_d_id INT NOT NULL, no_w_id INT NOT NULL, \
     PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
    "orders (o_id INT NOT NULL, o_d_id INT NOT NULL, o_w_id INT NOT NULL, o_c_id INT, \
     o_entry_d TIME, o_carrier_id INT, o_ol_cnt INT, o_all_local INT, \
     PRIMARY KEY (o_w_id, o_d_id, o_id))",
    "order_line (ol_o_id INT NOT NULL, ol_d_id INT NOT NULL, ol_w_id INT NOT NULL, \
     ol_number INT NOT NULL, ol_i_id INT, ol_supply_w_id INT, ol_delivery_d TIME, \
     ol_quantity INT, ol_amount INT, ol_dist_info CHAR(24), \
     PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
    "item (i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24), i_price INT, i_data VARCHAR(50), \
     PRIMARY KEY (i_id))",
    "stock (s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity INT, s_dist_01 CHAR(24), \
     s_dist_02 CHAR(24), s_dist_03 CHAR(24), s_dist_04 CHAR(24), s_dist_05 CHAR(24), \
     s_dist_06 CHAR(24), s_dist_07 CHAR(24), s_dist_08 CHAR(24), s_dist_09 CHAR(24), \
     s_dist_10 CHAR(24), s_ytd INT, s_order_cnt INT, s_remote_cnt INT, s_data VARCHAR(50), \
     PRIMARY KEY (s_w_id, s_i_id))",
    "spindle_tpcc (name VARCHAR(40) NOT NULL, value BIGINT, PRIMARY KEY (name))",
];

/// Makes the empty tables.
pub fn create(session: &mut dyn Session, seed: u64) -> Result<(), SqlError> {
    let (time, suffix) = match session.dialect() {
        Dialect::MySql => ("DATETIME", " ENGINE = innodb"),
        Dialect::PostgreSql => ("TIMESTAMP", ""),
    };
    for table in CREATE {
        let columns = table.replace(" TIME", &format!(" {time}"));
        session.script(&format!("CREATE TABLE {columns}{suffix}"))?;
    }
    let constant = Constants::of_load(seed);
    session.script(&format!("INSERT INTO spindle_tpcc VALUES ('C of last names', {constant})"))
}

/// The two secondary indexes, and statistics.
pub fn finish(session: &mut dyn Session) -> Result<(), SqlError> {
    session
        .script("CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first)")?;
    session.script("CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)")?;
    for table in TABLES {
        match session.dialect() {
            Dialect::MySql => session.ask(&format!("ANALYZE TABLE {table}")).map(drop)?,
            Dialect::PostgreSql => session.script(&format!("VACUUM ANALYZE {table}"))?,
        }
    }
    Ok(())
}

/// The constant for last names that the data were loaded with.
pub fn loaded_constant(session: &mut dyn Session) -> Result<u64, SqlError> {
    let rows = session.ask("SELECT value FROM spindle_tpcc WHERE name = 'C of last names'")?;
    let value = rows.first().and_then(|row| row.first()).and_then(Option::as_deref);
    value.and_then(|text| text.parse().ok()).ok_or_else(|| {
        SqlError::Refused(
            "table spindle_tpcc does not say what the data were loaded with: load them again"
                .to_owned(),
        )
    })
}
