//! The consistency conditions (clause 3.3.2), each as a query that counts what violates it.
//!
//! The eleventh speaks of the data as loaded, and no run keeps it.

use crate::{Session, SqlError};
use record::Check;

/// Those that are checked after each trial; all of them on demand.
const CHECKED_BY_DEFAULT: usize = 4;

/// Number, and the query for how many rows violate it.
const CONDITIONS: [(u32, &str); 11] = [
    (
        1,
        "SELECT COUNT(*) FROM warehouse WHERE w_ytd <>
         (SELECT SUM(d_ytd) FROM district WHERE d_w_id = w_id)",
    ),
    (
        2,
        "SELECT COUNT(*) FROM district
         LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS o_last FROM orders GROUP BY o_w_id, o_d_id) o
         ON o_w_id = d_w_id AND o_d_id = d_id
         LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS no_last FROM new_order
                    GROUP BY no_w_id, no_d_id) n ON no_w_id = d_w_id AND no_d_id = d_id
         WHERE d_next_o_id - 1 <> COALESCE(o_last, 0)
         OR d_next_o_id - 1 <> COALESCE(no_last, d_next_o_id - 1)",
    ),
    (
        3,
        "SELECT COUNT(*) FROM (SELECT MAX(no_o_id) - MIN(no_o_id) + 1 AS span, COUNT(*) AS count
                               FROM new_order GROUP BY no_w_id, no_d_id) n WHERE span <> count",
    ),
    (
        4,
        "SELECT COUNT(*) FROM
         (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS ordered FROM orders GROUP BY o_w_id, o_d_id) o
         LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS count FROM order_line
                    GROUP BY ol_w_id, ol_d_id) l ON ol_w_id = o_w_id AND ol_d_id = o_d_id
         WHERE ordered <> COALESCE(count, 0)",
    ),
    (
        5,
        "SELECT (SELECT COUNT(*) FROM orders LEFT JOIN new_order
                 ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
                 WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL))
              + (SELECT COUNT(*) FROM new_order LEFT JOIN orders
                 ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id WHERE o_id IS NULL)",
    ),
    (
        6,
        "SELECT COUNT(*) FROM orders
         LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS count FROM order_line
                    GROUP BY ol_w_id, ol_d_id, ol_o_id) l
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
         WHERE o_ol_cnt <> COALESCE(count, 0)",
    ),
    (
        7,
        "SELECT COUNT(*) FROM order_line JOIN orders
         ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
         WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    ),
    (
        8,
        "SELECT COUNT(*) FROM warehouse
         LEFT JOIN (SELECT h_w_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id) h
         ON h_w_id = w_id WHERE w_ytd <> COALESCE(paid, 0)",
    ),
    (
        9,
        "SELECT COUNT(*) FROM district
         LEFT JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS paid FROM history
                    GROUP BY h_w_id, h_d_id) h ON h_w_id = d_w_id AND h_d_id = d_id
         WHERE d_ytd <> COALESCE(paid, 0)",
    ),
    (
        10,
        "SELECT COUNT(*) FROM customer
         LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS owed FROM orders
                    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                    WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o
         ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
         LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history
                    GROUP BY h_c_w_id, h_c_d_id, h_c_id) h
         ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
         WHERE c_balance <> COALESCE(owed, 0) - COALESCE(paid, 0)",
    ),
    (
        12,
        "SELECT COUNT(*) FROM customer
         LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS owed FROM orders
                    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                    WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o
         ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
         WHERE c_balance + c_ytd_payment <> COALESCE(owed, 0)",
    ),
];

/// Checks the first four, or all.
pub fn check(session: &mut dyn Session, all: bool) -> Result<Vec<Check>, SqlError> {
    let wanted = if all { CONDITIONS.len() } else { CHECKED_BY_DEFAULT };
    let mut checks = Vec::new();
    for (number, query) in CONDITIONS.iter().take(wanted) {
        let rows = session.ask(query)?;
        let first = rows.into_iter().flatten().flatten().next();
        let violations: u64 = first.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
        checks.push(Check {
            name: format!("condition {number}"),
            holds: violations == 0,
            found: match violations {
                u64::MAX => "the server gave no count".to_owned(),
                _ => format!("{violations} rows violate it"),
            },
        });
    }
    Ok(checks)
}
