//! The engine from outside: what no single part can show.
