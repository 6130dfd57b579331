//! The actix shells around the machines of `plimsoll-core`.
