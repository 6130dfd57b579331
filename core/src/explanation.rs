//! Why something waits: as data, and as one sentence.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::breakdown::Breakdown;
pub use crate::claim_note::{ClaimNote, KeptNode};
use crate::gate_explanation::{GateOutlook, RunningTask};
use crate::id::{GroupId, TaskId};
pub use crate::nearest::{Amounts, Nearest, NewPlace};
use crate::resources::Kinds;
use crate::share_explanation::{LimitReason, ShareExplanation};
use crate::spec::Filter;
use crate::time::Time;

/// What an explanation is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Subject {
    Group(GroupId),
    Task(TaskId),
}

/// Why tasks of one group wait, true at the version it is stamped with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// Tasks of this group, or of the role that is spoken of, that wait.
    pub waiting: u64,
    /// The role that is spoken of, where several roles of a group wait and do not start together: each of them
    /// waits for reasons of its own.
    pub role: Option<u16>,
    /// Waiting tasks of other groups that come first: those of strict bands before its own, and in its own
    /// queue those that are before it in order.
    pub ahead: u64,
    pub reason: Reason,
    /// What would still keep it if that were over: a lack of room besides a limit, or a limit besides that.
    pub besides: Option<Box<Reason>>,
    /// Which share it waits in, and whose turn it is; nothing where everything is one share.
    pub share: Option<Box<ShareExplanation>>,
    /// Whether somebody could be stopped for it; nothing where nothing is ever taken away.
    pub gate: Option<Box<GateOutlook>>,
    /// What is kept for it, or from it.
    pub claim: Option<Box<ClaimNote>>,
    /// The settings version the answer was computed with.
    pub settings: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Nothing of the group waits.
    NotWaiting,
    /// The task that was asked about runs: what could stop it, and what protects it.
    Running(Box<RunningTask>),
    /// Its window collects identical tasks until then.
    Window { closes: Time },
    /// Attempts of these tasks did not end well, and the first of them is tried again at this moment.
    Delayed { until: Time },
    /// Members of the group still have to end before it can start again as a whole.
    Stopping { live: u64 },
    /// The host has not dealt with earlier assignments yet.
    NoCredit,
    /// The last turn had enough to do: the next one looks for a place.
    NextTurn,
    /// A limit keeps it, whatever room there is.
    Limited(LimitReason),
    /// The group has its minimum and so many more would be taken, which is not done because of this.
    Surplus { more: u64, because: Surplus },
    /// No node has room now.
    NoRoom(NoRoom),
    /// The nodes could not take it even if all of them were empty and took work.
    NeverFits(NoRoom),
}

/// What keeps an elastic group that runs from growing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Surplus {
    /// It has its largest size, or its members have begun to complete.
    Enough,
    /// Its size was changed and rests until then.
    Resting { until: Time },
    /// Nothing is free beyond what is to stay free.
    Headroom,
    /// No node has room, or a limit keeps it.
    NothingFree,
}

impl fmt::Display for Surplus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Surplus::Enough => f.write_str("it has as many as it may have"),
            Surplus::Resting { until } => write!(f, "its size was changed and rests until {until}"),
            Surplus::Headroom => f.write_str("nothing is free beyond the headroom"),
            Surplus::NothingFree => f.write_str("nothing is free for it"),
        }
    }
}

/// How the nodes stand. Up to `placeable` they are counted once each, under the first thing that rules
/// them out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NoRoom {
    pub nodes: u64,
    /// Nodes that could take it if they were empty, took work and were lent to nobody, whatever is in the
    /// way now.
    pub possible: u64,
    /// Nodes that the rules of the role rule out, by the first that does.
    pub unsuitable: Vec<(Filter, u64)>,
    /// Nodes that take no new work: not ready, paused, drained, manual or broken.
    pub closed: u64,
    /// Of these, nodes that broke down because too much failed there, and the first of them with the reason.
    pub broken: u64,
    pub breakdown: Option<(String, Arc<Breakdown>)>,
    /// Nodes that come last because the service keeps failing there. They are counted elsewhere too.
    pub flagged: u64,
    /// Nodes that would be too small even if empty.
    pub too_small: u64,
    /// Nodes that lack room now, by the resource of which they lack most.
    pub lacking: Vec<(String, u64)>,
    /// Nodes that have room but keep it from this task: a port in use, replicas enough, somebody alone, or
    /// somebody else for whom it is kept.
    pub occupied: Vec<(Filter, u64)>,
    /// For an atomic group: how many of its tasks would find room now.
    pub placeable: u64,
    /// For an atomic group that asks for nearness: the best that could be done.
    pub within: Option<WithinHops>,
    /// For an atomic group that stays in one pool: the best that could be done.
    pub in_one_pool: Option<InOnePool>,
    /// Facts over which the service is spread and that no node has: all of them are one branch.
    pub unknown_spread: Vec<String>,
    /// What each filter rules out, each counted for itself, in the order of the filters.
    pub filters: Vec<FilterCount>,
    /// The smallest change that would let one task run.
    pub nearest: Option<Nearest>,
    /// For tasks of one named node: everything that keeps them from it.
    pub on_node: Option<OnNode>,
}

/// How one node stands for the tasks of a role.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OnNode {
    pub node: String,
    /// Everything that keeps a task from it now, in the order of the filters.
    pub reasons: Vec<NodeReason>,
}

/// One thing that keeps a task from a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeReason {
    pub filter: Filter,
    /// What it is, in words that follow the name of the node.
    pub detail: String,
}

/// How one node stands for the waiting tasks of one role.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeExplanation {
    pub group: GroupId,
    pub role: u16,
    pub on_node: OnNode,
    /// The settings version the answer was computed with.
    pub settings: u64,
}

impl fmt::Display for OnNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details: Vec<&str> = self.reasons.iter().map(|reason| reason.detail.as_str()).collect();
        match details.is_empty() {
            true => write!(f, "node {} could take a task now", self.node),
            false => write!(f, "node {} {}", self.node, details.join(", ")),
        }
    }
}

impl fmt::Display for NodeExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.on_node.fmt(f)
    }
}

impl NodeExplanation {
    /// One sentence for people.
    pub fn sentence(&self) -> String {
        self.to_string()
    }
}

/// How many tasks would find room near each other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WithinHops {
    /// The hops that are asked for.
    pub hops: u8,
    pub placeable: u64,
    /// How many must find room together.
    pub wanted: u64,
    /// Where most of them would: a part of the network tree, empty for the whole of it, or the name of a
    /// node without a path; none if no task finds room.
    pub best: Option<String>,
}

/// How many tasks would find room in one pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InOnePool {
    pub placeable: u64,
    /// How many must find room together.
    pub wanted: u64,
    /// Where most of them would; none if no task finds room.
    pub best: Option<String>,
}

/// How many nodes one filter rules out. Another order of filters or of nodes gives the same `fails` and
/// `only`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FilterCount {
    pub filter: Filter,
    /// Nodes that do not pass it, whatever the others say.
    pub fails: u64,
    /// Nodes that fail here first.
    pub first: u64,
    /// Nodes that fail here and nowhere else.
    pub only: u64,
}

impl Explanation {
    /// So many tasks wait for the time at which they are tried again; none of them is queued.
    pub fn of_delay(delay: Option<(u64, Time)>, settings: u64) -> Explanation {
        let (waiting, reason) =
            delay.map_or((0, Reason::NotWaiting), |(tasks, until)| (tasks, Reason::Delayed { until }));
        Explanation {
            waiting,
            role: None,
            ahead: 0,
            reason,
            besides: None,
            share: None,
            gate: None,
            claim: None,
            settings,
        }
    }

    /// What is said of a group of which some are queued and others are tried again later. A group that starts
    /// as a whole, of which nothing has to end any more, waits for that time only.
    pub fn with_delay(queued: Vec<Explanation>, delayed: Option<Explanation>) -> Vec<Explanation> {
        let delayed = delayed.filter(Explanation::says_something);
        let only_waits = |one: &Explanation| delayed.is_some() && one.reason == Reason::Stopping { live: 0 };
        let mut all: Vec<Explanation> = queued.into_iter().filter(|one| !only_waits(one)).collect();
        all.extend(delayed);
        all.retain(Explanation::says_something);
        all
    }

    /// Whether something waits or runs.
    pub fn says_something(&self) -> bool {
        self.waiting > 0 || matches!(self.reason, Reason::Running(_))
    }

    /// One sentence for people.
    pub fn sentence(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::NotWaiting => f.write_str("nothing waits")?,
            Reason::Running(runs) => runs.fmt(f)?,
            reason => {
                let role = self.role.map_or(String::new(), |role| format!(" of roles[{role}]"));
                match self.waiting {
                    1 => write!(f, "1 task{role} waits: "),
                    tasks => write!(f, "{tasks} tasks{role} wait: "),
                }?;
                reason.fmt(f)?;
            }
        }
        self.besides.as_ref().map_or(Ok(()), |besides| write!(f, "; besides, {besides}"))?;
        match self.ahead {
            0 => Ok(()),
            1 => f.write_str("; 1 task is ahead"),
            ahead => write!(f, "; {ahead} tasks are ahead"),
        }?;
        self.share.as_ref().map_or(Ok(()), |share| write!(f, "; {share}"))?;
        self.gate.as_ref().map_or(Ok(()), |gate| write!(f, "; {gate}"))?;
        self.claim.as_ref().map_or(Ok(()), |claim| write!(f, "; {claim}"))?;
        let Some(room) = self.reason.room().or(self.besides.as_ref().and_then(|reason| reason.room())) else {
            return Ok(());
        };
        room.on_node.as_ref().map_or(Ok(()), |on_node| write!(f, "; {on_node}"))?;
        let Some(nearest) = &room.nearest else { return Ok(()) };
        write!(f, "; nearest: {nearest}")?;
        if self.besides.is_some() { f.write_str(", once the limit allows it") } else { Ok(()) }
    }
}

impl Reason {
    /// How the nodes stand, if that is a part of the reason.
    pub fn room(&self) -> Option<&NoRoom> {
        match self {
            Reason::NoRoom(room) | Reason::NeverFits(room) => Some(room),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NotWaiting => f.write_str("nothing waits"),
            Reason::Running(runs) => runs.fmt(f),
            Reason::Window { closes } => write!(f, "identical tasks are collected until {closes}"),
            Reason::Delayed { until } => {
                write!(f, "what did not end well is tried again after a while, next at {until}")
            }
            Reason::Stopping { live } => {
                write!(f, "{live} members of the group must end before it starts again")
            }
            Reason::NoCredit => f.write_str("the host has not dealt with earlier assignments yet"),
            Reason::NextTurn => f.write_str("a place is looked for in the next turn"),
            Reason::Limited(limit) => limit.fmt(f),
            Reason::Surplus { more, because } => {
                write!(f, "the group has its minimum; {more} more would be taken; {because}")
            }
            Reason::NoRoom(room) => write!(f, "no node has room now ({room})"),
            Reason::NeverFits(room) if room.possible > 0 => {
                write!(f, "they would not find room even if all nodes were empty ({room})")
            }
            Reason::NeverFits(room) => write!(f, "no node could take it even if empty ({room})"),
        }
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nodes == 0 {
            return f.write_str("there are no nodes");
        }
        let mut parts = Vec::new();
        if self.closed > 0 {
            parts.push(format!("{} take no new work", self.closed));
        }
        if let Some((node, breakdown)) = &self.breakdown {
            parts.push(format!("{} of these broke down, {node} first: {breakdown}", self.broken));
        }
        if self.too_small > 0 {
            parts.push(format!("{} are too small", self.too_small));
        }
        for (kind, count) in &self.lacking {
            parts.push(format!("{count} lack {kind}"));
        }
        for (filter, count) in &self.unsuitable {
            parts.push(match filter {
                Filter::Plugins => format!("{count} lack a plugin"),
                Filter::Constraints => format!("{count} do not satisfy the constraints"),
                Filter::Platform => format!("{count} have another platform"),
                Filter::Pool => format!("{count} are in another pool"),
                Filter::Access => format!("{count} are not for those who ask"),
                Filter::BoundPool => format!("{count} are in another pool than what runs of it"),
                Filter::Units => format!("{count} give out whole units only"),
                Filter::Custom(name) => format!("{count} do not pass the filter `{name}`"),
                _ => format!("{count} are not the node it is for"),
            });
        }
        for (filter, count) in &self.occupied {
            parts.push(match filter {
                Filter::Ports => format!("{count} have a port in use"),
                Filter::Replicas => format!("{count} have as many replicas as allowed"),
                Filter::Kept => format!("{count} are kept for others"),
                _ => format!("{count} would have to be shared with others"),
            });
        }
        if self.flagged > 0 {
            parts.push(format!("{} come last since the service keeps failing there", self.flagged));
        }
        for fact in &self.unknown_spread {
            parts.push(format!("no node has `{fact}`, over which they are spread"));
        }
        if self.placeable > 0 {
            parts.push(format!("room for {} of them", self.placeable));
        }
        parts.extend(self.within.as_ref().map(WithinHops::to_string));
        parts.extend(self.in_one_pool.as_ref().map(InOnePool::to_string));
        write!(f, "of {} nodes {}", self.nodes, parts.join(", "))
    }
}

impl fmt::Display for WithinHops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WithinHops { hops, placeable, wanted, best } = self;
        write!(f, "room for {placeable} of {wanted} within {hops} hops")?;
        match best.as_deref() {
            None => Ok(()),
            Some("") => f.write_str(" (best: the whole network)"),
            Some(best) => write!(f, " (best: {best})"),
        }
    }
}

impl fmt::Display for InOnePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InOnePool { placeable, wanted, best } = self;
        write!(f, "room for {placeable} of {wanted} in one pool")?;
        best.as_ref().map_or(Ok(()), |best| write!(f, " (best: {best})"))
    }
}

impl NoRoom {
    /// Counts so many nodes that lack `kind`.
    pub fn count_lacking(&mut self, kinds: &Kinds, kind: crate::resources::KindId, nodes: u64) {
        let name = kinds.name(kind);
        match self.lacking.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += nodes,
            None => self.lacking.push((name.to_owned(), nodes)),
        }
    }
}
