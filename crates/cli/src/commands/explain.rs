//! `spindle explain`: the same pages as in docs/.

use crate::exit::{Exit, Usage};
use crate::say;
use clap::Args;

/// The flags of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// What to explain; without it, the topics there are
    topic: Option<String>,
}

/// Topic and page.
const PAGES: [(&str, &str); 14] = [
    ("cache", include_str!("../../../../docs/reference/findings/cache.md")),
    ("cpu-wait", include_str!("../../../../docs/reference/findings/cpu-wait.md")),
    ("generator", include_str!("../../../../docs/reference/findings/generator.md")),
    ("insert", include_str!("../../../../docs/reference/workloads/insert.md")),
    ("mariadb", include_str!("../../../../docs/reference/servers/mariadb.md")),
    ("merging", include_str!("../../../../docs/reference/findings/merging.md")),
    ("no-free-request", include_str!("../../../../docs/reference/findings/no-free-request.md")),
    ("oltp", include_str!("../../../../docs/reference/workloads/oltp.md")),
    ("postgresql", include_str!("../../../../docs/reference/servers/postgresql.md")),
    ("read-before-write", include_str!("../../../../docs/reference/findings/read-before-write.md")),
    ("running-server", include_str!("../../../../docs/reference/servers/running-server.md")),
    ("stolen-cpu", include_str!("../../../../docs/reference/findings/stolen-cpu.md")),
    ("tpcc", include_str!("../../../../docs/reference/workloads/tpcc.md")),
    ("unsteady", include_str!("../../../../docs/reference/findings/unsteady.md")),
];

impl ExplainArgs {
    /// Prints a page.
    pub fn run(self) -> anyhow::Result<Exit> {
        let Some(topic) = self.topic else {
            for (name, page) in PAGES {
                let title = page.lines().next().unwrap_or("").trim_start_matches("# ");
                say::line(&format!("{name:20} {title}"))?;
            }
            return Ok(Exit::Done);
        };
        match PAGES.iter().find(|(name, _)| *name == topic) {
            Some((_, page)) => {
                say::result(page)?;
                Ok(Exit::Done)
            }
            None => {
                let names: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
                Err(Usage(format!("there is no page on '{topic}'; there are {}", names.join(", ")))
                    .into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_has_a_page() {
        for id in analysis::FindingKind::all().map(analysis::FindingKind::id) {
            assert!(PAGES.iter().any(|(name, _)| *name == id), "docs/reference/findings/{id}.md");
        }
    }

    #[test]
    fn every_database_workload_and_server_has_a_page() {
        for kind in workload::DatabaseKind::ALL {
            let page = if kind.is_oltp() { "oltp".to_owned() } else { kind.to_string() };
            let (_, text) = PAGES.iter().find(|(name, _)| *name == page).unwrap();
            assert!(text.contains(&kind.to_string()), "{kind}");
        }
        for server in ["mariadb", "postgresql", "running-server"] {
            assert!(
                PAGES.iter().any(|(name, _)| *name == server),
                "docs/reference/servers/{server}.md"
            );
        }
    }
}
