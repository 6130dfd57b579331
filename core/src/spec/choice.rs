//! Which of several nodes with room a task goes to.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeChoice {
    /// The one with the fewest tasks: work is laid level over the nodes.
    #[default]
    Spread,
    /// The one that has the least left of what is scarce: large places stay whole.
    Pack,
}

impl NodeChoice {
    /// Under their names in files.
    pub const NAMES: [(&'static str, NodeChoice); 2] =
        [("spread", NodeChoice::Spread), ("pack", NodeChoice::Pack)];
}
