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
    /// Those of the requestor, then those that were granted to him and few others, then those of named pools,
    /// then the rest: what is for everybody is left to everybody. Among equals the one with the fewest tasks.
    OwnFirst,
}

impl NodeChoice {
    /// Under their names in files.
    pub const NAMES: [(&'static str, NodeChoice); 3] =
        [("spread", NodeChoice::Spread), ("pack", NodeChoice::Pack), ("own_first", NodeChoice::OwnFirst)];
}
