//! The values that show a finding.

use crate::Metric;
use serde::Serialize;

/// What shows a finding: the values that were compared, in the worst cell. Shares are of 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The smallest share of the clients' bytes that the device moved.
    DeviceMoved {
        /// Share of the bytes.
        share: f64,
    },
    /// The longest wait for a CPU, `clients.cpu_wait_us`.
    CpuWait {
        /// Microseconds an operation.
        waited_us: f64,
        /// Microseconds of which it is a part: the mean latency in that cell, or where the wait is longer, the time from one
        /// operation of a client to its next.
        period_us: f64,
    },
    /// The busiest thread of the load generator.
    GeneratorBusy {
        /// Share of the time on a CPU.
        share: f64,
    },
    /// Merged requests, (rrqm/s + wrqm/s) over those and r/s + w/s.
    Merged {
        /// The share in the cell.
        cell: f64,
        /// The share in its baseline.
        baseline: f64,
    },
    /// Bytes that io_uring's workers moved, `uring.punted/s`.
    Punted {
        /// Share of the bytes.
        share: f64,
    },
    /// Requests in flight, aqu-sz, with more outstanding than the queue has.
    QueueFull {
        /// Requests in flight, mean.
        in_flight: f64,
        /// The requests that the queue has: nr_requests.
        requests: u32,
    },
    /// Device reads, r/s.
    ReadsPerWrite {
        /// Reads for each write of a client.
        ratio: f64,
    },
    /// Stolen CPU time, `cpu.%steal`.
    Stolen {
        /// Percent of the CPU time.
        percent: f64,
    },
    /// Operations in the second half of a trial over those in the first half.
    HalvesDiffer {
        /// The change, as a share of the first half.
        change: f64,
    },
    /// Time in which an operation waited for a free request, over its mean latency.
    WaitedForRequest {
        /// Share of the latency.
        share: f64,
    },
    /// Throughput with many clients over that with few.
    Serialised {
        /// Where they wait for one another.
        layer: Layer,
        /// How many times as many clients.
        clients: f64,
        /// How many times the throughput.
        throughput: f64,
    },
    /// Part of the target's file that is in the page cache, `target.cached`.
    TargetCached {
        /// How much, mean.
        bytes: f64,
    },
    /// Growth of the page cache.
    CacheGrew {
        /// Over the bytes that the clients moved.
        share: f64,
    },
    /// Bytes of a request at the device.
    RequestsLarger {
        /// Over those of a client's block.
        ratio: f64,
    },
    /// Requests that begin where the one before ended, `sim.%sequential` or `order.%sequential`.
    Sequential {
        /// Percent, in the cell.
        cell: f64,
        /// Percent, in its baseline.
        baseline: f64,
    },
    /// Mean distance from a request to the next, `sim.seek_sectors` or `order.seek_sectors`.
    Seeks {
        /// Sectors, in the cell.
        cell: f64,
        /// Sectors, in its baseline.
        baseline: f64,
    },
    /// Throughput and 99th percentile over the baseline's.
    Traded {
        /// Ratio of throughput.
        throughput: f64,
        /// Ratio of the 99th percentile.
        p99: f64,
    },
    /// The device was idle although requests waited.
    IdleWhileWaiting {
        /// Percent of the time.
        percent: f64,
        /// The cells are faster for it.
        pays: bool,
    },
    /// How busy the members of an array were.
    MembersUneven {
        /// The least busy, in percent.
        least: f64,
        /// The busiest, in percent.
        most: f64,
    },
    /// Busy drives on average.
    FewerBusyDrives {
        /// In the slower of a cell and its baseline.
        slower: f64,
        /// In the faster.
        faster: f64,
    },
    /// CPU time in the kernel for each operation.
    KernelTime {
        /// Over the baseline's.
        ratio: f64,
        /// CPU time without work, in percent.
        idle_percent: f64,
    },
    /// What the client with the fewest operations got.
    LeastServed {
        /// Of the mean client's operations.
        share: f64,
        /// Jain's index of all clients.
        fairness: f64,
    },
    /// Time with a flush at the device.
    Flushing {
        /// Share of the time.
        share: f64,
    },
    /// Time for which writers waited because too many pages were dirty.
    WritesHeld {
        /// Milliseconds in each second.
        ms_per_second: f64,
    },
    /// A cell that differs in nothing but wbt_lat_usec.
    ThrottlingDiffers {
        /// Its throughput over the baseline's.
        throughput: f64,
    },
    /// Random reads that the device cannot make if `queue/rotational` is right.
    FlagIsWrong {
        /// What the flag says.
        rotates: bool,
        /// Half of the reads took no longer, in microseconds.
        median_us: f64,
    },
    /// Throughput in the last third of the rounds over the first.
    RoundsDiffer {
        /// The change, as a share of the first.
        change: f64,
    },
    /// Throughput before and after a moment.
    FellToLimit {
        /// Operations a second before it.
        before: f64,
        /// Operations a second of every cell after it.
        limit: f64,
    },
    /// Throughput of trials after the cell.
    FollowersDiffer {
        /// Over that of the same cells elsewhere, as a share.
        change: f64,
    },
    /// The difference that nothing explains.
    NothingCounted {
        /// In which figure.
        metric: Metric,
        /// Over the baseline's.
        ratio: f64,
    },
}

/// Where clients wait for one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Before the queue: a lock of the file or the filesystem lets one write at a time through.
    AboveTheQueue,
    /// In the scheduler, which gives the device one at a time though it takes more.
    Scheduler,
    /// At the device, or in its one submission queue.
    Device,
}
