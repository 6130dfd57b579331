//! Every decision of Plimsoll, as plain state machines.
//!
//! Nothing in here reads a clock, touches a file, spawns a thread or draws a random number it was
//! not given the seed for. Six machines ([`JobState`](job_state), [`Scheduler`](scheduler),
//! [`ClusterState`](cluster_state), [`TaskRunner`](task_runner), [`NodeAgent`](node_agent),
//! [`Rebalancer`](rebalancer)) exchange the messages of [`messages`]; the same machines run under
//! actix, in the deterministic world ([`sim`]) and in dry runs ([`plan`]).

pub mod breakdown;
pub mod claim_note;
pub mod cluster_state;
pub mod codec;
pub mod collections;
pub mod constraint;
pub mod document;
pub mod explanation;
pub mod gate_explanation;
pub mod id;
pub mod job_state;
pub mod machine;
pub mod machines;
pub mod messages;
pub mod monitor;
mod mutation;
pub mod nearest;
pub mod node_agent;
pub mod outcome;
pub mod plan;
pub mod quantity;
pub mod rebalancer;
pub mod resources;
pub mod roll_up;
pub mod scheduler;
pub mod settings;
pub mod share_explanation;
pub mod share_report;
pub mod shares;
pub mod sim;
pub mod spec;
pub mod task_runner;
pub mod time;
pub mod turn_log;
