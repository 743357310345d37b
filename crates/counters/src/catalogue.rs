//! Every counter, by where it comes from.

use crate::{Aggregate, Counter, Unit};

/// Defines a constant for each counter, and the list of all.
macro_rules! catalogue {
    ($($name:ident $id:literal $unit:ident $aggregate:ident, $meaning:literal, $source:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $name: Counter = Counter {
                id: $id,
                unit: Unit::$unit,
                aggregate: Aggregate::$aggregate,
                meaning: $meaning,
                source: $source,
            };
        )*
        /// All, in the order of the reference.
        pub const ALL: &[&Counter] = &[$(&$name),*];
    };
}

catalogue! {
    DEVICE_RRQM "device.rrqm/s" PerSecond Mean, "Read requests that were merged into others in the queue", "/sys/block/DEVICE/stat; the block layer's model when simulated";
    DEVICE_WRQM "device.wrqm/s" PerSecond Mean, "Write requests that were merged into others in the queue", "/sys/block/DEVICE/stat; the block layer's model when simulated";
    DEVICE_R "device.r/s" PerSecond Mean, "Read requests that completed", "/sys/block/DEVICE/stat; the block layer's model when simulated";
    DEVICE_W "device.w/s" PerSecond Mean, "Write requests that completed, flushes without data among them (Linux counts these twice)", "/sys/block/DEVICE/stat; the block layer's model when simulated";
    DEVICE_R_MB "device.rMB/s" MebibytesPerSecond Mean, "Bytes read", "/sys/block/DEVICE/stat; the block layer's model when simulated";
    DEVICE_W_MB "device.wMB/s" MebibytesPerSecond Mean, "Bytes written", "/sys/block/DEVICE/stat; the block layer's model when simulated";
    DEVICE_AREQ_SZ "device.areq-sz" Kibibytes Mean, "Mean size of a request (before sysstat 12 avgrq-sz, in sectors of 512 bytes)", "sectors over requests";
    DEVICE_RAREQ_SZ "device.rareq-sz" Kibibytes Mean, "Mean size of a read request", "sectors over requests";
    DEVICE_WAREQ_SZ "device.wareq-sz" Kibibytes Mean, "Mean size of a write request", "sectors over requests";
    DEVICE_AQU_SZ "device.aqu-sz" Count Mean, "Mean number of requests in flight (before sysstat 12 avgqu-sz)", "weighted time in flight over time";
    DEVICE_AWAIT "device.await" Milliseconds Mean, "Mean time of a request from its creation to its completion", "sum of request times over requests";
    DEVICE_R_AWAIT "device.r_await" Milliseconds Mean, "The same of reads", "sum of request times over requests";
    DEVICE_W_AWAIT "device.w_await" Milliseconds Mean, "The same of writes", "sum of request times over requests";
    DEVICE_SVCTM "device.svctm" Milliseconds Mean, "Busy time over requests; means nothing on a device that serves several requests at once", "busy time over requests";
    DEVICE_UTIL "device.%util" Percent Mean, "Share of the time with at least one request in flight; no measure of saturation on a device that serves several requests at once", "busy time over time";
    DEVICE_D "device.d/s" PerSecond Mean, "Discard requests that completed", "/sys/block/DEVICE/stat";
    DEVICE_D_MB "device.dMB/s" MebibytesPerSecond Mean, "Bytes discarded", "/sys/block/DEVICE/stat";
    DEVICE_D_AWAIT "device.d_await" Milliseconds Mean, "Mean time of a discard", "/sys/block/DEVICE/stat";
    DEVICE_F "device.f/s" PerSecond Mean, "Flush requests that completed", "/sys/block/DEVICE/stat; the block layer's model when simulated";
    DEVICE_F_AWAIT "device.f_await" Milliseconds Mean, "Mean time of a flush", "/sys/block/DEVICE/stat; the block layer's model when simulated";

    ORDER_SEEK "order.seek_sectors" Sectors Mean, "Mean distance from the end of a request to the beginning of the next, as they go to the device", "the tracepoint block_rq_issue, of some hundred requests a second";
    ORDER_SEQUENTIAL "order.%sequential" Percent Mean, "Share of requests that begin where the one before ended, as they go to the device", "the tracepoint block_rq_issue, of some hundred requests a second";

    CPU_USER "cpu.%user" Percent Mean, "CPU time of all CPUs in user mode", "/proc/stat";
    CPU_NICE "cpu.%nice" Percent Mean, "The same of processes with lowered priority", "/proc/stat";
    CPU_SYSTEM "cpu.%system" Percent Mean, "CPU time in the kernel, interrupts included", "/proc/stat";
    CPU_IOWAIT "cpu.%iowait" Percent Mean, "Idle CPU time while I/O was in flight", "/proc/stat";
    CPU_STEAL "cpu.%steal" Percent Mean, "CPU time that the hypervisor gave to others", "/proc/stat";
    CPU_IDLE "cpu.%idle" Percent Mean, "Other idle CPU time", "/proc/stat";
    PROCESS_CPUS "process.cpus" Count Mean, "CPU time of the load generator, in CPUs", "getrusage(2)";
    MEMORY_CACHED "memory.cached" Bytes Mean, "Page cache", "/proc/meminfo";
    MEMORY_CACHED_GROWTH "memory.cached_growth" Bytes Mean, "Growth of the page cache in a second", "/proc/meminfo";
    TARGET_CACHED "target.cached" Bytes Mean, "Part of the target's file that is in the page cache", "cachestat(2), since Linux 6.5";
    MEMORY_DIRTY "memory.dirty" Bytes Mean, "Dirty memory", "/proc/meminfo";
    MEMORY_WRITEBACK "memory.writeback" Bytes Mean, "Memory under write-back", "/proc/meminfo";
    VM_PAGED_IN "vm.paged_in/s" BytesPerSecond Mean, "Bytes read from block devices by all", "/proc/vmstat pgpgin";
    VM_PAGED_OUT "vm.paged_out/s" BytesPerSecond Mean, "Bytes written to block devices by all", "/proc/vmstat pgpgout";
    PRESSURE_CPU "pressure.cpu" Percent Mean, "Share of the time in which some task waited for a CPU", "/proc/pressure/cpu";
    PRESSURE_IO "pressure.io" Percent Mean, "Share of the time in which some task waited for I/O", "/proc/pressure/io";
    PRESSURE_MEMORY "pressure.memory" Percent Mean, "Share of the time in which some task waited for memory", "/proc/pressure/memory";
    CGROUP_THROTTLED "cgroup.%throttled" Percent Mean, "Share of the time in which a CPU limit held the program's own control group back", "cpu.stat";
    URING_PUNTED "uring.punted/s" BytesPerSecond Mean, "Bytes of operations that io_uring handed to its workers because they would have had to wait, most often for a free request; in the last second of a trial, over all that was measured", "/proc/self/task/TID/io of the workers; the model's sleeping clients when simulated";
    CLIENTS_CPU_WAIT "clients.cpu_wait_us" Microseconds Mean, "Time per operation in which the measured job's clients were ready to run and had no CPU; in the last second of a trial, over all that was measured", "second field of /proc/self/task/TID/schedstat";

    SERVER_CPUS "server.cpus" Count Mean, "CPU time of the database server's processes, in CPUs", "/proc/PID/stat";
    SERVER_READ "server.read_bytes/s" BytesPerSecond Mean, "Bytes that the server's processes read from storage", "/proc/PID/io";
    SERVER_WRITTEN "server.written_bytes/s" BytesPerSecond Mean, "Bytes that the server's processes caused to be written", "/proc/PID/io";

    EMULATE_LATE_MEAN "emulate.late_mean_us" Microseconds Mean, "Mean lateness of completions of the emulated device", "the device's server";
    EMULATE_LATE_P99 "emulate.late_p99_us" Microseconds Mean, "99th percentile of the lateness since the measuring began", "the device's server";
    EMULATE_LATE_MAX "emulate.late_max_us" Microseconds Max, "Largest lateness since the measuring began", "the device's server";
    EMULATE_LATE_KEPT_P99 "emulate.late_kept_p99_us" Microseconds Mean, "99th percentile of the lateness of completions that were due while the pacing thread had its CPU", "the device's server";
    EMULATE_RESPONSE_MEAN "emulate.response_mean_us" Microseconds Mean, "Mean response time of the model", "the device's server";
    EMULATE_RESPONSE_P99 "emulate.response_p99_us" Microseconds Mean, "99th percentile of the model's response time", "the device's server";
    EMULATE_DEPTH "emulate.depth" Count Mean, "Requests in the model at the end of the second", "the device's server";
    EMULATE_DEPTH_MAX "emulate.depth_max" Count Max, "Most requests in the model at once", "the device's server";
    EMULATE_BUSY_DRIVES "emulate.busy_drives" Count Mean, "Drives of the model that were busy at the end of the second", "the device's server";
    EMULATE_DIRTY "emulate.dirty_mib" Mebibytes Mean, "Data in the model's write cache", "the device's server";
    EMULATE_TAKEN "emulate.%taken" Percent Mean, "Share of its spinning time for which the pacing thread's CPU was taken from it", "the device's server";
    EMULATE_PROCESSOR "emulate.%processor" Percent Mean, "CPU time of the device's server", "the device's server";

    SIM_TIME_IN_QUEUE "sim.time_in_queue_ms" Milliseconds Mean, "Mean time of a request in the scheduler's queue", "the block layer's model";
    SIM_TIME_AT_DEVICE "sim.time_at_device_ms" Milliseconds Mean, "Mean time of a request at the device", "the block layer's model";
    SIM_TIME_ASLEEP "sim.time_asleep_ms" Milliseconds Mean, "Time per operation in which its client waited for a free request", "the block layer's model";
    SIM_QUEUED "sim.queued" Count Mean, "Mean number of requests in the scheduler's queue", "the block layer's model";
    SIM_DEPTH "sim.depth" Count Mean, "Mean number of requests at the device", "the block layer's model";
    SIM_SEEK "sim.seek_sectors" Sectors Mean, "Mean distance from the end of a dispatched request to the beginning of the next", "the block layer's model";
    SIM_SEQUENTIAL "sim.%sequential" Percent Mean, "Share of dispatched requests that begin where the one before ended", "the block layer's model";
    SIM_BUSY_DRIVES "sim.busy_drives" Count Mean, "Mean number of busy drives or channels", "the device's model";
    SIM_IDLE_WHILE_WAITING "sim.%idle_while_waiting" Percent Mean, "Share of the time in which the device was idle although requests were queued", "the block layer's model";
    SIM_ROOM_WHILE_WAITING "sim.%room_while_waiting" Percent Mean, "Share of the time in which the device could have taken another request although requests were queued", "the block layer's model";
    SIM_SLEEPS "sim.sleeps/s" PerSecond Mean, "Times that a client had to wait for a free request", "the block layer's model";
    CACHE_HIT_RATIO "cache.hit_ratio" Share Mean, "Share of page lookups that the simulated page cache answered", "the page cache's model";
    CACHE_USED "cache.used_mib" Mebibytes Mean, "Pages in the simulated page cache", "the page cache's model";
    CACHE_DIRTY "cache.dirty_mib" Mebibytes Mean, "Dirty pages in it", "the page cache's model";
    CACHE_WRITEBACK "cache.writeback_mib" Mebibytes Mean, "Pages under write-back", "the page cache's model";
    CACHE_READ_BEFORE_WRITE "cache.read_before_write/s" PerSecond Mean, "Blocks that were read because only a part of them was written", "the page cache's model";
    WRITEBACK_FLUSHER "writeback.flusher_pages/s" PerSecond Mean, "Pages that the flusher wrote", "the page cache's model";
    WRITEBACK_WRITER "writeback.writer_pages/s" PerSecond Mean, "Pages that writing clients had to write themselves", "the page cache's model";
    WRITEBACK_FSYNC "writeback.fsync_pages/s" PerSecond Mean, "Pages that fsync wrote", "the page cache's model";
    WRITEBACK_JOURNAL "writeback.journal_pages/s" PerSecond Mean, "Pages that the journal wrote", "the page cache's model";
    WRITEBACK_HELD_OFF "writeback.held_off/s" PerSecond Mean, "Writes of the flusher that write-back throttling held off", "the page cache's model";
    WRITEBACK_THROTTLED "writeback.throttled_ms/s" MillisecondsPerSecond Mean, "Time for which writers were held back because too many pages were dirty (vm.dirty_ratio)", "the page cache's model";
    JOURNAL_COMMITS "journal.commits/s" PerSecond Mean, "Commits of the filesystem's journal", "the journal's model";
}
