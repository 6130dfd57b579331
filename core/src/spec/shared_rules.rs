//! Rules as shapes keep them: nothing at all for the many that have none, shared by copies otherwise.

use std::cmp::Ordering;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Rules;

/// The rules of a shape. It compares, and is stored, like the [`Rules`] it stands for.
#[derive(Clone, Debug, Default)]
pub struct SharedRules(Option<Arc<Rules>>);

const NO_RULES: &Rules = &Rules::NONE;

impl SharedRules {
    /// Whether every node will do.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|rules| rules.is_empty())
    }
}

impl From<Rules> for SharedRules {
    fn from(rules: Rules) -> SharedRules {
        SharedRules((!rules.is_empty()).then(|| Arc::new(rules)))
    }
}

impl Deref for SharedRules {
    type Target = Rules;

    fn deref(&self) -> &Rules {
        self.0.as_deref().unwrap_or(NO_RULES)
    }
}

impl DerefMut for SharedRules {
    fn deref_mut(&mut self) -> &mut Rules {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl PartialEq for SharedRules {
    fn eq(&self, other: &SharedRules) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SharedRules {}

impl PartialOrd for SharedRules {
    fn partial_cmp(&self, other: &SharedRules) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SharedRules {
    fn cmp(&self, other: &SharedRules) -> Ordering {
        if std::ptr::eq(&**self, &**other) {
            return Ordering::Equal;
        }
        (**self).cmp(&**other)
    }
}

impl Serialize for SharedRules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SharedRules, D::Error> {
        Rules::deserialize(deserializer).map(SharedRules::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_were_emptied_are_no_rules() {
        let none = SharedRules::default();
        let mut emptied = SharedRules::from(Rules { node: Some("n1".into()), ..Rules::default() });
        assert!(none < emptied && !emptied.is_empty());
        emptied.node = None;
        assert!(none == emptied && emptied.is_empty());
        let bytes = |result: Result<Vec<u8>, _>| result.expect("rules can be stored");
        assert_eq!(bytes(crate::codec::encode(&none)), bytes(crate::codec::encode(&Rules::default())));
    }

    #[test]
    fn a_copy_that_is_changed_leaves_the_original() {
        let original = SharedRules::from(Rules { pools: vec!["lab".into()], ..Rules::default() });
        let mut copy = original.clone();
        copy.pools.push("cellar".into());
        assert_eq!((original.pools.len(), copy.pools.len()), (1, 2));
    }
}
