//! A table for keys that are handed out in sequence and retired in almost the same order.
//!
//! Pages of neighbouring keys hang in an ordered map and go away when empty: looking a key up is
//! one step in a small map and one index, iteration is in key order, and one long-lived entry
//! keeps only its page.

use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

const PAGE_BITS: u32 = 6;
const PAGE_SIZE: usize = 1 << PAGE_BITS;

#[derive(Clone, Debug)]
pub struct Paged<T> {
    pages: BTreeMap<u64, Page<T>>,
    count: usize,
}

#[derive(Clone, Debug)]
struct Page<T> {
    used: usize,
    entries: Box<[Option<Box<T>>]>,
}

impl<T> Default for Paged<T> {
    fn default() -> Paged<T> {
        Paged { pages: BTreeMap::new(), count: 0 }
    }
}

fn split(key: u64) -> (u64, usize) {
    (key >> PAGE_BITS, key as usize & (PAGE_SIZE - 1))
}

impl<T> Paged<T> {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn get(&self, key: u64) -> Option<&T> {
        let (page, offset) = split(key);
        self.pages.get(&page)?.entries[offset].as_deref()
    }

    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let (page, offset) = split(key);
        self.pages.get_mut(&page)?.entries[offset].as_deref_mut()
    }

    /// Enters a value under a key that is free.
    pub fn insert(&mut self, key: u64, value: T) -> &mut T {
        let (page, offset) = split(key);
        let page = self
            .pages
            .entry(page)
            .or_insert_with(|| Page { used: 0, entries: (0..PAGE_SIZE).map(|_| None).collect() });
        assert!(page.entries[offset].is_none(), "a key is given out once");
        page.used += 1;
        self.count += 1;
        page.entries[offset].insert(Box::new(value))
    }

    pub fn remove(&mut self, key: u64) -> Option<T> {
        let (number, offset) = split(key);
        let page = self.pages.get_mut(&number)?;
        let value = page.entries[offset].take()?;
        page.used -= 1;
        self.count -= 1;
        if page.used == 0 {
            self.pages.remove(&number);
        }
        Some(*value)
    }

    /// All entries in key order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.pages.iter().flat_map(|(page, entries)| {
            entries.entries.iter().enumerate().filter_map(move |(offset, entry)| {
                entry.as_deref().map(|value| ((page << PAGE_BITS) + offset as u64, value))
            })
        })
    }
}

impl<T: Serialize> Serialize for Paged<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut sequence = serializer.serialize_seq(Some(self.count))?;
        for entry in self.iter() {
            sequence.serialize_element(&entry)?;
        }
        sequence.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Paged<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Paged<T>, D::Error> {
        struct Entries<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Paged<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a sequence of numbered entries")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Paged<T>, A::Error> {
                let mut table = Paged::default();
                while let Some((key, value)) = sequence.next_element::<(u64, T)>()? {
                    if table.get(key).is_some() {
                        return Err(serde::de::Error::custom("an entry is there twice"));
                    }
                    table.insert(key, value);
                }
                Ok(table)
            }
        }
        deserializer.deserialize_seq(Entries(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_and_go_with_their_entries() {
        let mut table = Paged::default();
        for key in [1, 63, 64, 1_000_000] {
            table.insert(key, key * 2);
        }
        assert_eq!(table.iter().map(|(key, _)| key).collect::<Vec<_>>(), [1, 63, 64, 1_000_000]);
        assert_eq!(table.remove(64), Some(128));
        assert_eq!(table.remove(64), None);
        assert_eq!(table.get(63), Some(&126));
        assert_eq!((table.len(), table.pages.len()), (3, 2));
    }
}
