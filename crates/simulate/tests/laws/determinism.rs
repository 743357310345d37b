//! The same run twice.

use super::*;

fn trial(kernel: Kernel, scheduler: &str, depth: u32) -> Trial {
    let queue = Config::new(kernel, depth).with_scheduler(scheduler);
    let mut trial = Trial::of(
        "randrw:70,clients=8,client_kind=processes,depth=4,sync=direct+fsync:8",
        queue,
        1,
    );
    trial.warmup = Nanos::from_millis(200);
    trial.workload.background = Some("read,block_size=1M,clients=2,rate=20/s".parse().unwrap());
    trial.turnaround = simulate::DEFAULT_TURNAROUND;
    trial
}

#[test]
fn the_same_run_twice_is_the_same_to_the_last_event() {
    for profile in ["array-4x15k", "raid10-8x15k-bbu", "ssd-x25e"] {
        for (kernel, scheduler) in schedulers() {
            let mut trial = trial(kernel, scheduler, 32);
            let (first, second) = (trial.on_profile(profile), trial.on_profile(profile));
            assert_eq!(first.event_hash(), second.event_hash(), "{profile} {kernel} {scheduler}");
            assert_eq!(first.measurement, second.measurement);
            assert!(first.operations > 50, "{profile} {kernel} {scheduler}");
            trial.seed = 2;
            assert_ne!(trial.on_profile(profile).event_hash(), first.event_hash());
        }
    }
}

#[test]
fn what_differs_in_one_setting_has_another_hash() {
    let hash = |queue: Config| {
        let mut trial = trial(Kernel::V2_6_18, "deadline", 4);
        trial.queue = queue;
        trial.on_profile("hdd-15k").event_hash()
    };
    let queue = Config::new(Kernel::V2_6_18, 4).with_scheduler("deadline");
    assert_ne!(hash(queue.clone()), hash(queue.clone().with("read_expire", 20)));
    assert_ne!(hash(queue.clone()), hash(queue.with_scheduler("noop")));
}
