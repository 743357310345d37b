//! One kind of server, named by SPINDLE_SERVER, from the program that SPINDLE_SERVER_PROGRAM names: what
//! tools/test-servers runs for servers that this host does not have.

use crate::{
    database::{
        Under, a_full_disk_voids_a_trial, compare, has_mariadb, has_postgresql, json,
        nothing_is_left, servers_of, signal, the_ready_plans_fit,
    },
    machine::{Place, has_loop_devices},
};
use skipped::{Need, skip};
use std::time::{Duration, Instant};

const PLACEBO: [&str; 2] = ["--placebo", "1"];

/// The server's kind and program; `None`, and a word about it, where none is named.
fn named() -> Option<(String, String)> {
    let words = (std::env::var("SPINDLE_SERVER"), std::env::var("SPINDLE_SERVER_PROGRAM"));
    if let (Ok(server), Ok(program)) = words {
        return Some((server, program));
    }
    skip(
        Need::Servers,
        "SPINDLE_SERVER and SPINDLE_SERVER_PROGRAM name one; see tools/test-servers",
    );
    None
}

#[test]
fn every_workload_runs_on_the_named_server() {
    let Some((server, program)) = named() else { return };
    let place = Place::new();
    let folder = place.scratch();
    for workload in [
        "oltp_read_write,tables=2,rows=2000",
        "oltp_read_only,tables=1,rows=2000",
        "oltp_write_only,tables=1,rows=2000",
        "oltp_point_select,tables=1,rows=2000",
        "oltp_insert,tables=1,rows=2000",
        "insert,prefill=1000",
        "tpcc,warehouses=1,checks=all",
    ] {
        let workload = format!("{workload},clients=4,server={server}");
        let words = ["--workload", &workload, "--server-program", &program];
        let ended = compare(&place, &folder, &[&words[..], &PLACEBO].concat()).expect(0);
        let summary = &json(&place)["analysis"]["groups"][0]["baseline"];
        assert_eq!(summary["valid"], 4, "{workload}: {}\n{}", ended.out, ended.err);
        let per_second = summary["throughput"]["mean"].as_f64().unwrap();
        println!("{server}: {per_second:8.0} transactions/s of {workload}");
        let counters = summary["counters"].as_object().unwrap();
        assert!(counters["server.cpus"].as_f64().unwrap() > 0.0, "{workload}");
        let fsyncs = format!("{server}.fsyncs/s");
        assert!(counters.contains_key(&fsyncs), "no {fsyncs} among {:?}", counters.keys());
        nothing_is_left(&place, &folder);
    }
}

/// An upgrade: the installed server in one session, the named one in another.
#[test]
fn the_named_server_is_compared_with_the_installed_one_by_sessions() {
    let Some((server, program)) = named() else { return };
    let installed = match server.as_str() {
        "mariadb" => has_mariadb(),
        "postgresql" => has_postgresql(),
        _ => false,
    };
    if !installed {
        skip(Need::Servers, "an installed server of the named one's kind");
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let workload = format!("oltp_point_select,tables=1,rows=2000,clients=2,server={server}");
    compare(&place, &folder, &[&["--workload", &workload][..], &PLACEBO].concat()).expect(0);
    let ended =
        place.run(&["resume", "last", "--as", "server", "--server-program", &program]).expect(0);
    let report = json(&place);
    let levels = report["together"]["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 2, "{}", ended.out);
    assert_ne!(levels[0]["name"], levels[1]["name"]);
    let cell = &report["together"]["groups"][0]["cells"][0];
    assert_eq!(cell["comparisons"][0]["verdict"], "not_settled", "one session of each");
    assert!(ended.out.contains("Verdict on the server"), "{}", ended.out);
    println!("{}", ended.out);
    nothing_is_left(&place, &folder);
}

#[test]
fn the_named_server_is_started_with_a_users_variables_and_refuses_wrong_ones() {
    let Some((server, program)) = named() else { return };
    let place = Place::new();
    let folder = place.scratch();
    let workload = format!("oltp_read_write,tables=1,rows=1000,server={server}");
    let words = ["--workload", &workload, "--server-program", &program];
    let (variable, misspelt, wrong) = match server.as_str() {
        "postgresql" => {
            ("wal_sync_method=fdatasync,fsync", "wal_sync_methd=fsync", "wal_sync_method=never")
        }
        _ => (
            "innodb_flush_log_at_trx_commit=1,2",
            "innodb_flush_log_at_trx_comit=1",
            "innodb_flush_method=never",
        ),
    };
    let ended = compare(&place, &folder, &[&words[..], &["--variable", variable]].concat());
    let ended = ended.expect(0);
    let group = &json(&place)["analysis"]["groups"][0];
    assert_eq!(group["cells"][0]["summary"]["valid"], 2, "{}\n{}", ended.out, ended.err);
    nothing_is_left(&place, &folder);
    let refused = |variable: &str| {
        let all = ["plan", folder.to_str().unwrap(), "--variable", variable];
        place.run(&[&all[..], &words].concat()).expect(2)
    };
    refused(misspelt).complains_of(&["did you mean"]);
    refused(wrong).complains_of(&["would not take"]);
    let other = if server == "mysql" { "mariadb" } else { "mysql" };
    let workload = format!("oltp_read_write,server={other}");
    let all = ["plan", folder.to_str().unwrap(), "--workload", &workload];
    let ended = place.run(&[&all[..], &["--server-program", &program]].concat()).expect(2);
    let complaint = match server.as_str() {
        "postgresql" => "prints no version",
        _ => "use server=",
    };
    ended.complains_of(&[complaint]);
}

#[test]
fn the_named_server_that_is_killed_voids_its_trial_and_leaves_nothing() {
    let Some((server, program)) = named() else { return };
    let place = Place::new();
    let folder = place.scratch();
    let workload = format!("oltp_read_write,tables=1,rows=1000,server={server}");
    let times = ["--rounds", "1", "--measure", "3s", "--warmup", "200ms"];
    let words = ["--workload", &workload, "--server-program", &program];
    let words = [&words[..], &PLACEBO, &times].concat();
    let mut under = Under::begin(&place, &folder, &words);
    let pid = under.server();
    // Once it answers and clients are at work.
    std::thread::sleep(Duration::from_millis(2500));
    signal(pid, rustix::process::Signal::KILL);
    let ended = under.end().expect(0);
    let text = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("1 trial not counted; void: the server ended (signal: 9"), "{text}");
    nothing_is_left(&place, &folder);

    // Spindle itself killed: the kernel ends the server, and undo removes the rest.
    let mut under = Under::begin(&place, &folder, &words);
    under.server();
    std::thread::sleep(Duration::from_millis(300));
    under.kill();
    let begun = Instant::now();
    while !servers_of(place.path()).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{server} outlives its maker");
        std::thread::sleep(Duration::from_millis(20));
    }
    place.run(&["undo"]).expect(0);
    nothing_is_left(&place, &folder);
}

#[test]
fn a_full_disk_voids_a_trial_of_the_named_server() {
    let Some((server, program)) = named() else { return };
    if has_loop_devices() {
        a_full_disk_voids_a_trial(&server, &["--server-program", &program]);
    }
}

#[test]
fn the_ready_plans_of_the_named_server_fit_a_directory_and_an_emulated_disk() {
    let Some((server, program)) = named() else { return };
    if has_loop_devices() {
        let place = Place::new();
        let folder = place.scratch();
        the_ready_plans_fit(&place, &folder, &server, &["--server-program", &program]);
    }
}

#[test]
fn every_preset_runs_on_the_named_server() {
    let Some((server, program)) = named() else { return };
    let place = Place::new();
    let folder = place.scratch();
    let workload = format!("oltp_read_write,tables=1,rows=1000,clients=2,server={server}");
    let brief = ["--rounds", "1", "--measure", "500ms", "--warmup", "100ms"];
    for preset in workload::Preset::ALL {
        let preset = preset.to_string();
        let words = ["compare", folder.to_str().unwrap(), "--workload", &workload];
        let more = ["--server-program", &program, "--preset", &preset];
        let ended = place.run(&[&words[..], &more, &brief].concat());
        if ended.code == Some(2) {
            // MariaDB's doublewrite has no other level that is safe without atomic writes.
            assert_eq!((server.as_str(), preset.as_str()), ("mariadb", "doublewrite"));
            println!("{server} {preset}: {}", ended.err);
            continue;
        }
        let ended = ended.expect(0);
        let group = &json(&place)["analysis"]["groups"][0];
        assert_eq!(group["baseline"]["valid"], 2, "{preset}: {}\n{}", ended.out, ended.err);
        let cells = group["cells"].as_array().unwrap();
        for cell in cells {
            assert_eq!(cell["summary"]["valid"], 1, "{preset}: {}\n{}", ended.out, ended.err);
        }
        let text = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let switched = text.contains("switched inside one running server");
        println!(
            "{server} {preset}: {} cells, switched in one server: {switched}",
            cells.len() + 1
        );
        nothing_is_left(&place, &folder);
    }
}
