//! A collection that is nearly always empty, in the room of a pointer.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What can be empty, and can be looked at where there is nothing.
pub trait Empty: Default + 'static {
    const EMPTY: &'static Self;

    fn has_nothing(&self) -> bool;
}

impl<T: 'static> Empty for Vec<T> {
    const EMPTY: &'static Vec<T> = &Vec::new();

    fn has_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl<T: 'static> Empty for VecDeque<T> {
    const EMPTY: &'static VecDeque<T> = &VecDeque::new();

    fn has_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl<T: 'static> Empty for BTreeSet<T> {
    const EMPTY: &'static BTreeSet<T> = &BTreeSet::new();

    fn has_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl<K: 'static, V: 'static> Empty for BTreeMap<K, V> {
    const EMPTY: &'static BTreeMap<K, V> = &BTreeMap::new();

    fn has_nothing(&self) -> bool {
        self.is_empty()
    }
}

/// It reads, compares and is stored like what it holds. To change it makes room for it; where nothing is to be
/// changed unless something is there, [`Seldom::there_mut`] does not.
#[derive(Clone)]
pub struct Seldom<T>(Option<Box<T>>);

impl<T: Empty> Seldom<T> {
    /// What is there, if there ever was anything.
    pub fn there_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// Takes everything out.
    pub fn take(&mut self) -> T {
        self.0.take().map_or_else(T::default, |value| *value)
    }
}

impl<T> Default for Seldom<T> {
    fn default() -> Seldom<T> {
        Seldom(None)
    }
}

impl<T: Empty> From<T> for Seldom<T> {
    fn from(value: T) -> Seldom<T> {
        Seldom((!value.has_nothing()).then(|| Box::new(value)))
    }
}

impl<T: Empty> Deref for Seldom<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

impl<T: Empty> DerefMut for Seldom<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: Empty + FromIterator<A>, A> FromIterator<A> for Seldom<T> {
    fn from_iter<I: IntoIterator<Item = A>>(entries: I) -> Seldom<T> {
        T::from_iter(entries).into()
    }
}

impl<'a, T: Empty> IntoIterator for &'a Seldom<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&**self).into_iter()
    }
}

impl<T: Empty + PartialEq> PartialEq for Seldom<T> {
    fn eq(&self, other: &Seldom<T>) -> bool {
        **self == **other
    }
}

impl<T: Empty + Eq> Eq for Seldom<T> {}

impl<T: Empty + Ord> PartialOrd for Seldom<T> {
    fn partial_cmp(&self, other: &Seldom<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Empty + Ord> Ord for Seldom<T> {
    fn cmp(&self, other: &Seldom<T>) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: Empty + fmt::Debug> fmt::Debug for Seldom<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Empty + Serialize> Serialize for Seldom<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Empty + Deserialize<'de>> Deserialize<'de> for Seldom<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seldom<T>, D::Error> {
        T::deserialize(deserializer).map(Seldom::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_like_what_it_holds() {
        let mut seldom: Seldom<BTreeMap<u32, u32>> = Seldom::default();
        assert!(seldom.is_empty() && seldom.there_mut().is_none());
        seldom.insert(1, 2);
        assert_eq!((seldom.get(&1), seldom.len()), (Some(&2), 1));
        let bytes = crate::codec::encode(&seldom).expect("small");
        assert_eq!(bytes, crate::codec::encode(&BTreeMap::from([(1u32, 2u32)])).expect("small"));
        assert_eq!(crate::codec::decode::<Seldom<BTreeMap<u32, u32>>>(&bytes).expect("whole"), seldom);
        assert_eq!(seldom.take(), BTreeMap::from([(1, 2)]));
        assert!(seldom.there_mut().is_none());
    }

    #[test]
    fn what_was_emptied_is_nothing() {
        let mut emptied = Seldom::from(vec![1]);
        emptied.clear();
        assert_eq!(emptied, Seldom::default());
        assert!(Seldom::from(Vec::<u8>::new()).there_mut().is_none());
        assert_eq!(size_of::<Seldom<Vec<u8>>>(), size_of::<usize>());
    }
}
