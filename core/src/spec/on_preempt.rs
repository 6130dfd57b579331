//! What becomes of a task whose attempt was ended to make room for others.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnPreempt {
    /// It waits for another attempt.
    #[default]
    Requeue,
    /// It has failed.
    Fail,
    /// It is over, and nobody minds.
    Drop,
}

impl OnPreempt {
    /// Under their names in files.
    pub const NAMES: [(&'static str, OnPreempt); 3] =
        [("requeue", OnPreempt::Requeue), ("fail", OnPreempt::Fail), ("drop", OnPreempt::Drop)];
}
