//! Names inside the machines: small integers, ordered by arrival.
//!
//! A group's id contains its job, so a report that names a task leads to its job without a look-up,
//! and comparing ids compares arrivals: the last tie of every order.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A job, numbered from 1 in order of acceptance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct JobId(pub u64);

/// A group of a job: the job's number above 16 bits of group index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct GroupId(u64);

/// The `index`-th task of a role.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TaskId {
    pub group: GroupId,
    pub role: u16,
    pub index: u32,
}

/// One run of a task on one node. The number is the fence: whatever names an older number than the
/// live one changes nothing. The slot is where every machine keeps its record of the live attempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Attempt {
    pub task: TaskId,
    pub number: u32,
    pub slot: Slot,
}

/// A dense index of live attempts, handed out by the Scheduler and used again once released.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Slot(pub u32);

/// A node: a dense index, used again after the node was removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct NodeId(pub u32);

/// What a caller attaches to a request to recognise the answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Ticket(pub u64);

const GROUP_INDEX_BITS: u32 = 16;

/// More groups than this cannot be numbered inside one job.
pub const GROUPS_PER_JOB_MAX: usize = 1 << GROUP_INDEX_BITS;

/// More roles than this cannot be numbered inside one group.
pub const ROLES_PER_GROUP_MAX: usize = 1 << 16;

impl GroupId {
    pub fn new(job: JobId, index: u16) -> GroupId {
        assert!(job.0 < 1 << (u64::BITS - GROUP_INDEX_BITS), "job numbers have 48 bits");
        GroupId(job.0 << GROUP_INDEX_BITS | u64::from(index))
    }

    pub fn job(self) -> JobId {
        JobId(self.0 >> GROUP_INDEX_BITS)
    }

    /// A number that orders groups by arrival.
    pub fn order(self) -> u64 {
        self.0
    }

    pub fn index(self) -> usize {
        (self.0 & (GROUPS_PER_JOB_MAX as u64 - 1)) as usize
    }
}

impl TaskId {
    pub fn job(self) -> JobId {
        self.group.job()
    }
}

impl Slot {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl NodeId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {}", self.0)
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} group {}", self.job(), self.index())
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} role {} task {}", self.group, self.role, self.index)
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} attempt {}", self.task, self.number)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_knows_its_job_and_sorts_by_arrival() {
        let early = GroupId::new(JobId(7), 65_535);
        let late = GroupId::new(JobId(8), 0);
        assert_eq!((early.job(), early.index()), (JobId(7), 65_535));
        assert!(early < late);
    }

    #[test]
    fn an_attempt_stays_small() {
        assert_eq!(std::mem::size_of::<Attempt>(), 24);
    }
}
