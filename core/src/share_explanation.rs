//! Where something waits among the shares, and what has to happen before its turn comes: as data, and in
//! words.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::settings::ShareUnit;
use crate::time::Time;

/// Where the tasks of a group wait.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShareExplanation {
    /// What shares are counted in.
    pub unit: ShareUnit,
    /// Its class, where there are classes.
    pub class: Option<ShareLevel>,
    /// Its queue, where it is in one that has a name.
    pub queue: Option<ShareLevel>,
    /// Its band, where there are bands.
    pub band: Option<String>,
    /// Its class has 0 percent: it gets only what nobody else can use.
    pub last: bool,
    /// Whose turn it is when room appears.
    pub next: Option<NextTurn>,
    /// How it rises with time, where that is so.
    pub raise: Option<Raise>,
}

/// How something that waits is raised from one strict band to the next.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Raise {
    /// It has waited since then.
    pub since: Time,
    /// The band it is raised to by now.
    pub to: Option<String>,
    /// The band it is raised to next, and when.
    pub next: Option<(String, Time)>,
}

/// How far above or below its share a class or a queue stands, in the unit of the shares.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShareLevel {
    pub name: String,
    pub target: u64,
    pub held: u64,
}

/// Whose turn it is when room for one more appears.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextTurn {
    /// Its own share's.
    Own,
    /// Its own share's, if a task of this class ends.
    After { class: String },
    /// That of another share.
    Behind { share: String },
    /// That of the strict bands before its own, in which so many tasks wait.
    Bands { tasks: u64 },
}

/// A limit that keeps tasks waiting although there may be room.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitReason {
    /// The queue would hold more of this kind than its quota.
    Quota { queue: String, by: OverLimit },
    /// The class would hold more of this kind than its cap.
    Cap { class: String, by: OverLimit },
    /// Work without a lifetime would go too far beyond the fair share of its queue. What was used before
    /// fades, or only an end helps.
    NonPreemptible { fades: bool },
    /// The queue is above its fair share and its budget is used up.
    ExcessBudget,
    /// So many tasks a second and no more: the next one at this time.
    Rate { until: Time },
}

/// By how much of one kind something would exceed a limit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OverLimit {
    pub kind: String,
    pub limit: String,
    /// So much of what is held would have to end first, or the limit be so much higher.
    pub over: String,
    /// What wants to start asks for this much.
    pub asked: String,
    /// Whether the limit ever allows it, when nothing is held.
    pub ever: bool,
}

impl OverLimit {
    fn describe(&self, whose: &str, what: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OverLimit { kind, limit, over, asked, ever } = self;
        match ever {
            true => write!(
                f,
                "{whose} would exceed its {what} of {limit} {kind} by {over} until so much of it ends"
            ),
            false => {
                write!(f, "it asks for {asked} {kind}, and {whose} never has more than its {what} of {limit}")
            }
        }
    }
}

impl fmt::Display for LimitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitReason::Quota { queue, by } => by.describe(&format!("queue {queue}"), "quota", f),
            LimitReason::Cap { class, by } => by.describe(&format!("class {class}"), "cap", f),
            LimitReason::NonPreemptible { fades: true } => {
                f.write_str("its queue has used too much lately for work without a lifetime; that fades")
            }
            LimitReason::NonPreemptible { fades: false } => f.write_str(
                "its queue has too much work without a lifetime for its fair share until something of it ends",
            ),
            LimitReason::ExcessBudget => f.write_str(
                "its queue is above its fair share and has no budget left for work with a lifetime",
            ),
            LimitReason::Rate { until } if *until == Time::NEVER => {
                f.write_str("it is more than the rate of placements ever allows at one time")
            }
            LimitReason::Rate { until } => write!(f, "the rate of placements allows the next at {until}"),
        }
    }
}

impl ShareLevel {
    fn describe(&self, what: &str, unit: ShareUnit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShareLevel { name, target, held } = self;
        let (share, distance) = (unit.describe(*target), unit.describe(held.abs_diff(*target)));
        match held.cmp(target) {
            Ordering::Equal => write!(f, "{what} {name} has its share of {share}"),
            Ordering::Greater => write!(f, "{what} {name} is {distance} above its share of {share}"),
            Ordering::Less => write!(f, "{what} {name} is {distance} below its share of {share}"),
        }
    }
}

impl fmt::Display for ShareExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (what, level) in [("class", &self.class), ("queue", &self.queue)] {
            let Some(level) = level else { continue };
            if !std::mem::take(&mut first) {
                f.write_str(", ")?;
            }
            if what == "class" && self.last {
                write!(f, "class {} has 0 percent and gets only what nobody else can use", level.name)?;
            } else {
                level.describe(what, self.unit, f)?;
            }
        }
        if let Some(band) = &self.band {
            write!(f, "{}band {band}", if first { "" } else { ", " })?;
        }
        if let Some(Raise { since, to: Some(to), .. }) = &self.raise {
            write!(f, ", raised to band {to} because it waits since {since}")?;
        }
        if let Some(Raise { next: Some((to, at)), .. }) = &self.raise {
            write!(f, ", raised to band {to} at {at}")?;
        }
        match &self.next {
            None => Ok(()),
            Some(NextTurn::Own) => f.write_str("; its share is next in line"),
            Some(NextTurn::After { class }) => write!(f, "; next in line after {class} finishes one"),
            Some(NextTurn::Behind { share }) => write!(f, "; {share} goes first"),
            Some(NextTurn::Bands { tasks: 1 }) => f.write_str("; 1 task of a higher band goes first"),
            Some(NextTurn::Bands { tasks }) => write!(f, "; {tasks} tasks of higher bands go first"),
        }
    }
}
