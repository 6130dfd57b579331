//! What becomes of a group that can never fit.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnsatisfiable {
    /// It waits, and says so when it is asked.
    #[default]
    Wait,
    /// It is ended with the reason, when it is submitted or as soon as the cluster has changed so.
    Fail,
}

impl OnUnsatisfiable {
    /// Under their names in files.
    pub const NAMES: [(&'static str, OnUnsatisfiable); 2] =
        [("wait", OnUnsatisfiable::Wait), ("fail", OnUnsatisfiable::Fail)];
}
