//! An event of a device, as rules see it: its properties, its attributes, its parents.

use crate::{
    owner::View,
    tree::{names, text},
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// What is known of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Value(String),
    /// Why not.
    No(String),
}

/// An event and what rules have set so far.
pub(super) struct Event<'a> {
    pub view: &'a View<'a>,
    pub action: &'a str,
    properties: BTreeMap<String, Known>,
    /// Symlinks and tags, from what udev noted at the last event; none where it noted nothing.
    noted: Option<Noted>,
}

/// Udev's record of a device, `/run/udev/data/bMAJOR:MINOR`.
struct Noted {
    links: Vec<String>,
    tags: Vec<String>,
}

/// A device above another, or itself.
pub(super) struct Parent {
    pub folder: PathBuf,
}

impl<'a> Event<'a> {
    pub(super) fn of(view: &'a View<'a>, action: &'a str) -> Event<'a> {
        let mut properties = BTreeMap::new();
        let mut set = |key: &str, value: &str| {
            properties.insert(key.to_owned(), Known::Value(value.to_owned()));
        };
        let record =
            view.number.as_ref().and_then(|dev| view.host.text(format!("/run/udev/data/b{dev}")));
        // What udev's own programs found at the last event, they will find again.
        for line in record.iter().flat_map(|it| it.lines()) {
            if let Some((key, value)) = line.strip_prefix("E:").and_then(|it| it.split_once('=')) {
                set(key, value);
            }
        }
        let devpath = view.host.inside(&view.folder);
        let devpath = devpath.strip_prefix("/sys").unwrap_or(&devpath).display().to_string();
        set("DEVPATH", &devpath);
        set("DEVTYPE", "disk");
        set("DEVNAME", &format!("/dev/{}", view.name.replace('!', "/")));
        if let Some((major, minor)) = view.number.as_ref().and_then(|it| it.split_once(':')) {
            set("MAJOR", major);
            set("MINOR", minor);
        }
        let uevent = text(view.folder.join("uevent")).unwrap_or_default();
        for (key, value) in uevent.lines().filter_map(|line| line.split_once('=')) {
            // The kernel's DEVNAME has no folder.
            if key != "DEVNAME" {
                set(key, value);
            }
        }
        set("SUBSYSTEM", "block");
        set("ACTION", action);
        let lines = |kind: &str| -> Vec<String> {
            let record = record.iter().flat_map(|it| it.lines());
            record.filter_map(|line| line.strip_prefix(kind)).map(str::to_owned).collect()
        };
        let noted = record.is_some().then(|| Noted { links: lines("S:"), tags: lines("G:") });
        Event { view, action, properties, noted }
    }

    pub(super) fn property(&self, key: &str) -> Known {
        match (self.properties.get(key), &self.noted) {
            (Some(known), _) => known.clone(),
            (None, Some(_)) => Known::Value(String::new()),
            (None, None) => {
                Known::No(format!("ENV{{{key}}}, as udev has no record of this device"))
            }
        }
    }

    pub(super) fn set_property(&mut self, key: &str, value: Known) {
        self.properties.insert(key.to_owned(), value);
    }

    /// Names below `/dev` that lead to it, as of its last event.
    pub(super) fn links(&self) -> Option<&[String]> {
        self.noted.as_ref().map(|noted| noted.links.as_slice())
    }

    /// Its tags, as of its last event.
    pub(super) fn tags(&self) -> Option<&[String]> {
        self.noted.as_ref().map(|noted| noted.tags.as_slice())
    }

    pub(super) fn this(&self) -> Parent {
        Parent { folder: self.view.folder.clone() }
    }

    /// The device and those above it. A folder between them that is no device has no `uevent`; a tree
    /// that was made up may have none at all.
    pub(super) fn parents(&self) -> Vec<Parent> {
        let top = self.view.host.path("/sys/devices");
        let with_uevents = self.view.folder.join("uevent").exists();
        self.view
            .folder
            .ancestors()
            .take_while(|folder| *folder != top && folder.starts_with(&top))
            .filter(|folder| !with_uevents || folder.join("uevent").exists())
            .map(|folder| Parent { folder: folder.to_owned() })
            .collect()
    }

    /// `%k`, `$kernel` and their like; what is not known here stays as it is written.
    pub(super) fn substitute(&self, value: &str) -> String {
        let mut out = String::new();
        let mut rest = value;
        while let Some(at) = rest.find(['$', '%']) {
            out.push_str(&rest[..at]);
            let (sign, after) = rest[at..].split_at(1);
            if let Some(after) = after.strip_prefix(sign) {
                out.push_str(sign);
                rest = after;
                continue;
            }
            match self.substitution(sign, after) {
                Some((text, length)) => {
                    out.push_str(&text);
                    rest = &after[length..];
                }
                None => {
                    out.push_str(sign);
                    rest = after;
                }
            }
        }
        out + rest
    }

    /// The text of the one that `after` begins with, and how long its name is.
    fn substitution(&self, sign: &str, after: &str) -> Option<(String, usize)> {
        const NAMES: [(&str, &str); 14] = [
            ("kernel", "k"),
            ("number", "n"),
            ("devpath", "p"),
            ("devnode", "N"),
            ("tempnode", "N"),
            ("major", "M"),
            ("minor", "m"),
            ("parent", "P"),
            ("name", "D"),
            ("root", "r"),
            ("sys", "S"),
            ("id", "b"),
            ("attr", "s"),
            ("env", "E"),
        ];
        let (letter, mut length) = match sign {
            "$" => NAMES
                .iter()
                .find(|(name, _)| after.starts_with(name))
                .map(|(name, letter)| (*letter, name.len()))?,
            _ => (after.get(..1)?, 1),
        };
        let mut argument = None;
        if let Some(inside) = after[length..].strip_prefix('{') {
            let end = inside.find('}')?;
            argument = Some(&inside[..end]);
            length += end + 2;
        }
        let property = |key: &str| match self.property(key) {
            Known::Value(value) => Some(value),
            Known::No(_) => None,
        };
        let kernel = self.view.name.replace('!', "/");
        let text = match letter {
            "k" => kernel,
            "n" => {
                let digits =
                    kernel.len() - kernel.trim_end_matches(|c: char| c.is_ascii_digit()).len();
                kernel[kernel.len() - digits..].to_owned()
            }
            "p" => property("DEVPATH")?,
            "N" => format!("/dev/{kernel}"),
            "D" => kernel,
            "M" => property("MAJOR")?,
            "m" => property("MINOR")?,
            "r" => "/dev".to_owned(),
            "S" => "/sys".to_owned(),
            "b" => self.parents().first()?.name(),
            "P" => self.parents().get(1)?.name(),
            "s" => self.this().attribute(argument?)?,
            "E" => property(argument?)?,
            _ => return None,
        };
        Some((text, length))
    }
}

impl Parent {
    pub(super) fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        name.replace('!', "/")
    }

    /// The last part of where a link leads to: its driver, its subsystem.
    pub(super) fn link(&self, name: &str) -> Option<String> {
        let to = fs::read_link(self.folder.join(name)).ok()?;
        Some(to.file_name()?.to_string_lossy().into_owned())
    }

    /// The text of a file in its folder, or where a link of the driver's leads to.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let relative = Path::new(name).is_relative().then(|| self.folder.join(name))?;
        if matches!(name, "driver" | "subsystem" | "module") {
            return self.link(name);
        }
        let bytes = fs::read(relative).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    /// Whether there is a file of this name, or of this pattern of names.
    pub(super) fn has(&self, name: &str) -> bool {
        let path = self.folder.join(name);
        let folder = path.parent().unwrap_or(Path::new("/"));
        let wanted = path.file_name().unwrap_or_default().to_string_lossy();
        path.exists() || names(folder).iter().any(|it| crate::owner::glob::matches(&wanted, it))
    }
}
