//! `spindle explain`: the pages of docs/reference, and the sections in them, on the terminal.

use crate::exit::{Exit, Usage};
use crate::say;
use clap::Args;
use documents::{terminal, topics};

/// The flags of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// What to explain: a finding, trap, scheduler, tunable, profile, workload, server, setting,
    /// factor, counter, verdict or exit code; without it, all topics are listed
    topic: Option<String>,
}

impl ExplainArgs {
    /// Prints everything that the topic names, or the list of topics.
    pub fn run(self) -> anyhow::Result<Exit> {
        let Some(topic) = self.topic else {
            say::result(&listing())?;
            return Ok(Exit::Done);
        };
        let found = topics::find(&topic);
        if found.is_empty() {
            return Err(Usage(unknown(&topic)).into());
        }
        let texts: Vec<String> =
            found.iter().map(|topic| terminal::text(topic.text, crate::WIDTH)).collect();
        let rule = format!("\n{}\n\n", "-".repeat(crate::WIDTH));
        say::result(&texts.join(&rule))?;
        Ok(Exit::Done)
    }
}

/// All topics by group.
fn listing() -> String {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for topic in topics::all() {
        match groups.iter_mut().find(|(group, _)| *group == topic.group) {
            Some((_, names)) => names.push(topic.name),
            None => groups.push((topic.group, vec![topic.name])),
        }
    }
    let mut text = "Usage: spindle explain TOPIC\n".to_owned();
    for (group, mut names) in groups {
        names.dedup();
        let list = report::wrap(&names.join(", "), crate::WIDTH - 2, 2);
        text.push_str(&format!("\n{}\n  {list}\n", group.replace('-', " ")));
    }
    text
}

/// The message for a word that names no topic.
fn unknown(word: &str) -> String {
    let near = topics::near(word);
    let hint = match near.is_empty() {
        true => {
            "`spindle explain` lists all topics (findings such as cache, schedulers such as bfq)"
                .to_owned()
        }
        false => format!("did you mean {}?", near.join(" or ")),
    };
    format!("there is no topic '{word}'; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Factor, FilesystemKind};
    use workload::{DatabaseKind, EngineKind};

    /// Every factor. A variant that is missing here does not compile in `counted`.
    fn factors() -> Vec<Factor> {
        let all = [
            "filesystem",
            "scheduler",
            "nr_requests",
            "async_depth",
            "mq-deadline.fifo_batch",
            "wbt_lat_usec",
            "read_ahead_kb",
            "nomerges",
            "rq_affinity",
            "sync",
            "io_priority",
            "engine",
            "server.innodb_io_capacity",
            "variables",
            "placebo",
            "label",
            "benchmark",
            "workload",
            "pattern",
            "block_size",
            "clients",
            "depth",
            "rate",
            "background",
            "without",
        ];
        let counted = |factor: &Factor| match factor {
            Factor::Filesystem | Factor::Scheduler | Factor::NrRequests => (),
            Factor::AsyncDepth | Factor::Tunable { .. } => (),
            Factor::WbtLatUsec | Factor::ReadAheadKb | Factor::Nomerges => (),
            Factor::RqAffinity => (),
            Factor::Sync | Factor::IoPriority | Factor::Engine | Factor::Variable { .. } => (),
            Factor::Variables => (),
            Factor::Placebo | Factor::Workload | Factor::Pattern | Factor::BlockSize => (),
            Factor::Clients | Factor::Depth | Factor::Rate | Factor::Background => (),
            Factor::Without | Factor::Label | Factor::Benchmark => (),
        };
        let factors: Vec<Factor> = all.iter().map(|word| word.parse().unwrap()).collect();
        factors.iter().for_each(counted);
        factors
    }

    fn assert_explained(words: impl IntoIterator<Item = String>) {
        let missing: Vec<String> =
            words.into_iter().filter(|word| topics::find(word).is_empty()).collect();
        assert!(missing.is_empty(), "no topic in docs/reference for {missing:?}");
    }

    fn owned<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        words.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn every_finding_and_every_trap_is_explained() {
        assert_explained(analysis::FindingKind::all().map(|kind| kind.id().to_owned()));
        assert_explained(host::all_traps().map(|(id, _)| id.to_owned()));
    }

    #[test]
    fn every_scheduler_and_tunable_is_explained() {
        for kind in scheduler::SchedulerKind::ALL {
            assert_explained([kind.name().to_owned()]);
            for tunable in kind.spec().tunables {
                let name = tunable.name;
                assert_explained([name.to_owned(), format!("{kind}.{name}")]);
            }
        }
    }

    #[test]
    fn every_profile_workload_server_engine_and_filesystem_is_explained() {
        assert_explained(device::profile::builtin_names().map(str::to_owned));
        assert_explained(DatabaseKind::ALL.iter().map(|kind| kind.to_string()));
        let private = workload::PrivateServer::ALL.iter().map(|kind| kind.spec().name.to_owned());
        assert_explained(private.chain(["running-server".to_owned()]));
        assert_explained(EngineKind::ALL.iter().map(|kind| kind.to_string()));
        assert_explained(FilesystemKind::ALL.map(|kind| kind.to_string()));
    }

    #[test]
    fn every_factor_mechanism_and_sync_mode_is_explained() {
        assert_explained(factors().iter().map(ToString::to_string));
        assert_explained(plan::Mechanism::ALL.map(|mechanism| mechanism.to_string()));
        let modes = ["buffered", "direct", "osync", "odsync", "fsync", "fdatasync", "direct+fsync"];
        assert_explained(owned(modes));
    }

    #[test]
    fn every_preset_is_explained() {
        assert_explained(workload::Preset::ALL.iter().map(ToString::to_string));
    }

    #[test]
    fn every_counter_is_explained() {
        assert_explained(counters::ALL.iter().map(|counter| counter.id.to_owned()));
        assert_explained(owned([
            "device.avgqu-sz",
            "avgrq-sz",
            "mariadb.fsyncs/s",
            "mysql.fsyncs/s",
        ]));
        assert_explained(owned(["InnoDB fsyncs", "WAL fsyncs"]));
    }

    #[test]
    fn settings_counters_verdicts_and_exit_codes_are_explained() {
        assert_explained(owned([
            "queue/scheduler",
            "queue/nr_requests",
            "queue/rotational",
            "iosched/fifo_batch",
            "/sys/block/sda/queue/wbt_lat_usec",
        ]));
        assert_explained(owned(["device.await", "aqu-sz", "%util", "uring.punted/s", "sim.depth"]));
        assert_explained(owned(["better", "worse", "same", "open", "0", "3", "130"]));
    }

    #[test]
    fn a_misspelled_topic_is_answered_with_near_ones() {
        assert!(unknown("bqf").contains("bfq"), "{}", unknown("bqf"));
        assert!(unknown("rotational-flags").contains("rotational-flag"));
        assert!(unknown("everything-else").contains("spindle explain"));
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let wide = |text: &str| {
            let long =
                |line: &&str| line.chars().count() > crate::WIDTH && !line.starts_with("    ");
            text.lines().find(long).map(str::to_owned)
        };
        assert_eq!(wide(&listing()), None);
        for topic in topics::all() {
            let text = terminal::text(topic.text, crate::WIDTH);
            assert_eq!(wide(&text), None, "{}", topic.name);
        }
    }
}
