//! Doubly linked lists threaded through a dense table: each entry is on at most one list per
//! [`Links`], joins and leaves in constant time, and costs eight bytes.

use serde::{Deserialize, Serialize};

use super::Blocks;

const NONE: u32 = u32::MAX;

/// The neighbours of every entry, by its dense index.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Links {
    /// (previous, next) of each entry.
    neighbours: Blocks<(u32, u32)>,
}

/// The head of one list. Entries come out newest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Chain {
    first: u32,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { first: NONE }
    }
}

impl Chain {
    pub fn is_empty(self) -> bool {
        self.first == NONE
    }
}

impl Links {
    /// Puts `index` at the head of `chain`. It must not be on any chain of these links.
    pub fn push(&mut self, chain: &mut Chain, index: u32) {
        self.neighbours.reach(index as usize, || (NONE, NONE));
        if chain.first != NONE {
            self.neighbours[chain.first as usize].0 = index;
        }
        self.neighbours[index as usize] = (NONE, chain.first);
        chain.first = index;
    }

    /// Takes `index` off `chain`, on which it must be.
    pub fn remove(&mut self, chain: &mut Chain, index: u32) {
        let (previous, next) = std::mem::replace(&mut self.neighbours[index as usize], (NONE, NONE));
        if previous == NONE {
            debug_assert_eq!(chain.first, index, "the entry is on this chain");
            chain.first = next;
        } else {
            self.neighbours[previous as usize].1 = next;
        }
        if next != NONE {
            self.neighbours[next as usize].0 = previous;
        }
    }

    /// The entries of a chain, newest first.
    pub fn iter(&self, chain: Chain) -> impl Iterator<Item = u32> + '_ {
        let follow = |index: u32| (index != NONE).then_some(index);
        std::iter::successors(follow(chain.first), move |index| follow(self.neighbours[*index as usize].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_leave_from_anywhere() {
        let (mut links, mut chain) = (Links::default(), Chain::default());
        for index in [4, 0, 7, 2] {
            links.push(&mut chain, index);
        }
        links.remove(&mut chain, 0);
        links.remove(&mut chain, 2);
        assert_eq!(links.iter(chain).collect::<Vec<_>>(), [7, 4]);
        links.remove(&mut chain, 4);
        links.remove(&mut chain, 7);
        assert!(chain.is_empty());
        links.push(&mut chain, 0);
        assert_eq!(links.iter(chain).collect::<Vec<_>>(), [0]);
    }
}
