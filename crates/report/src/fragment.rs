//! A database server's variables, as a part of its configuration file.

use crate::words;
use analysis::changes;
use plan::Factor;
use record::{Aspect, Fact, Run};
use std::collections::BTreeMap;
use workload::{Dialect, PrivateServer, Server, VariableSet};

/// The variables that a cell changes, in the form of the server's configuration file; `None` where it
/// changes none.
pub fn fragment(run: &Run, cell: usize) -> Option<String> {
    let variables = variables(run, cell);
    if variables.is_empty() {
        return None;
    }
    let (workload, _) = run.plan.workload_of(run.plan.cells.get(cell)?).ok()?;
    let server = workload.database?.server;
    let version = run.environment.fact(Aspect::Server, Fact::SERVER_VERSION);
    let title = version.map_or_else(|| server.to_string(), str::to_owned);
    let mut text = format!(
        "# {title}; measured {} by Spindle, run {}\n",
        words::date(run.started_at),
        run.name
    );
    match server.dialect() {
        Dialect::MySql => {
            let of_mariadb = match &server {
                Server::Private(kind) => *kind == PrivateServer::MariaDb,
                Server::Url(_) => version.is_some_and(|it| it.contains("MariaDB")),
            };
            text.push_str(if of_mariadb { "[mariadb]\n" } else { "[mysqld]\n" });
            for (name, value) in variables {
                text.push_str(&format!("{name} = {}\n", option_value(&value)));
            }
        }
        Dialect::PostgreSql => {
            for (name, value) in variables {
                text.push_str(&format!("{name} = '{}'\n", value.replace('\'', "''")));
            }
        }
    }
    Some(text)
}

fn variables(run: &Run, cell: usize) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for change in changes(run, cell) {
        match change.factor {
            Factor::Variable { name } => {
                all.insert(name, change.to.0);
            }
            Factor::Variables => {
                if let Ok(set) = change.to.0.parse::<VariableSet>() {
                    all.extend(set.variables);
                }
            }
            _ => {}
        }
    }
    all
}

/// As an option file takes it: quoted where a `#`, a space or a quote would end it.
fn option_value(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.,/:+=".contains(c);
    match !value.is_empty() && value.chars().all(plain) {
        true => value.to_owned(),
        false => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
