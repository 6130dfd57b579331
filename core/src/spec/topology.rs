//! Where nodes are in the network tree, and how far apart the tasks of a group may run.
//!
//! The hops between two nodes are twice the levels from the deeper one up to the last part that their
//! paths share: hosts of one rack are 2 hops apart, of one block 4. Between paths of equal length these
//! are the edges up and down the tree; a shorter path counts as if it went on as deep as the other, so
//! that nodes within so many hops of each other are always those of one subtree, down to some depth.

use serde::{Deserialize, Serialize};

/// A path has no more parts than this.
pub const LEVELS_MAX: usize = 8;

/// No two nodes are further apart than this.
pub const HOPS_MAX: u8 = 2 * LEVELS_MAX as u8;

/// The way from the root of the network tree to a node, such as `block-1/rack-7/host-3`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct NodePath(Box<str>);

/// How far apart tasks that start together may run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Hops {
    /// As near to each other as is possible when they start.
    Fewest,
    /// No two of them further apart than this.
    AtMost(u8),
}

impl NodePath {
    /// Up to eight parts, none of them empty, between slashes.
    pub fn parse(text: &str) -> Option<NodePath> {
        let is_good = text.split('/').all(|part| !part.is_empty());
        (is_good && text.split('/').count() <= LEVELS_MAX).then(|| NodePath(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many parts it has.
    pub fn levels(&self) -> usize {
        self.0.split('/').count()
    }

    /// Every path on the way to the node, the shortest first and the node's own last.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        let ends = self.0.match_indices('/').map(|(end, _)| end);
        ends.chain(std::iter::once(self.0.len())).map(|end| &self.0[..end])
    }

    /// The path with a number behind its last part.
    #[must_use]
    pub fn numbered(&self, number: u64) -> NodePath {
        NodePath(format!("{}-{number}", self.0).into())
    }
}

/// The hops between two different nodes. One without a path is as far from everybody as can be.
pub fn hops_between(left: Option<&NodePath>, right: Option<&NodePath>) -> u8 {
    let (Some(left), Some(right)) = (left, right) else { return HOPS_MAX };
    let parts = left.0.split('/').zip(right.0.split('/'));
    let shared = parts.take_while(|(left, right)| left == right).count();
    2 * (left.levels().max(right.levels()) - shared) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_are_counted_over_the_last_part_that_paths_share() {
        let path = |text: &str| NodePath::parse(text);
        let cases = [
            ("b1/r1/h1", "b1/r1/h1", 0),
            ("b1/r1/h1", "b1/r1/h2", 2),
            ("b1/r1/h1", "b1/r2/h1", 4),
            ("b1/r1/h1", "b2/r1/h1", 6),
            ("b1/r1/h1", "b1/r1", 2),
            ("b1/r1/h1", "b1/h9", 4),
            ("b1/r1/h1", "b2", 6),
            ("a", "ab", 2),
        ];
        for (left, right, hops) in cases {
            assert_eq!(hops_between(path(left).as_ref(), path(right).as_ref()), hops, "{left} to {right}");
            assert_eq!(hops_between(path(right).as_ref(), path(left).as_ref()), hops, "{right} to {left}");
        }
        assert_eq!(hops_between(path("a").as_ref(), None), HOPS_MAX);
        assert_eq!(hops_between(None, None), HOPS_MAX);
    }

    #[test]
    fn paths_have_up_to_eight_parts_that_say_something() {
        for text in ["a", "a/b", "a/b/c/d/e/f/g/h", "block 1/rack-7"] {
            assert_eq!(NodePath::parse(text).expect("a path").as_str(), text);
        }
        for text in ["", "/", "a/", "/a", "a//b", "a/b/c/d/e/f/g/h/i"] {
            assert_eq!(NodePath::parse(text), None, "{text}");
        }
        let path = NodePath::parse("a/b/c").expect("a path");
        assert_eq!(path.prefixes().collect::<Vec<_>>(), ["a", "a/b", "a/b/c"]);
        assert_eq!(path.numbered(7).as_str(), "a/b/c-7");
    }
}
