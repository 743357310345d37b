//! Words that people type, and the topics that answer them.

/// Topics, and the words that lead there where no topic has that name. Spaces, hyphens and underscores are one.
pub(crate) const SYNONYMS: &[(&[&str], &[&str])] = &[
    (&["boot-elevator"], &["elevator", "elevator="]),
    (&["owners"], &["tuned", "udev", "udev rule", "saptune", "sysfs", "tmpfiles", "rc.local"]),
    (&["scheduler", "none"], &["blk-mq", "multiqueue", "use_blk_mq", "io scheduler"]),
    (&["nr_requests", "queue-ceiling"], &["queue_depth", "queue depth", "NCQ", "tags"]),
    (&["depth"], &["iodepth", "qd"]),
    (&["clients"], &["numjobs", "threads", "connections"]),
    (&["read_ahead_kb"], &["readahead", "read_ahead", "setra"]),
    (&["read-ahead-lost"], &["add_random", "stable_writes"]),
    (&["not-counted"], &["iostats"]),
    (&["settings"], &["io_poll", "io_timeout", "queue settings"]),
    (&["rotational-flag"], &["rota"]),
    (&["write-through-by-hand", "power-loss"], &["write_cache", "volatile cache", "write cache"]),
    (&["power-loss"], &["FUA", "cache flush", "battery", "BBU"]),
    (&["no-barrier"], &["barrier", "barriers", "nobarrier", "barrier=0"]),
    (&["flash-state", "loop-discard"], &["discard", "trim", "fstrim"]),
    (&["flash"], &["nvme", "ssd"]),
    (&["disk"], &["hdd"]),
    (&["array"], &["hardware raid", "raid controller"]),
    (&["cache-answers", "rotational-flag"], &["virtio", "virtual disk", "vda"]),
    (
        &["stacked-devices"],
        &[
            "multipath",
            "mpath",
            "lvm",
            "dm",
            "device mapper",
            "md",
            "raid",
            "drbd",
            "bcache",
            "luks",
            "dm-crypt",
        ],
    ),
    (&["filesystems"], &["zfs", "f2fs", "mkfs", "mount options"]),
    (&["network"], &["nfs", "cifs", "iscsi", "ceph", "rbd"]),
    (&["memory"], &["tmpfs", "ramdisk"]),
    (
        &["writeback-throttled", "memory.dirty"],
        &["dirty_ratio", "dirty_background_ratio", "dirty pages"],
    ),
    (&["wbt_lat_usec"], &["writeback throttling", "wbt_lat"]),
    (
        &["group-limit"],
        &[
            "cgroup",
            "cgroups",
            "io.max",
            "io.latency",
            "io.cost",
            "iocost",
            "blkio",
            "container",
            "docker",
        ],
    ),
    (&["pressure.io", "no-pressure"], &["psi"]),
    (&["steal"], &["noisy neighbour", "noisy neighbor"]),
    (&["direct"], &["O_DIRECT", "direct io"]),
    (&["osync"], &["O_SYNC"]),
    (&["odsync"], &["O_DSYNC"]),
    (&["flush"], &["O_DIRECT_NO_FSYNC", "nosync", "littlesync"]),
    (&["losses"], &["data loss", "durable", "acknowledged commits"]),
    (&["import-formats", "importing"], &["imports"]),
    (&["p99"], &["latency", "tail latency", "percentile"]),
    (&["better"], &["verdict"]),
    (&["smallest detectable difference"], &["power", "sensitivity"]),
];

/// One spelling of a word.
pub(crate) fn plain(word: &str) -> String {
    word.to_lowercase().replace(['-', ' '], "_")
}

/// The topics that a word leads to.
pub(crate) fn topics_of(word: &str) -> &'static [&'static str] {
    let wanted = plain(word);
    let is_here = |words: &&[&str]| words.iter().any(|it| plain(it) == wanted);
    SYNONYMS.iter().find(|(_, words)| is_here(words)).map_or(&[], |(topics, _)| topics)
}
