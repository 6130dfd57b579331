//! Decisions, one turn at a time.
