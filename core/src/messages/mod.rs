//! What the machines say to each other. One enum per hearer; a batch keeps the order of emission.

mod agent;
mod audit;
mod claims;
mod cluster;
mod host;
mod jobs;
mod outbox;
mod rebalancer;
mod runner;
mod scheduler;
mod usage;

pub use agent::{AgentMessage, ExecutorMessage};
pub use audit::{Audit, Audited, Finding, MonitorMessage, NodeAudit};
pub use claims::{ClaimEvent, ClaimNews, ClaimView};
pub use cluster::{ClusterMessage, EndReport, Placement, Plan, PlanPart, Preparation, StopOrder, Withdrawal};
pub use host::{
    Answer, AttemptRecord, HostMessage, JobEvent, NodeEvent, Refusal, Returned, RoleSize, TaskHistory,
    WaitingEntry,
};
pub use jobs::{Addressed, Cancelled, JobMessage, Resize, Started};
pub use outbox::Outbox;
pub use rebalancer::{RebalancerMessage, ShareFigure};
pub use runner::{AgentReport, Launch, RunnerMessage};
pub use scheduler::{
    Adopted, Extended, GroupArrival, NodeNews, NodeView, PastFailure, Released, Reprioritised, ReturnedTask,
    RoleArrival, SchedulerMessage,
};
pub use usage::{StateTime, UsageAnswer, UsageEntry, UsageOf};
