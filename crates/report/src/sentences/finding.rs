//! Findings: statement, evidence, and the check that could prove them wrong.

use analysis::{Evidence, Finding, FindingKind, Layer, Metric};
use record::Run;

/// A finding in words. `statement` is a sentence; `evidence` and `check` have no full stop.
pub(crate) struct FindingText {
    pub statement: String,
    pub evidence: String,
    pub check: String,
}

/// A finding in words.
pub(crate) fn finding(run: &Run, finding: &Finding) -> FindingText {
    let cells = list(&names(run, &finding.cells));
    FindingText {
        statement: statement(finding.kind, finding.evidence, &cells),
        evidence: evidence(finding.evidence),
        check: check(finding.kind, finding.evidence).to_owned(),
    }
}

fn statement(kind: FindingKind, evidence: Evidence, cells: &str) -> String {
    match kind {
        FindingKind::BufferedDirect => format!(
            "Under {cells}, O_DIRECT is not direct: the page cache grows by what the clients move."
        ),
        FindingKind::Cache => format!(
            "Under {cells}, a cache answered part of the operations: the figures are those of memory, \
             not of the device."
        ),
        FindingKind::ColdDrives => format!(
            "Under {cells}, some of the drives have nothing to do while others are busy."
        ),
        FindingKind::CpuWait => format!(
            "Under {cells}, clients waited for a CPU: latencies are longer than those of the storage."
        ),
        FindingKind::Drift => "The storage changed while the run went on: the figures depend on when a \
                               trial was made. Differences between cells are measured within rounds \
                               and hold."
            .to_owned(),
        FindingKind::FlushBound => format!(
            "Under {cells}, writers wait for the device's flush: what a commit costs is what a flush \
             costs."
        ),
        FindingKind::Generator => format!(
            "Under {cells}, the load generator itself was near its limit: a faster setting may not \
             have shown."
        ),
        FindingKind::HeldIdle if idling_pays(evidence) => format!(
            "Under {cells}, the device is idle while requests wait, and throughput is higher for it: \
             the scheduler keeps the device for a client whose next request is near."
        ),
        FindingKind::HeldIdle => format!(
            "Under {cells}, the device is idle while requests wait: the scheduler keeps it for a client \
             that has none queued."
        ),
        FindingKind::LargerRequests => format!(
            "Under {cells}, the device moves more than was asked: its requests are larger than the \
             clients' blocks."
        ),
        FindingKind::KeptTogether => match evidence {
            Evidence::Sequential { cell, baseline } if cell < baseline => format!(
                "Under {cells}, requests of one stream are mixed with those of others on their way to the \
                 device, where the baseline keeps them together: the device has more to seek."
            ),
            _ => format!(
                "Under {cells}, requests of one stream go to the device together, where the baseline mixes \
                 them with those of others: the device has less to seek."
            ),
        },
        FindingKind::LatencyTrade => format!(
            "Under {cells}, throughput is bought with latency: more operations wait at once, and the \
             slowest wait longer."
        ),
        FindingKind::Merging => format!(
            "Under {cells}, another share of the requests is merged than under the baseline, which \
             changes how many reach the device."
        ),
        FindingKind::NoFreeRequest => format!(
            "Under {cells}, operations waited for a free request (nr_requests): more was outstanding \
             than the queue holds. Such a wait can be long."
        ),
        FindingKind::OrderEffect => format!(
            "Trials after {cells} are not what the same cells are elsewhere: something of a trial is \
             left for the next."
        ),
        FindingKind::ReadBeforeWrite => format!(
            "Under {cells}, the device reads although the clients only write: blocks smaller than the \
             filesystem's are read before they are written, or metadata is fetched."
        ),
        FindingKind::RotationalFlag => {
            "Linux takes the device for another kind than it is, and chooses write-back throttling \
             and bfq's and filesystems' defaults by that."
                .to_owned()
        }
        FindingKind::SchedulerCpu => format!(
            "Under {cells}, each operation costs more CPU time in the kernel than under the baseline, \
             and the CPUs have none to spare."
        ),
        FindingKind::Serialised => {
            let layer = match evidence {
                Evidence::Serialised { layer: Layer::AboveTheQueue, .. } => {
                    "before the queue: a lock of the file or the filesystem lets one write at a time \
                     through"
                }
                Evidence::Serialised { layer: Layer::Scheduler, .. } => {
                    "in the scheduler, which gives the device one request at a time"
                }
                _ => "at the device",
            };
            format!("Under {cells}, added clients bring no more operations. They wait {layer}.")
        }
        FindingKind::Sorting => format!(
            "Under {cells}, heads travel another distance than under the baseline, and as much is \
             merged: the order of requests makes the difference."
        ),
        FindingKind::StarvedClient => {
            format!("Under {cells}, one of several like clients gets next to nothing.")
        }
        FindingKind::StolenCpu => format!(
            "Under {cells}, the hypervisor gave CPU time of this machine to others: latencies are \
             longer than those of the storage."
        ),
        FindingKind::ThrottledHost => {
            "At one moment all cells fell to one and the same rate: a limit of the host, the cloud or \
             the device began to hold, such as burst credits that were used up. What was measured \
             from then on is that limit."
                .to_owned()
        }
        FindingKind::Unexplained => {
            format!("No counter says what makes the difference between {cells} and the baseline.")
        }
        FindingKind::Unsteady => format!(
            "Under {cells}, trials had not settled when measuring began: the figures depend on how \
             long a trial lasts."
        ),
        FindingKind::WritebackThrottled => match evidence {
            Evidence::ThrottlingDiffers { .. } => format!(
                "Under {cells}, write-back throttling (wbt_lat_usec) decides how fast buffered writes \
                 reach the device."
            ),
            _ => format!(
                "Under {cells}, writers wait at the limit of dirty pages (vm.dirty_ratio): they are as \
                 fast as the device takes the pages, not as memory does."
            ),
        },
    }
}

fn evidence(evidence: Evidence) -> String {
    let percent = |share: f64| 100.0 * share;
    let change = |ratio: f64| 100.0 * (ratio - 1.0);
    match evidence {
        Evidence::DeviceMoved { share } => format!(
            "the device moved as little as {:.0} % of the bytes that the clients asked for",
            percent(share)
        ),
        Evidence::CpuWait { waited_us, period_us } => format!(
            "up to {waited_us:.0} µs per operation ready to run without a CPU, out of a mean \
             time of {period_us:.0} µs"
        ),
        Evidence::GeneratorBusy { share } => {
            format!("a generator thread was on a CPU for {:.0} % of the time", percent(share))
        }
        Evidence::Merged { cell, baseline } => format!(
            "merged requests (rrqm/s + wrqm/s): {:.0} %, baseline {:.0} %",
            percent(cell),
            percent(baseline)
        ),
        Evidence::Punted { share } => {
            format!("io_uring's workers moved up to {:.0} % of the bytes", percent(share))
        }
        Evidence::QueueFull { in_flight, requests } => {
            format!("{in_flight:.1} of the queue's {requests} requests were in flight on average")
        }
        Evidence::WaitedForRequest { share } => {
            format!("up to {:.0} % of the latency is waiting for a free request", percent(share))
        }
        Evidence::ReadsPerWrite { ratio } => {
            format!("up to {ratio:.2} device reads for each write of a client")
        }
        Evidence::Stolen { percent } => {
            format!("up to {percent:.0} % of CPU time was stolen (%steal)")
        }
        Evidence::HalvesDiffer { change } => format!(
            "operations per second change by {:+.0} % from a trial's first half to its second",
            percent(change)
        ),
        Evidence::Serialised { layer, clients, throughput } => {
            let where_seen = match layer {
                Layer::AboveTheQueue => "; the queue holds about one request at a time",
                Layer::Scheduler => "; the device takes more with the same clients",
                Layer::Device => "",
            };
            format!(
                "{clients:.0} times the clients make {throughput:.2} times the throughput{where_seen}"
            )
        }
        Evidence::TargetCached { bytes } => format!(
            "{} of the target's file were in the page cache on average: direct I/O leaves none there",
            units::Bytes(bytes as u64)
        ),
        Evidence::CacheGrew { share } => format!(
            "the page cache grows by {:.0} % of the bytes that the clients move",
            percent(share)
        ),
        Evidence::RequestsLarger { ratio } => {
            format!("a request at the device is {ratio:.1} times a client's block")
        }
        Evidence::Sequential { cell, baseline } => format!(
            "{cell:.0} % of the requests begin where the one before ended, baseline {baseline:.0} %"
        ),
        Evidence::Seeks { cell, baseline } => format!(
            "mean seek {cell:.0} sectors, baseline {baseline:.0}, with the same share merged"
        ),
        Evidence::Traded { throughput, p99 } => format!(
            "{:+.0} % throughput for {:+.0} % at the 99th percentile",
            change(throughput),
            change(p99)
        ),
        Evidence::IdleWhileWaiting { percent, .. } => {
            format!("idle for up to {percent:.0} % of the time with requests in the queue")
        }
        Evidence::MembersUneven { least, most } => {
            format!("%util of the members from {least:.0} to {most:.0}")
        }
        Evidence::FewerBusyDrives { slower, faster } => {
            format!("{slower:.1} drives busy on average, {faster:.1} in the faster cell")
        }
        Evidence::KernelTime { ratio, idle_percent } => format!(
            "{:+.0} % CPU time in the kernel for each operation, with {idle_percent:.0} % of CPU time \
             left",
            change(ratio)
        ),
        Evidence::LeastServed { share, fairness } => format!(
            "the client with the fewest operations has {:.0} % of the mean client's; Jain's index \
             {fairness:.2}",
            percent(share)
        ),
        Evidence::Flushing { share } => {
            format!(
                "a flush is at the device for {:.0} % of the time (f/s × f_await)",
                percent(share)
            )
        }
        Evidence::WritesHeld { ms_per_second } => {
            format!("writers were held back for up to {ms_per_second:.0} ms in each second")
        }
        Evidence::ThrottlingDiffers { throughput } => format!(
            "{:+.0} % throughput where nothing but wbt_lat_usec differs",
            change(throughput)
        ),
        Evidence::FlagIsWrong { rotates, median_us } => {
            let flag = u8::from(rotates);
            let slower = if rotates { "a disk is slower" } else { "flash is faster" };
            format!(
                "queue/rotational is {flag}, and half of the random reads took no longer than {median_us:.0} µs: {slower}"
            )
        }
        Evidence::RoundsDiffer { change } => format!(
            "throughput changes by {:+.0} % from the first third of the rounds to the last",
            percent(change)
        ),
        Evidence::FellToLimit { before, limit } => {
            format!("from {before:.0} operations/s to {limit:.0} in every cell, within 3 %")
        }
        Evidence::FollowersDiffer { change } => {
            format!("throughput of the trials that follow differs by {:+.0} %", percent(change))
        }
        Evidence::NothingCounted { metric, ratio } => {
            format!("{:+.0} % in {}", change(ratio), metric_name(metric))
        }
    }
}

fn idling_pays(evidence: Evidence) -> bool {
    matches!(evidence, Evidence::IdleWhileWaiting { pays: true, .. })
}

/// A figure as a sentence calls it.
fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::P99 => "the 99th percentile",
        Metric::Fairness => "fairness",
    }
}

fn check(kind: FindingKind, evidence: Evidence) -> &'static str {
    match kind {
        FindingKind::BufferedDirect => {
            "repeat with --block-sizes equal to the filesystem's block size: the growth must vanish"
        }
        FindingKind::Cache => {
            "repeat with --sync direct, a --size well above memory, or --page-cache: the share at the \
             device must rise to 100 %"
        }
        FindingKind::ColdDrives => {
            "repeat with the scheduler none (noop): the drives must share the work, and throughput rise"
        }
        FindingKind::CpuWait => {
            "repeat with --clients 1, and where that is so, with nothing else running: the wait must vanish, \
             else something other than the clients keeps the processors"
        }
        FindingKind::Drift => "repeat with a longer --warmup: the change must vanish",
        FindingKind::FlushBound => "repeat without flushes (--sync direct): throughput must rise",
        FindingKind::Generator => {
            "repeat with more --clients at a smaller --depths: if throughput rises, the generator was \
             the limit"
        }
        FindingKind::HeldIdle if idling_pays(evidence) => {
            "repeat with the scheduler none (noop), or with its idling off: throughput must fall"
        }
        FindingKind::HeldIdle => {
            "repeat with the scheduler none (noop), or with its idling off: throughput must rise"
        }
        FindingKind::KeptTogether => {
            "repeat with --clients 1, which leaves nothing to mix: most of the difference must vanish"
        }
        FindingKind::LargerRequests => {
            "repeat with --block-sizes equal to the filesystem's block size: requests must be as large \
             as blocks"
        }
        FindingKind::LatencyTrade => {
            "offer both the same rate (--rates) below what either can do: most of what the 99th \
             percentile was worse must vanish"
        }
        FindingKind::Merging => {
            "repeat with merging off (queue/nomerges = 2) in both: most of the difference must vanish"
        }
        FindingKind::NoFreeRequest => {
            "repeat with a larger --queues: throughput must rise or the 99th percentile fall, else a \
             longer queue only moves the wait"
        }
        FindingKind::OrderEffect => "repeat with a longer --warmup: the difference must vanish",
        FindingKind::ReadBeforeWrite => {
            "repeat with --block-sizes equal to the filesystem's block size, or --sync direct: the \
             reads must vanish"
        }
        FindingKind::RotationalFlag => {
            "spindle inspect shows what the probe saw; if you know the device to be of the other kind, \
             this is wrong"
        }
        FindingKind::SchedulerCpu => {
            "repeat with a quarter of the --clients: with CPU time to spare most of the difference must \
             vanish"
        }
        FindingKind::Serialised => match evidence {
            Evidence::Serialised { layer: Layer::AboveTheQueue, .. } => {
                "repeat with reads, which take no such lock: throughput must rise"
            }
            Evidence::Serialised { layer: Layer::Scheduler, .. } => {
                "repeat with the scheduler none (noop): throughput must rise"
            }
            _ => "repeat with a quarter of the --clients: throughput must stay",
        },
        FindingKind::Sorting => {
            "repeat with --without sorting in the simulated world, elsewhere with --clients 1: most of the \
             difference must vanish"
        }
        FindingKind::StarvedClient => {
            "repeat with a four times longer --measure: the client must starve still"
        }
        FindingKind::StolenCpu => {
            "repeat at a quieter time, or on a machine of its own: latencies must fall"
        }
        FindingKind::ThrottledHost => {
            "repeat when credits are there again, or on a device without a limit: cells must differ in \
             their rates"
        }
        FindingKind::Unexplained => "repeat with another --seed: the difference must show again",
        FindingKind::Unsteady => "repeat with a longer --warmup: the change must shrink",
        FindingKind::WritebackThrottled => match evidence {
            Evidence::ThrottlingDiffers { .. } => "repeat with --wbt 0: throughput must be another",
            _ => "repeat with a four times longer --measure: throughput must stay all the time",
        },
    }
}

/// The cells' labels, with their condition where there are several.
fn names(run: &Run, cells: &[usize]) -> Vec<String> {
    let plan = &run.plan;
    let (compared, conditions) = (plan.compared(), plan.conditions());
    cells
        .iter()
        .map(|&cell| {
            let cell = &plan.cells[cell];
            match (compared.is_empty(), conditions.is_empty()) {
                (true, _) => cell.label(&conditions),
                (false, true) => cell.label(&compared),
                (false, false) => {
                    format!("{} ({})", cell.label(&compared), cell.label(&conditions))
                }
            }
        })
        .collect()
}

/// `a`, `a and b`, `a, b and 3 more`.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [one, two, more @ ..] => format!("{one}, {two} and {} more", more.len()),
    }
}
