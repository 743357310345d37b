//! Shares.

use serde::{Deserialize, Serialize};

/// A share in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SharePermille(pub u32);
