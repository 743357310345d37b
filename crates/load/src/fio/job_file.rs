//! A job file for fio from our job, or why fio cannot do it. The mapping is documented in
//! docs/reference/workloads/fio.md.

use crate::error::LoadError;
use crate::spec::LoadSpec;
use std::fmt::Write;
use workload::{AfterWrite, ClientKind, IoClass, Job, OpenSync, Order};

/// The job file.
pub(crate) fn write(spec: &LoadSpec) -> Result<String, LoadError> {
    for (_, job) in spec.jobs() {
        refuse(job)?;
    }
    let path = path(spec)?;
    let mut file = format!(
        "[global]\nioengine=io_uring\nfilename={path}\nallow_file_create=0\nfallocate=none\n\
         time_based=1\nramp_time={}ms\nruntime={}ms\nrandseed={}\nnorandommap=1\n\
         lat_percentiles=1\nclat_percentiles=0\n",
        spec.warmup.0 / 1_000_000,
        (spec.measure.0 / 1_000_000).max(1),
        // fio reads a signed number.
        spec.seed >> 1,
    );
    for (role, job) in spec.jobs() {
        section(&mut file, role.name(), job, spec.target.size.0);
    }
    Ok(file)
}

/// fio separates several names by colons, and escapes one by a backslash. What is held is named by our
/// descriptor of it, as for our own engines.
fn path(spec: &LoadSpec) -> Result<String, LoadError> {
    match spec.target.open_path().to_str() {
        Some(path) if !path.contains(['\n', '\\']) => Ok(path.replace(':', "\\:")),
        _ => Err(LoadError::Refused(format!(
            "fio's job file cannot name the path {:?}: use another path, or --engine io_uring",
            spec.target.path
        ))),
    }
}

fn refuse(job: &Job) -> Result<(), LoadError> {
    let cannot = |what: &str| {
        Err(LoadError::Refused(format!(
            "fio cannot {what}: use --engine io_uring or --engine sync for this"
        )))
    };
    if job.rate.is_some() {
        return cannot(
            "report response times from the intended start of operations offered at a rate, which \
             hides stalls",
        );
    }
    // Both seen with fio 3.33: in a mix, fsync=4 gives a call for every four operations of either
    // kind; with a depth of 2, a call for every two writes.
    if job.pattern.writes() && job.sync.after != AfterWrite::None {
        if job.pattern.reads() {
            return cannot("call fsync after so many writes in a mix, because it counts reads too");
        }
        if job.depth > 1 {
            return cannot("call fsync exactly as often as asked at a depth above 1");
        }
    }
    match job.pattern.order {
        Order::Sequential { streams: 2.. } => cannot("interleave several streams in one client"),
        _ => Ok(()),
    }
}

fn section(file: &mut String, role: &str, job: &Job, size: u64) {
    let mut line = |text: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(file, "{text}");
    };
    line(format!("[{role}]"));
    let random = matches!(job.pattern.order, Order::Random);
    line(format!(
        "rw={}",
        match (random, job.pattern.read_percent) {
            (true, 100) => "randread",
            (true, 0) => "randwrite",
            (true, _) => "randrw",
            (false, 100) => "read",
            (false, 0) => "write",
            (false, _) => "rw",
        }
    ));
    if job.pattern.reads() && job.pattern.writes() {
        line(format!("rwmixread={}", job.pattern.read_percent));
    }
    let block = job.block_size.0;
    let blocks = size / block;
    line(format!("bs={block}"));
    line(format!("iodepth={}", job.depth));
    line(format!("numjobs={}", job.clients));
    if random || job.clients == 1 {
        line(format!("size={}", blocks * block));
    } else {
        let share = (blocks / u64::from(job.clients)).max(1) * block;
        line(format!("size={share}"));
        line(format!("offset_increment={share}"));
    }
    line(format!("thread={}", u8::from(job.client_kind == ClientKind::Threads)));
    line(format!("direct={}", u8::from(job.sync.direct)));
    if job.sync.dont_cache {
        line("uncached=1".to_owned());
    }
    if job.pattern.writes() {
        match job.sync.open {
            OpenSync::None => {}
            OpenSync::OSync => line("sync=sync".to_owned()),
            OpenSync::ODsync => line("sync=dsync".to_owned()),
        }
        match job.sync.after {
            AfterWrite::None => {}
            AfterWrite::Fsync => line(format!("fsync={}", job.sync.every)),
            AfterWrite::Fdatasync => line(format!("fdatasync={}", job.sync.every)),
        }
    }
    if let Some(priority) = job.io_priority {
        let class = match priority.class {
            IoClass::RealTime => 1,
            IoClass::BestEffort => 2,
            IoClass::Idle => 3,
        };
        line(format!("prioclass={class}"));
        line(format!("prio={}", priority.level));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;
    use units::{Bytes, Nanos};
    use workload::{EngineKind, Workload};

    fn file(job: &str) -> Result<String, LoadError> {
        let target = Target::new("/srv/a:b", Bytes::from_mib(1));
        let workload = Workload { job: job.parse().unwrap(), ..Workload::default() };
        write(&LoadSpec {
            workload: &workload,
            replay: None,
            target: &target,
            engine: EngineKind::Fio,
            warmup: Nanos::from_secs(1),
            measure: Nanos::from_secs(2),
            tick: Nanos::from_secs(1),
            seed: 3,
            client_program: &crate::ClientProgram::own().unwrap(),
        })
    }

    #[test]
    fn the_words_of_a_job_become_fios() {
        let text = file(
            "randrw:70,block_size=8k,sync=direct+osync,clients=3,depth=2,\
             client_kind=processes,io_priority=be:1",
        )
        .unwrap();
        for line in [
            "filename=/srv/a\\:b",
            "ramp_time=1000ms",
            "runtime=2000ms",
            "rw=randrw",
            "rwmixread=70",
            "bs=8192",
            "size=1048576",
            "iodepth=2",
            "numjobs=3",
            "thread=0",
            "direct=1",
            "sync=sync",
            "prioclass=2",
            "prio=1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn sequential_clients_share_the_target_without_leaving_it() {
        let text = file("write,clients=3,block_size=64k").unwrap();
        // 16 blocks of 64 KiB for three: five each.
        assert!(text.contains("size=327680\noffset_increment=327680\n"), "{text}");
    }

    #[test]
    fn what_fio_cannot_do_is_refused_with_the_reason() {
        assert!(file("randwrite,sync=fdatasync:4").unwrap().contains("\nfdatasync=4\n"));
        assert!(file("randread,sync=dontcache").unwrap().contains("\nuncached=1\n"));
        assert!(!file("randread,sync=buffered").unwrap().contains("uncached"));
        for (job, reason) in [
            ("randread,rate=100/s", "intended start"),
            ("read*4", "several streams"),
            ("randrw:50,sync=fsync:4", "counts reads"),
            ("randwrite,depth=2,sync=fsync:4", "exactly as often"),
        ] {
            let message = file(job).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }
}
