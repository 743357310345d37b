//! A database server on the machine.

use super::{Machine, Step, TaskId};
use crate::stage::Stage;
use device::Device;

/// A database server: clients' tasks and its own threads run it, stage by stage.
pub(crate) trait Server<D: Device + ?Sized> {
    /// Does a stage of a task. What it waits for, and the stage after it, is the step.
    fn serve(&mut self, machine: &mut Machine<D>, id: TaskId, stage: Stage) -> Step;

    /// What it counts: name, value, and whether the value is a sum since the beginning.
    fn counters(&self) -> Vec<(&'static str, f64, bool)>;
}

impl<D: Device + ?Sized> Machine<D> {
    /// A stage of the server's, which is taken out of the machine meanwhile.
    pub(super) fn serve(&mut self, id: TaskId, stage: Stage) -> Step {
        let Some(mut server) = self.server.take() else { return Step::Done };
        let step = server.serve(self, id, stage);
        self.server = Some(server);
        step
    }
}
