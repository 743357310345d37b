//! What a user is told about settings that cannot be.

use blocklayer::{Config, Kernel};

fn message(config: Config) -> String {
    config.resolve().unwrap_err().to_string()
}

#[test]
fn a_scheduler_of_another_level_says_which_levels_have_it() {
    let text = message(Config::new(Kernel::V6_12, 32).with_scheduler("cfq"));
    assert!(text.contains("2.6.18-194.8.1.el5, 2.6.32, 3.10, 4.19"), "{text}");
    let text = message(Config::new(Kernel::V3_10, 32).with_scheduler("anticipatory"));
    assert!(text.contains("2.6.18-194.8.1.el5, 2.6.32"), "{text}");
    let text = message(Config::new(Kernel::V3_10, 32).with_scheduler("dedline"));
    assert!(text.contains("did you mean 'deadline'?"), "{text}");
}

#[test]
fn nr_requests_says_its_range() {
    let of = |kernel, scheduler, n| {
        Config::new(kernel, 32).with_scheduler(scheduler).with_nr_requests(n)
    };
    assert!(of(Kernel::V2_6_18, "deadline", 100_000).resolve().is_ok());
    let text = message(of(Kernel::V6_12, "mq-deadline", 100_000));
    assert!(text.contains("4 to 2048, default 64"), "{text}");
    assert!(message(of(Kernel::V6_12, "none", 33)).contains("tags"));
    assert!(message(of(Kernel::V2_6_18, "noop", 3)).contains("make it 4"));
}

#[test]
fn tunables_are_named_by_the_kernel_and_ranged() {
    let config = Config::new(Kernel::V3_10, 32).with_scheduler("deadline");
    let text = message(config.clone().with("read_expires", 1));
    assert!(text.contains("did you mean 'read_expire'?"), "{text}");
    let text = message(config.with("front_merges", 2));
    assert!(text.contains("0 to 1") && text.contains("default 1"), "{text}");
    let old = Config::new(Kernel::V2_6_18, 32).with_scheduler("cfq");
    assert!(message(old.with("low_latency", 0)).contains("no tunable"));
}
