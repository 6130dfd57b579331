//! Why a dry run cannot be carried out.

use thiserror::Error;

use crate::machine::Broken;
use crate::messages::Refusal;

/// Why a dry run of a well-formed file cannot be carried out.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    #[error("{field}: {what}")]
    Impossible { field: String, what: String },
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
    /// Always a bug, never the file's fault.
    #[error(transparent)]
    Broken(#[from] Broken),
}
