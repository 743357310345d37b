//! What a disk's other fits rest on.

/// What the first reads tell.
#[derive(Clone, Copy, Debug)]
pub struct Basics {
    /// What a command costs without the medium, ms; None where nothing is answered from a buffer.
    pub command: Option<f64>,
    /// A turn, ms.
    pub turn: f64,
}

impl Basics {
    /// Longest answer that a buffer gives, ms: no seek and rotation is below it but one in some tens.
    pub fn hit(&self) -> f64 {
        self.command.map_or(0.0, |command| command * 1.5 + self.turn / 40.0)
    }
}
