//! What nodes have in common: the facts that many of them share, which are kept once for all of these.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Access, NodeFacts};

/// The facts of a node that need not be its own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct CommonFacts {
    pub pool: String,
    pub labels: BTreeMap<String, String>,
    /// Labels that the node's engine gives it.
    pub engine_labels: BTreeMap<String, String>,
    pub os: Option<String>,
    pub arch: Option<String>,
    pub role: Option<String>,
    pub plugins: Vec<String>,
    /// Who may use it; everybody unless it is said.
    pub access: Option<Arc<Access>>,
}

/// What the nodes that are there have in common, and how many of them.
#[derive(Clone, Debug, Default)]
pub struct KnownFacts(BTreeMap<Arc<CommonFacts>, u32>);

impl KnownFacts {
    /// A node comes: what it has in common with others it shares with them.
    pub fn enter(&mut self, facts: &mut Arc<NodeFacts>) {
        let Some((known, _)) = self.0.get_key_value(&facts.common) else {
            self.0.insert(Arc::clone(&facts.common), 1);
            return;
        };
        let known = Arc::clone(known);
        *self.0.get_mut(&known).expect("it is known") += 1;
        if !Arc::ptr_eq(&known, &facts.common) {
            Arc::make_mut(facts).common = known;
        }
    }

    /// A node with these facts goes, or has others from now on.
    pub fn leave(&mut self, common: &Arc<CommonFacts>) {
        let nodes = self.0.get_mut(common).expect("who leaves has entered");
        *nodes -= 1;
        if *nodes == 0 {
            self.0.remove(common);
        }
    }

    /// How many kinds of nodes there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, zone: &str) -> Arc<NodeFacts> {
        let mut facts = NodeFacts { name: name.into(), ..NodeFacts::default() };
        facts.labels.insert("zone".into(), zone.into());
        Arc::new(facts)
    }

    #[test]
    fn nodes_that_are_alike_share_what_they_have_in_common_until_they_go() {
        let mut known = KnownFacts::default();
        let (mut first, mut second, mut other) = (node("n1", "a"), node("n2", "a"), node("n3", "b"));
        [&mut first, &mut second, &mut other].into_iter().for_each(|facts| known.enter(facts));
        assert!(Arc::ptr_eq(&first.common, &second.common) && !Arc::ptr_eq(&first.common, &other.common));
        assert_eq!((known.len(), second.name.as_str(), &second.labels["zone"][..]), (2, "n2", "a"));
        known.leave(&first.common);
        known.leave(&other.common);
        assert_eq!(known.len(), 1);
        known.leave(&second.common);
        assert!(known.is_empty());
    }

    #[test]
    fn a_change_of_one_node_is_not_one_of_others() {
        let mut known = KnownFacts::default();
        let (mut first, mut second) = (node("n1", "a"), node("n2", "a"));
        known.enter(&mut first);
        known.enter(&mut second);
        Arc::make_mut(&mut first).labels.insert("zone".into(), "b".into());
        assert_eq!((&first.labels["zone"][..], &second.labels["zone"][..]), ("b", "a"));
    }
}
