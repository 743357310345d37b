//! Whether rules apply to an event: yes, no, or it depends on what cannot be known here.

use super::{
    event::{Event, Known, Parent},
    rule::{Op, Rule, Token},
};
use crate::owner::glob;

/// That a rule applies, and on what that depends.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Empty: it applies for certain.
    pub unknown: Vec<String>,
}

/// Whether one condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Truth {
    Yes,
    No,
    Unknown(String),
}

impl Truth {
    fn of(holds: bool) -> Truth {
        if holds { Truth::Yes } else { Truth::No }
    }
}

/// Goes through the rules of a file and calls `applies` with each that applies or may apply.
pub(super) fn evaluate(
    rules: &[Rule],
    event: &mut Event<'_>,
    applies: &mut dyn FnMut(&Rule, &Event<'_>, &Outcome),
) {
    let mut at = 0;
    // A GOTO whose rule may apply: what it would leave out depends on the same.
    let mut perhaps_left_out: Vec<(usize, Vec<String>)> = Vec::new();
    while let Some(rule) = rules.get(at) {
        perhaps_left_out.retain(|(until, _)| *until > at);
        at += 1;
        let Some(mut outcome) = outcome(rule, event) else { continue };
        let own = outcome.unknown.clone();
        for (_, unknown) in &perhaps_left_out {
            outcome.unknown.extend(unknown.iter().cloned());
        }
        set_properties(rule, event, &outcome);
        applies(rule, event, &outcome);
        if let Some(label) = rule.tokens.iter().find(|token| token.key == "GOTO") {
            let is_label = |token: &Token| token.key == "LABEL" && token.value == label.value;
            let to = (at..rules.len()).find(|it| rules[*it].tokens.iter().any(is_label));
            match to {
                Some(to) if outcome.unknown.is_empty() => at = to,
                Some(to) => perhaps_left_out.push((to, own)),
                // udev ignores one that leads nowhere.
                None => {}
            }
        }
    }
}

/// None when a condition does not hold.
fn outcome(rule: &Rule, event: &Event<'_>) -> Option<Outcome> {
    let mut outcome = Outcome::default();
    let mut of_parents = Vec::new();
    for token in &rule.tokens {
        let truth = match token.key.as_str() {
            "KERNELS" | "SUBSYSTEMS" | "DRIVERS" | "ATTRS" | "TAGS" => {
                of_parents.push(token);
                continue;
            }
            // Its success is a condition, whatever the operator; what it finds is in udev's record.
            "PROGRAM" => unknown(token),
            "IMPORT" => match token.attribute.as_deref() {
                Some("program" | "file") => unknown(token),
                _ => continue,
            },
            _ if token.op.assigns() => continue,
            _ => holds(token, event),
        };
        match truth {
            Truth::Yes => {}
            Truth::No => return None,
            Truth::Unknown(condition) => outcome.unknown.push(condition),
        }
    }
    match one_parent(&of_parents, event) {
        Truth::Yes => {}
        Truth::No => return None,
        Truth::Unknown(condition) => outcome.unknown.push(condition),
    }
    outcome.unknown.dedup();
    Some(outcome)
}

/// All of these conditions must hold for one and the same parent.
fn one_parent(tokens: &[&Token], event: &Event<'_>) -> Truth {
    if tokens.is_empty() {
        return Truth::Yes;
    }
    let mut unknown = None;
    for parent in event.parents() {
        let mut all = Truth::Yes;
        for token in tokens {
            match parent_holds(token, &parent, event) {
                Truth::Yes => {}
                Truth::No => {
                    all = Truth::No;
                    break;
                }
                depends => all = depends,
            }
        }
        match all {
            Truth::Yes => return Truth::Yes,
            Truth::No => {}
            depends => unknown = unknown.or(Some(depends)),
        }
    }
    unknown.unwrap_or(Truth::No)
}

fn parent_holds(token: &Token, parent: &Parent, event: &Event<'_>) -> Truth {
    match token.key.as_str() {
        "KERNELS" => compare(token, &parent.name()),
        "DRIVERS" => compare(token, &parent.link("driver").unwrap_or_default()),
        "SUBSYSTEMS" => match parent.link("subsystem") {
            Some(name) => compare(token, &name),
            None if parent.folder == event.view.folder => compare(token, "block"),
            None => Truth::No,
        },
        "ATTRS" => attribute(token, parent, event),
        // Only the device's own are noted.
        _ if parent.folder == event.view.folder => tags(token, event),
        _ => Truth::No,
    }
}

fn holds(token: &Token, event: &Event<'_>) -> Truth {
    match token.key.as_str() {
        "ACTION" => compare(token, event.action),
        "SUBSYSTEM" => compare(token, "block"),
        "KERNEL" => compare(token, &event.this().name()),
        "DEVPATH" => known(token, event.property("DEVPATH")),
        "DRIVER" => compare(token, &event.this().link("driver").unwrap_or_default()),
        "NAME" => compare(token, ""),
        "ENV" => known(token, event.property(token.attribute.as_deref().unwrap_or_default())),
        "ATTR" => attribute(token, &event.this(), event),
        "TAG" => tags(token, event),
        "SYMLINK" => match event.links() {
            Some(links) => any(token, links),
            None => unknown(token),
        },
        "TEST" => test(token, event),
        "SYSCTL" => {
            let name = token.attribute.as_deref().unwrap_or_default().replace('.', "/");
            match event.view.host.text(format!("/proc/sys/{name}")) {
                Some(value) => compare(token, &value),
                None => Truth::No,
            }
        }
        // RESULT of a program that is not run here, CONST, and keys of a newer udev.
        _ => unknown(token),
    }
}

fn attribute(token: &Token, parent: &Parent, event: &Event<'_>) -> Truth {
    let name = event.substitute(token.attribute.as_deref().unwrap_or_default());
    // `[subsystem/device]attribute`.
    if name.starts_with('[') || name.starts_with('/') {
        return unknown(token);
    }
    match parent.attribute(&name) {
        Some(value) => compare(token, &value),
        // An attribute that is not there is neither equal nor unequal.
        None => Truth::No,
    }
}

fn tags(token: &Token, event: &Event<'_>) -> Truth {
    match event.tags() {
        Some(tags) => any(token, tags),
        None => unknown(token),
    }
}

fn test(token: &Token, event: &Event<'_>) -> Truth {
    let name = event.substitute(&token.value);
    let there = match name.strip_prefix('/') {
        Some(_) => Parent { folder: event.view.host.path("/") }.has(name.trim_start_matches('/')),
        None => event.this().has(&name),
    };
    Truth::of(there == (token.op == Op::Equal))
}

fn known(token: &Token, value: Known) -> Truth {
    match value {
        Known::Value(value) => compare(token, &value),
        Known::No(why) => Truth::Unknown(why),
    }
}

fn compare(token: &Token, value: &str) -> Truth {
    any(token, &[value.to_owned()])
}

/// Whether one of the values is as the token wants it; with `!=`, none of them.
fn any(token: &Token, values: &[String]) -> Truth {
    let found = values.iter().any(|value| match token.any_case {
        true => glob::matches(&token.value.to_lowercase(), &value.to_lowercase()),
        false => glob::matches(&token.value, value),
    });
    Truth::of(found == (token.op == Op::Equal))
}

fn unknown(token: &Token) -> Truth {
    let attribute = token.attribute.as_ref().map_or(String::new(), |it| format!("{{{it}}}"));
    let sign = match token.op {
        Op::NotEqual => "!=",
        Op::Equal => "==",
        _ => "=",
    };
    Truth::Unknown(format!("{}{attribute}{sign}\"{}\"", token.key, token.value))
}

fn set_properties(rule: &Rule, event: &mut Event<'_>, outcome: &Outcome) {
    for token in &rule.tokens {
        let Some(key) = token.attribute.as_deref() else { continue };
        if token.key != "ENV" || !token.op.assigns() {
            continue;
        }
        let value = event.substitute(&token.value);
        let value = match token.op {
            Op::Add | Op::Remove => Known::No(format!("ENV{{{key}}}, a list")),
            _ if !outcome.unknown.is_empty() => {
                // The record of the last event has what came of it then.
                continue;
            }
            _ => Known::Value(value),
        };
        event.set_property(key, value);
    }
}
