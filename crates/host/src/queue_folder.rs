//! The settings of a device's queue: reading them, what would be refused, writing them.
//!
//! Nothing outside this crate writes a setting but through [`crate::Changes`], so that every change
//! is in a journal before it is made.

use crate::{
    DeviceNumber, Error, Host, Queue, Refusal, Result, SchedulerChoice, Setting,
    error::io_error,
    kept::{AtMost, kept},
    loadable::loadable_schedulers,
    queue::{NR_REQUESTS_MIN, ceiling, tunables},
    refusal::meant,
    setting::ASYNC_DEPTH,
};
use scheduler::{KernelVersion, SchedulerKind};
use std::{collections::BTreeMap, fs, io, io::Write, path::PathBuf, thread::sleep, time::Duration};

/// A device's queue, to be asked and changed.
#[derive(Clone, Debug)]
pub struct QueueFolder {
    title: String,
    disk: PathBuf,
}

impl QueueFolder {
    /// Of the device with `number`; of the whole disk for a partition.
    pub fn of(host: &Host, number: DeviceNumber) -> Result<QueueFolder> {
        let disk = host.disk_folder(number)?;
        let name = disk.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(QueueFolder { title: format!("{name} ({number})"), disk })
    }

    fn file(&self, setting: &Setting) -> PathBuf {
        self.disk.join("queue").join(setting.to_string())
    }

    /// The value now, as the kernel writes it; for the scheduler only the current one's name.
    pub fn read(&self, setting: &Setting) -> Result<String> {
        let path = self.file(setting);
        let text = fs::read_to_string(&path).map_err(io_error("read", &path))?;
        if *setting != Setting::Scheduler {
            return Ok(text.trim().to_owned());
        }
        let choice = SchedulerChoice::parse(&text);
        choice.map(|choice| choice.current).ok_or(Error::Format {
            path,
            text: text.trim().to_owned(),
            expected: "a list of schedulers",
        })
    }

    /// All settings that are there, in the order in which they must be restored.
    pub fn read_all(&self) -> BTreeMap<Setting, String> {
        let mut all: BTreeMap<Setting, String> = tunables(&self.disk.join("queue"))
            .into_iter()
            .map(|(name, value)| (Setting::Tunable(name), value))
            .collect();
        for (setting, _) in crate::setting::PLAIN {
            if let Ok(value) = self.read(&setting) {
                all.insert(setting, value);
            }
        }
        all
    }

    /// Whether `value` would be taken, and as what: `deadline` becomes `mq-deadline`, 1 request 4.
    ///
    /// `under` is the scheduler that will be in use then; without it, the current one is.
    pub fn check(
        &self,
        setting: &Setting,
        value: &str,
        under: Option<&str>,
    ) -> std::result::Result<String, Refusal> {
        let value = value.trim();
        let queue = Queue::read(&Host::here(), &self.disk);
        let choice = queue.as_ref().and_then(|queue| queue.scheduler.clone());
        let needs_scheduler = matches!(
            setting,
            Setting::Scheduler | Setting::NrRequests | Setting::AsyncDepth | Setting::Tunable(_)
        );
        let choice = match choice {
            Some(choice) => Some(choice),
            None if needs_scheduler => return Err(self.no_scheduler()),
            None => None,
        };
        let current = choice.as_ref().map(|choice| choice.current.as_str()).unwrap_or_default();
        let offered = |name: &&str| {
            choice.as_ref().is_some_and(|choice| choice.available.iter().any(|it| it == name))
        };
        let under = under.map_or(current, |name| {
            Some(name).filter(offered).unwrap_or_else(|| resolve_alias(name))
        });
        let taken = match (setting, &choice) {
            (Setting::Scheduler, Some(choice)) => self.check_scheduler(value, choice)?,
            (Setting::NrRequests, _) => {
                let tags = queue.and_then(|queue| queue.hardware_tags);
                self.check_nr_requests(value, under, tags)?
            }
            (Setting::AsyncDepth, _) => self.check_async_depth(value, under)?,
            (Setting::Tunable(name), _) => self.check_tunable(name, value, under, current)?,
            _ => self.check_number(setting, value)?,
        };
        let there = self.file(setting);
        let other_scheduler = matches!(setting, Setting::Tunable(_)) && under != current;
        if !other_scheduler && rustix::fs::access(&there, rustix::fs::Access::WRITE_OK).is_err() {
            return Err(Refusal::NotPermitted {
                device: self.title.clone(),
                setting: setting.clone(),
            });
        }
        Ok(taken)
    }

    fn no_scheduler(&self) -> Refusal {
        let why = "it passes its requests on to the devices below it; \
                   set the scheduler there (spindle inspect shows which)";
        Refusal::NoScheduler { device: self.title.clone(), why: why.to_owned() }
    }

    fn check_scheduler(
        &self,
        asked: &str,
        choice: &SchedulerChoice,
    ) -> std::result::Result<String, Refusal> {
        // Kernels before 5.0 may have `deadline` itself.
        let offered = |name: &str| choice.available.iter().any(|it| it == name);
        if offered(asked) {
            return Ok(asked.to_owned());
        }
        let name = resolve_alias(asked);
        if offered(name) || loadable_schedulers(&Host::here()).iter().any(|it| it.name() == name) {
            return Ok(name.to_owned());
        }
        let known: Option<SchedulerKind> = name.parse().ok();
        let removed = known.and_then(|kind| {
            let spec = kind.spec();
            Some(format!(
                "; {name} was removed in Linux {}, the nearest to it is {}",
                spec.versions.until?, spec.successor?
            ))
        });
        let hint = removed
            .or_else(|| module_hint(known?))
            .unwrap_or_else(|| meant(name, choice.available.iter()));
        Err(Refusal::UnknownScheduler {
            device: self.title.clone(),
            asked: asked.to_owned(),
            available: choice.available.clone(),
            hint,
        })
    }

    fn check_nr_requests(
        &self,
        asked: &str,
        scheduler: &str,
        tags: Option<u32>,
    ) -> std::result::Result<String, Refusal> {
        let asked = whole_number(&Setting::NrRequests, asked)?;
        if let Some(ceiling) = ceiling(scheduler, tags)
            && asked > u64::from(ceiling.value)
        {
            return Err(Refusal::NrRequestsTooHigh {
                device: self.title.clone(),
                asked,
                scheduler: scheduler.to_owned(),
                ceiling: ceiling.value,
                why: ceiling.why,
            });
        }
        Ok(asked.max(u64::from(NR_REQUESTS_MIN)).to_string())
    }

    fn check_async_depth(
        &self,
        asked: &str,
        scheduler: &str,
    ) -> std::result::Result<String, Refusal> {
        let setting = Setting::AsyncDepth;
        if self.read(&setting).is_err() {
            return Err(Refusal::NoSuchSetting {
                device: self.title.clone(),
                setting,
                why: "Linux has it since 7.0; before, mq-deadline has one of its own \
                      (--tunable mq-deadline.async_depth=LIST)"
                    .to_owned(),
            });
        }
        if scheduler == SchedulerKind::None.name() {
            return Err(Refusal::NeedsScheduler { device: self.title.clone(), setting });
        }
        match whole_number(&setting, asked)? {
            0 => Err(Refusal::BadValue {
                setting,
                asked: asked.to_owned(),
                needed: "a whole number from 1 up".to_owned(),
            }),
            value => Ok(value.to_string()),
        }
    }

    fn check_tunable(
        &self,
        name: &str,
        value: &str,
        under: &str,
        current: &str,
    ) -> std::result::Result<String, Refusal> {
        let available: Vec<String> = if under == current {
            tunables(&self.disk.join("queue")).into_keys().collect()
        } else {
            // The kernel lists the tunables of the current scheduler alone. What a scheduler of no
            // table has shows once it is in use: setting it then says what is wrong.
            let setting = Setting::Tunable(name.to_owned());
            let Ok(kind) = under.parse::<SchedulerKind>() else {
                return whole_number(&setting, value).map(|value| value.to_string());
            };
            let version = kernel_version();
            let known = kind.spec().tunables.iter();
            let here =
                known.filter(|it| version.is_none_or(|version| it.versions.contain(version)));
            here.map(|tunable| tunable.name.to_owned()).collect()
        };
        if !available.iter().any(|it| it == name) {
            let of_the_queue = name == ASYNC_DEPTH && self.read(&Setting::AsyncDepth).is_ok();
            return Err(Refusal::UnknownTunable {
                scheduler: under.to_owned(),
                asked: name.to_owned(),
                hint: match of_the_queue {
                    true => "; since Linux 7.0 it is the queue's: --async-depth LIST".to_owned(),
                    false => meant(name, available.iter()),
                },
                available,
            });
        }
        kept_number(&Setting::Tunable(name.to_owned()), under, value)
    }

    fn check_number(&self, setting: &Setting, value: &str) -> std::result::Result<String, Refusal> {
        // An absent wbt_lat_usec also fails to be read (EINVAL) while throttling is not built in.
        if self.read(setting).is_err() {
            let why = match setting {
                Setting::WbtLatUsec => {
                    "write-back throttling is not built into this kernel, or the device passes requests on"
                }
                _ => "this kernel or driver does not have it",
            };
            return Err(Refusal::NoSuchSetting {
                device: self.title.clone(),
                setting: setting.clone(),
                why: why.to_owned(),
            });
        }
        kept_number(setting, "", value)
    }

    /// Writes `value`, trying again for two seconds while the kernel is busy, and reads back.
    pub(crate) fn write(&self, setting: &Setting, value: &str) -> Result<String> {
        let path = self.file(setting);
        match setting {
            Setting::NrRequests => self.unsettle(&path, value)?,
            Setting::WbtLatUsec => self.awaken(&path, value)?,
            _ => {}
        }
        write_patiently(&path, value).map_err(io_error("set", &path))?;
        self.read(setting)
    }

    /// Without a scheduler, nr_requests is how many of the device's tags are in use, and that outlives a
    /// change to a scheduler and back, while what is *shown* is reset by each (seen on 6.18). A
    /// write of what is shown does nothing: another value first makes it count.
    fn unsettle(&self, path: &PathBuf, value: &str) -> Result<()> {
        let shown = self.read(&Setting::NrRequests)?;
        let none =
            self.read(&Setting::Scheduler).is_ok_and(|now| now == SchedulerKind::None.name());
        let other = shown.parse::<u32>().ok().and_then(|shown| shown.checked_sub(1));
        match other.filter(|other| none && shown == value && *other >= NR_REQUESTS_MIN) {
            Some(other) => write_patiently(path, &other.to_string()).map_err(io_error("set", path)),
            None => Ok(()),
        }
    }

    /// bfq switches write-back throttling off, which then shows as 0, while the kernel still has the latency
    /// of before: a write of that one does nothing (seen on 6.18). Another one first makes it count.
    fn awaken(&self, path: &PathBuf, value: &str) -> Result<()> {
        match value.parse::<u32>() {
            Ok(wanted @ 1..) if self.read(&Setting::WbtLatUsec).is_ok_and(|now| now == "0") => {
                let other = wanted.saturating_add(1).to_string();
                write_patiently(path, &other).map_err(io_error("set", path))
            }
            _ => Ok(()),
        }
    }

    /// Makes the device use all the tags that it shows, where no scheduler hides how many it uses.
    pub(crate) fn use_all_tags(&self) -> Result<()> {
        let none =
            self.read(&Setting::Scheduler).is_ok_and(|now| now == SchedulerKind::None.name());
        if !none {
            return Ok(());
        }
        let shown = self.read(&Setting::NrRequests)?;
        self.write(&Setting::NrRequests, &shown).map(drop)
    }
}

/// EBUSY comes while udev works on the device: 20 tries, 5 ms apart at first and 200 ms at last.
fn write_patiently(path: &PathBuf, value: &str) -> io::Result<()> {
    let mut pause = Duration::from_millis(5);
    for _ in 0..19 {
        match fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes()) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => sleep(pause),
            outcome => return outcome,
        }
        pause = (pause * 2).min(Duration::from_millis(200));
    }
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// What the kernel would keep of a number.
fn kept_number(
    setting: &Setting,
    scheduler: &str,
    asked: &str,
) -> std::result::Result<String, Refusal> {
    let bad = |AtMost(most)| Refusal::BadValue {
        setting: setting.clone(),
        asked: asked.to_owned(),
        needed: format!("a whole number from 0 to {most}"),
    };
    let number = whole_number(setting, asked)?;
    kept(setting, scheduler, number).map(|kept| kept.to_string()).map_err(bad)
}

fn whole_number(setting: &Setting, value: &str) -> std::result::Result<u64, Refusal> {
    value.parse().map_err(|_| Refusal::BadValue {
        setting: setting.clone(),
        asked: value.to_owned(),
        needed: "a whole number from 0 up".to_owned(),
    })
}

/// The alias that the kernel knows, and what `elevator=as` named.
fn resolve_alias(scheduler: &str) -> &str {
    match scheduler {
        "deadline" => SchedulerKind::MqDeadline.name(),
        "as" => SchedulerKind::Anticipatory.name(),
        other => other,
    }
}

/// The running kernel's version, if its release begins with one.
fn kernel_version() -> Option<KernelVersion> {
    rustix::system::uname().release().to_string_lossy().parse().ok()
}

/// A scheduler that this kernel has not.
fn module_hint(scheduler: SchedulerKind) -> Option<String> {
    scheduler.spec().module.map(|_| "; this kernel was built without it".to_owned())
}
