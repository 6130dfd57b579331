//! Pools: the part of the cluster a node belongs to, whether it takes work, and who must stay in one.

use serde::{Deserialize, Serialize};

/// Whether tasks that run at one time must run in one pool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolRule {
    #[default]
    Any,
    Same,
}

impl PoolRule {
    pub const NAMES: [(&str, PoolRule); 2] = [("any", PoolRule::Any), ("same", PoolRule::Same)];
}

/// Who stays in one pool where a job does not say.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolDefault {
    /// Nobody.
    #[default]
    Any,
    /// Each group for itself.
    Group,
    /// All groups of a job together.
    Job,
}

impl PoolDefault {
    pub const NAMES: [(&str, PoolDefault); 3] =
        [("any", PoolDefault::Any), ("group", PoolDefault::Group), ("job", PoolDefault::Job)];
}

/// Whether the nodes of a pool take work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolState {
    #[default]
    Enabled,
    /// Only more of what is bound to the pool already.
    Cordoned,
    /// Nothing new at all.
    Disabled,
}

impl PoolState {
    pub const NAMES: [(&str, PoolState); 3] = [
        ("enabled", PoolState::Enabled),
        ("cordoned", PoolState::Cordoned),
        ("disabled", PoolState::Disabled),
    ];
}

/// What stays in one pool while something of it runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Tie {
    #[default]
    None,
    /// The tasks of the group.
    Group,
    /// The tasks of all groups of its job.
    Job,
}

impl Tie {
    /// What a job and one of its groups ask for, and what holds where they do not say. A group's own word
    /// counts against the default, not against that of its job.
    pub fn of(job: Option<PoolRule>, group: Option<PoolRule>, default: PoolDefault) -> Tie {
        match (job, group, default) {
            (Some(PoolRule::Same), ..) => Tie::Job,
            (_, Some(PoolRule::Any), _) => Tie::None,
            (None, _, PoolDefault::Job) => Tie::Job,
            (_, Some(PoolRule::Same), _) => Tie::Group,
            (None, None, PoolDefault::Group) => Tie::Group,
            _ => Tie::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_speaks_before_its_groups_and_both_before_the_default() {
        use PoolDefault as D;
        use PoolRule::{Any, Same};
        let cases = [
            (None, None, D::Any, Tie::None),
            (None, None, D::Group, Tie::Group),
            (None, None, D::Job, Tie::Job),
            (None, Some(Any), D::Job, Tie::None),
            (None, Some(Same), D::Any, Tie::Group),
            (None, Some(Same), D::Job, Tie::Job),
            (Some(Any), None, D::Job, Tie::None),
            (Some(Any), Some(Same), D::Job, Tie::Group),
            (Some(Same), Some(Any), D::Any, Tie::Job),
        ];
        for (job, group, default, tie) in cases {
            assert_eq!(Tie::of(job, group, default), tie, "{job:?} {group:?} {default:?}");
        }
    }
}
