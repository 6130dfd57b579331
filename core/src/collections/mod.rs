//! The few data structures the machines stand on, each dense and ordered.

mod blocks;
mod deadlines;
mod fit_tree;
mod links;
mod paged;
mod rank_tree;
mod seldom;

pub use blocks::Blocks;
pub use deadlines::Deadlines;
pub use fit_tree::FitTree;
pub use links::{Chain, Links};
pub use paged::Paged;
pub use rank_tree::RankTree;
pub use seldom::{Empty, Seldom};

/// Makes the list so long that it holds this index. It grows by an eighth and not to twice its size: what is
/// there for every node is large, and nodes come seldom.
pub fn reach<T>(list: &mut Vec<T>, index: usize, fill: impl FnMut() -> T) {
    let length = index + 1;
    if list.len() >= length {
        return;
    }
    if list.capacity() < length {
        list.reserve_exact(length + length / 8 - list.len());
    }
    list.resize_with(length, fill);
}
