//! Documents from outside, whatever their format: a tree of values, and a reader that finds every
//! fault in it.

mod fault;
mod nearest;
mod path;
mod reader;
#[cfg(test)]
pub(crate) mod reader_tests;
mod value;

pub use fault::{Fault, FaultKind, FaultLog, Faults};
pub use path::Path;
pub use reader::{Cursor, Fields};
pub use value::{NESTING_MAX, Value};

pub(crate) use nearest::suggest;
