//! Why something a caller handed in is refused: which field, which value, what is wrong with it.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One field that cannot be accepted.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
#[error("{field}: {problem}, found {value}")]
pub struct Invalid {
    /// The path of the field, such as `groups[0].roles[1].request.cpu`.
    pub field: String,
    /// The value as it was given, shortened if it is long.
    pub value: String,
    pub problem: Problem,
}

#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Problem {
    #[error("must not be empty")]
    Empty,
    #[error("a name may be used only once here")]
    Duplicate,
    #[error("at most {limit} are allowed")]
    TooMany { limit: u64 },
    #[error("at most {limit} bytes are allowed")]
    TooLong { limit: u64 },
    #[error("an amount must be between 0 and {limit} base units")]
    AmountOutOfRange { limit: i64 },
    #[error("{why}")]
    NoAmount { why: String },
    #[error("no such resource kind is known; declare it in `resources`")]
    UnknownKind,
    #[error("the smallest size must not be above the largest")]
    MinAboveMax,
    #[error("{why}")]
    BadConstraint { why: String },
    #[error("an operating system and an architecture such as `linux/amd64`")]
    NoPlatform,
    #[error("counts the tasks of a `service`, so one must be named")]
    NeedsService,
    #[error("a port between 1 and 65535 with its protocol, such as `80/tcp` or `53/udp`")]
    NoPort,
    #[error(
        "a path in the network tree of at most 8 parts, none of them empty, such as `block-1/rack-7/host-3`"
    )]
    NoPath,
    #[error("at most {limit} hops can lie between two nodes")]
    TooManyHops { limit: u8 },
    #[error("hops are between tasks that start together, so the group must start `atomic`")]
    NeedsAtomic,
    #[error("a fact of a node, such as `node.labels.rack`")]
    NoFact,
    #[error("at least one who may use the node; leave `access` out where everybody may")]
    NoAccess,
    #[error("no queue of this name is known; declare it in `queues`")]
    UnknownQueue,
    #[error("no band of this name is known; declare it in `bands`")]
    UnknownBand,
    #[error("a duration this long cannot be counted")]
    DurationTooLong,
    #[error("a zero byte cannot be passed on to a program")]
    ZeroByte,
    #[error("the name of a variable, which is not empty and has no `=`")]
    NoVariable,
    #[error("a factor between 1 and 1000")]
    NoFactor,
    #[error("no time at all would end everything at once")]
    NoTime,
    #[error("says why a node is set broken, so `condition` must be `broken`")]
    NeedsBroken,
    #[error("a task must bring {ratio} CPUs for each of its GPUs, as `gpu_cpu_ratio` says")]
    TooLittleCpu { ratio: String },
    #[error("a tag tells versions of a `basis` apart, so one must be named")]
    NeedsBasis,
    #[error("no other role of the group has this name")]
    UnknownRole,
    #[error("a guest cannot have guests")]
    GuestOfGuest,
    #[error("guests start together with their hosts, so the group must start `atomic`")]
    GuestNeedsAtomic,
    #[error("one guest for each of the {tasks} tasks of its host, a number that does not change")]
    GuestSize { tasks: u32 },
    #[error("a guest runs inside its host and asks nothing of the node itself")]
    OfGuest,
    #[error("at least one role must be there for its own sake")]
    OnlyAuxiliary,
    #[error("an atomic group starts with something, so one of its roles must have a smallest size above 0")]
    NoMinimum,
    #[error("the size to begin with must be between the smallest, {min}, and the largest, {max}")]
    InitialOutside { min: u32, max: u32 },
    #[error("only for atomic groups that vary in size, and these have neither hops nor guests")]
    NotElastic,
    #[error("is used by others, and its units have names: nobody says which of them")]
    ReservedUnits,
    #[error("units of this kind cannot have names")]
    NoNames,
    #[error("{names} units are named, and that is how many there are")]
    UnitsMiscounted { names: u64 },
    #[error("the name of a filter that this runtime was given; {known}")]
    UnknownFilter { known: String },
    #[error("the filter cannot be asked this: {why}")]
    FilterRefuses { why: String },
}

const VALUE_SHOWN_MAX: usize = 80;

impl Invalid {
    pub fn new(field: impl ToString, value: impl ToString, problem: Problem) -> Invalid {
        let mut value = value.to_string();
        if value.len() > VALUE_SHOWN_MAX {
            let end = (0..=VALUE_SHOWN_MAX).rev().find(|end| value.is_char_boundary(*end)).unwrap_or(0);
            value.truncate(end);
            value.push('…');
        }
        Invalid { field: field.to_string(), value, problem }
    }
}
