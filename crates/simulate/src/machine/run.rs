//! Runs of pages that are being read or written.

use crate::machine::TaskId;

/// Neighbouring pages of a file that are read or written with one bio.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub file: u16,
    pub first: u32,
    pub count: u32,
    pub write: bool,
    /// Written by the flusher; write-back throttling counts these.
    pub background: bool,
    pub live: bool,
    pub waiters: Vec<TaskId>,
}

/// All runs, by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    all: Vec<Run>,
    free: Vec<u32>,
}

impl Runs {
    pub fn begin(&mut self, run: Run) -> u32 {
        match self.free.pop() {
            Some(name) => {
                self.all[name as usize] = run;
                name
            }
            None => {
                self.all.push(run);
                (self.all.len() - 1) as u32
            }
        }
    }

    pub fn end(&mut self, name: u32) -> Run {
        self.free.push(name);
        std::mem::take(&mut self.all[name as usize])
    }

    /// Registers `task` to be woken when a run ends.
    pub fn wait(&mut self, name: u32, task: TaskId) {
        self.all[name as usize].waiters.push(task);
    }

    /// Outstanding writes of a file.
    pub fn writes_of(&self, file: u16) -> Vec<u32> {
        let of = |(_, run): &(usize, &Run)| run.live && run.write && run.file == file;
        self.all.iter().enumerate().filter(of).map(|(name, _)| name as u32).collect()
    }
}
