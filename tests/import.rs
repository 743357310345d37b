//! `spindle import`: what other programs printed becomes a run that says what it can show.

use crate::machine::{Ended, Place};

/// Outputs of pgbench under two settings, one run each.
pub const TRANSCRIPT: &str = "\
[root@db1 ~]# echo noop > /sys/block/sda/queue/scheduler
[root@db1 ~]# pgbench -c 8 -T 60 bench
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 100
query mode: simple
number of clients: 8
number of threads: 1
duration: 60 s
number of transactions actually processed: 39051
latency average = 12.293 ms
tps = 650.597861 (without initial connection time)
[root@db1 ~]# echo cfq > /sys/block/sda/queue/scheduler
[root@db1 ~]# pgbench -c 8 -T 60 bench
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 100
query mode: simple
number of clients: 8
number of threads: 1
duration: 60 s
number of transactions actually processed: 38271
latency average = 12.543 ms
tps = 637.597861 (without initial connection time)
";

fn write(place: &Place, name: &str, text: &str) -> String {
    let path = place.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

/// Without line ends, which depend on the length of a path.
fn flat(ended: &Ended) -> String {
    ended.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_transcript_is_a_run_that_every_report_reads() {
    let place = Place::new();
    let file = write(&place, "post.txt", TRANSCRIPT);
    let imported = place.run(&["import", &file]).expect(0);
    let text = flat(&imported);
    for wanted in [
        "* noop 650.60",
        "cfq 637.60",
        "-2.0 %",
        "Verdict: One run each: nothing can be said of 2 %",
        "there is a mean alone",
    ] {
        assert!(text.contains(wanted), "no '{wanted}' in:\n{}", imported.out);
    }
    // `report` reads the same from the file.
    let again = place.run(&["report"]).expect(0);
    assert_eq!(again.out, imported.out);
    let markdown = place.run(&["report", "--markdown"]).expect(0);
    assert!(markdown.out.contains("| * noop | 650.60 |"), "{}", markdown.out);
    let json = place.run(&["report", "--json"]).expect(0);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["environment"]["world"], "imported");
    assert!(json["advice"][0]["text"].as_str().unwrap().starts_with("One run each"));
    let csv = place.run(&["report", "--csv"]).expect(0);
    let mut rows = csv::Reader::from_reader(csv.out.as_bytes());
    let place_of = |name: &str, rows: &csv::StringRecord| rows.iter().position(|it| it == name);
    let header = rows.headers().unwrap().clone();
    let column = place_of("iops", &header).unwrap();
    let rates: Vec<String> = rows.records().map(|row| row.unwrap()[column].to_owned()).collect();
    assert_eq!(rates, ["650.597861", "637.597861"]);
    place.run(&["runs"]).expect(0);
    place.run(&["resume", "last"]).expect(2).complains_of(&["is complete"]);
}

#[test]
fn cells_are_named_by_the_user_where_no_text_does() {
    let place = Place::new();
    let output: String =
        TRANSCRIPT.lines().skip(2).take(9).map(|line| format!("{line}\n")).collect();
    let (a, b) = (write(&place, "a.txt", &output), write(&place, "b=c.txt", &output));
    let (first, second) = (format!("nr_requests:64={a}"), format!("nr_requests:128={b}"));
    let imported = place.run(&["import", "--cell", &first, "--cell", &second]).expect(0);
    let text = flat(&imported);
    assert!(text.contains("queue 64") && text.contains("queue 128"), "{}", imported.out);
    let wrong = format!("nr_requests:many={a}");
    place.run(&["import", "--cell", &wrong]).expect(2).complains_of(&["many", "nr_requests"]);
}

#[test]
fn a_plan_that_measures_the_same_is_one_that_compare_takes() {
    let place = Place::new();
    let text = "\
# echo noop > /sys/block/sda/queue/scheduler
# sysbench fileio --file-total-size=64M --file-block-size=16K --threads=4 --file-test-mode=rndwr --file-extra-flags=direct run
File operations:
    reads/s:                      0.00
    writes/s:                     1000.00
    fsyncs/s:                     1.00
General statistics:
    total time:                          180.0s
    total number of events:              180000
# echo deadline > /sys/block/sda/queue/scheduler
# sysbench fileio --file-total-size=64M --file-block-size=16K --threads=4 --file-test-mode=rndwr --file-extra-flags=direct run
File operations:
    reads/s:                      0.00
    writes/s:                     1100.00
    fsyncs/s:                     1.00
General statistics:
    total time:                          180.0s
    total number of events:              198000
";
    let file = write(&place, "post.txt", text);
    let plan = place.path().join("plan.toml");
    let plan = plan.to_str().unwrap();
    let words = ["import", &file, "--plan", plan, "--target", "simulated:hdd-15k"];
    place.run(&words).expect(0).complains_of(&["spindle compare --plan"]);
    let written = std::fs::read_to_string(plan).unwrap();
    assert!(written.contains("mq-deadline took its place"), "{written}");
    let shown = place.run(&["plan", "--plan", plan]).expect(0);
    for wanted in ["none", "mq-deadline", "randwrite", "16 KiB", "4 clients", "8 rounds"] {
        assert!(shown.out.contains(wanted), "no '{wanted}' in:\n{}\n{written}", shown.out);
    }
    // It is never overwritten.
    place.run(&words).expect(1).complains_of(&["plan.toml"]);
}

/// What a fio job was asked for is in the plan, or is named as left out.
#[test]
fn a_plan_of_a_fio_job_has_its_syncs_and_its_rate() {
    let place = Place::new();
    let job = |options: &str, iops: u32| {
        format!(
            "{{\"fio version\": \"fio-3.41\", \"global options\": {{\"ioengine\": \"psync\", \"direct\": \"1\"}}, \
             \"jobs\": [{{\"jobname\": \"log\", \"groupid\": 0, \"error\": 0, \"job options\": \
             {{\"rw\": \"randwrite\", \"bs\": \"4k\", \"numjobs\": \"2\", {options}}}, \
             \"write\": {{\"io_bytes\": {0}, \"total_ios\": {1}, \"iops\": {iops}, \"runtime\": 10000}}}}]}}",
            iops * 40960,
            iops * 10
        )
    };
    let plan_of = |name: &str, options: &str| {
        let file = write(&place, &format!("{name}.json"), &job(options, 400));
        let plan = place.path().join(format!("{name}.toml"));
        let plan = plan.to_str().unwrap();
        let words = ["import", &file, "--plan", plan, "--target", "simulated:hdd-15k"];
        place.run(&words).expect(0);
        let shown = place.run(&["plan", "--plan", plan]).expect(0).out;
        (std::fs::read_to_string(plan).unwrap(), shown)
    };
    let (written, shown) = plan_of("syncs", "\"fdatasync\": \"8\", \"thinktime\": \"100\"");
    assert!(written.contains("left out: thinktime=100"), "{written}");
    assert!(shown.contains("direct+fdatasync:8") && shown.contains("2 clients"), "{shown}");
    let (written, shown) = plan_of("rates", "\"rate_iops\": \"200\", \"sync\": \"dsync\"");
    assert!(!written.contains("left out"), "{written}");
    assert!(shown.contains("direct+odsync") && shown.contains("400/s offered"), "{shown}");
}

#[test]
fn what_is_no_output_is_refused() {
    let place = Place::new();
    let file = write(&place, "x.txt", "hello\n");
    place.run(&["import", &file]).expect(2).complains_of(&["x.txt", "no output that is known"]);
    place.run(&["import", "/nowhere.txt"]).expect(1).complains_of(&["/nowhere.txt"]);
    place.run(&["import"]).expect(2);
    place.run(&["compare", "imported:x.txt"]).expect(2).complains_of(&["cannot be measured"]);
}
