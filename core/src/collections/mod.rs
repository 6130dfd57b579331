//! The few data structures the machines stand on, each dense and ordered.

mod deadlines;
mod fit_tree;
mod links;
mod paged;
mod rank_tree;

pub use deadlines::Deadlines;
pub use fit_tree::FitTree;
pub use links::{Chain, Links};
pub use paged::Paged;
pub use rank_tree::RankTree;
