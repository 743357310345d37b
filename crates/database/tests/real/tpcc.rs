//! TPC-C's conditions: they hold after a run, and each notices what violates it.

use crate::server::Private;
use database::check_conditions;
use units::Nanos;

/// A condition's number, and what violates it.
const PLANTED: [(u32, &str); 11] = [
    (1, "UPDATE warehouse SET w_ytd = w_ytd + 1"),
    (2, "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3"),
    (3, "DELETE FROM new_order WHERE no_d_id = 4 AND no_o_id = 2900"),
    (4, "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 1 AND o_id = 5"),
    (5, "UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 1 AND o_id = 7"),
    (6, "UPDATE orders SET o_ol_cnt = o_ol_cnt + o_id - 12 WHERE o_d_id = 2 AND o_id IN (11, 13)"),
    (
        7,
        "UPDATE order_line SET ol_delivery_d = NULL
         WHERE ol_d_id = 1 AND ol_o_id = 9 AND ol_number = 1",
    ),
    (8, "UPDATE history SET h_amount = h_amount + 1 WHERE h_d_id = 2 AND h_c_id = 3"),
    (9, "UPDATE district SET d_ytd = d_ytd + 2 * d_id - 11 WHERE d_id IN (5, 6)"),
    (
        10,
        "UPDATE customer SET c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1
         WHERE c_d_id = 6 AND c_id = 77",
    ),
    (12, "UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 6 AND c_id = 77"),
];

fn conditions_on(server: &str) {
    let Some(server) = Private::start("conditions", server) else { return };
    let begun = std::time::Instant::now();
    server.load("tpcc,warehouses=1");
    println!("one warehouse loaded in {:?}", begun.elapsed());
    let measured = server.run("tpcc,warehouses=1,clients=4", Nanos::from_secs(4)).unwrap();
    let transactions = measured.transactions.as_ref().unwrap();
    assert!(transactions.types.contains_key("new_order"), "{transactions:?}");
    assert!(transactions.types.contains_key("delivery"), "{:?}", transactions.types.keys());
    for check in &transactions.checks {
        assert!(check.holds, "{check:?}");
    }
    keying_takes_its_time(&server);
    let mut session = server.session();
    let failing = |session: &mut dyn database::Session| -> Vec<String> {
        let checks = check_conditions(session, true).unwrap();
        assert_eq!(checks.len(), 11);
        checks.into_iter().filter(|check| !check.holds).map(|check| check.name).collect()
    };
    assert!(failing(session.as_mut()).is_empty());
    for (number, planted) in PLANTED {
        session.script("BEGIN").unwrap();
        session.script(planted).unwrap();
        let found = failing(session.as_mut());
        session.script("ROLLBACK").unwrap();
        let name = format!("condition {number}");
        assert!(found.contains(&name), "{planted}: {found:?}");
        if matches!(number, 6 | 7 | 9 | 10 | 12) {
            assert_eq!(found, [name], "only it is violated");
        }
    }
    assert!(failing(session.as_mut()).is_empty());
}

/// Terminals key before each transaction: 2 s at the least, 3 s for a Payment, 18 s for a New-Order.
fn keying_takes_its_time(server: &Private) {
    let measured = server.run("tpcc,warehouses=1,clients=40,think=on", Nanos::from_millis(4500));
    let measured = measured.unwrap();
    let early: u64 =
        measured.seconds.iter().filter(|second| second.at <= 2.0).map(|s| s.transactions).sum();
    assert_eq!(early, 0, "nobody is done before having keyed");
    let types = measured.transactions.unwrap().types;
    assert!(!types.contains_key("new_order"), "{:?}", types.keys());
    // 10 of 23 begin with a Payment, and none of them ends a second one: 17.4, within 4 · 3.1.
    let payments = types["payment"].transactions;
    assert!((5..=29).contains(&payments), "{payments}");
    assert!(measured.generator.busiest.0 < 500, "nobody spins while keying");
}

#[test]
fn conditions_hold_and_each_notices_its_violation_on_mariadb() {
    conditions_on("mariadb");
}

#[test]
fn conditions_hold_and_each_notices_its_violation_on_postgresql() {
    conditions_on("postgresql");
}

#[test]
fn conditions_hold_and_each_notices_its_violation_on_mysql() {
    conditions_on("mysql");
}
