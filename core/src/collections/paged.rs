//! A table for keys that are handed out in sequence and retired in almost the same order.
//!
//! Neighbouring keys share a page. The pages of the last keys stand in a row, where looking a key up is two
//! indexes; when most of that row has emptied, the pages that are left at its beginning move to an ordered map.
//! So one long-lived entry keeps only its page, and iteration is in key order.

use std::collections::{BTreeMap, VecDeque};

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

const PAGE_BITS: u32 = 6;
const PAGE_SIZE: usize = 1 << PAGE_BITS;

/// The row may have so many places more than twice its pages.
const ROW_SLACK: usize = 64;

#[derive(Clone, Debug)]
pub struct Paged<T> {
    /// Pages before the first of the row.
    old: BTreeMap<u64, Page<T>>,
    /// The number of the first page of the row.
    first: u64,
    row: VecDeque<Option<Page<T>>>,
    /// Pages in the row.
    in_row: usize,
    count: usize,
}

#[derive(Clone, Debug)]
struct Page<T> {
    used: usize,
    entries: Box<[Option<Box<T>>]>,
}

impl<T> Default for Page<T> {
    fn default() -> Page<T> {
        Page { used: 0, entries: (0..PAGE_SIZE).map(|_| None).collect() }
    }
}

impl<T> Default for Paged<T> {
    fn default() -> Paged<T> {
        Paged { old: BTreeMap::new(), first: 0, row: VecDeque::new(), in_row: 0, count: 0 }
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
        let (number, offset) = split(key);
        let page = match number.checked_sub(self.first) {
            Some(place) => self.row.get(place as usize)?.as_ref()?,
            None => self.old.get(&number)?,
        };
        page.entries[offset].as_deref()
    }

    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let (number, offset) = split(key);
        self.page_mut(number)?.entries[offset].as_deref_mut()
    }

    fn page_mut(&mut self, number: u64) -> Option<&mut Page<T>> {
        match number.checked_sub(self.first) {
            Some(place) => self.row.get_mut(place as usize)?.as_mut(),
            None => self.old.get_mut(&number),
        }
    }

    /// The page of this number, made if there is none yet.
    fn make_page(&mut self, number: u64) -> &mut Page<T> {
        if self.page_mut(number).is_none() {
            self.make_room_for(number);
            match number.checked_sub(self.first) {
                Some(place) => {
                    self.row[place as usize] = Some(Page::default());
                    self.in_row += 1;
                }
                None => drop(self.old.insert(number, Page::default())),
            }
            self.shorten();
        }
        self.page_mut(number).expect("just made")
    }

    /// Makes the row long enough for a page, unless that comes before it.
    fn make_room_for(&mut self, number: u64) {
        let behind = self.first + self.row.len() as u64;
        if self.row.is_empty() || number > behind + ROW_SLACK as u64 {
            // Far from everything there is: the row begins anew.
            while !self.row.is_empty() {
                self.retire_first();
            }
            self.first = number.max(self.old.last_key_value().map_or(0, |(last, _)| last + 1));
        }
        if let Some(place) = number.checked_sub(self.first) {
            let places = self.row.len().max(place as usize + 1);
            self.row.resize_with(places, || None);
        }
    }

    /// The first place of the row goes; a page that is there is an old one from now on.
    fn retire_first(&mut self) {
        if let Some(page) = self.row.pop_front().flatten() {
            self.old.insert(self.first, page);
            self.in_row -= 1;
        }
        self.first += 1;
    }

    /// Keeps the row from being mostly empty.
    fn shorten(&mut self) {
        while self.row.front().is_some_and(Option::is_none) || self.row.len() > 2 * self.in_row + ROW_SLACK {
            self.retire_first();
        }
    }

    /// Enters a value under a key that is free.
    pub fn insert(&mut self, key: u64, value: T) -> &mut T {
        let (number, offset) = split(key);
        self.count += 1;
        let page = self.make_page(number);
        assert!(page.entries[offset].is_none(), "a key is given out once");
        page.used += 1;
        page.entries[offset].insert(Box::new(value))
    }

    pub fn remove(&mut self, key: u64) -> Option<T> {
        let (number, offset) = split(key);
        let page = self.page_mut(number)?;
        let value = page.entries[offset].take()?;
        page.used -= 1;
        let is_empty = page.used == 0;
        self.count -= 1;
        if is_empty {
            match number.checked_sub(self.first) {
                Some(place) => {
                    self.row[place as usize] = None;
                    self.in_row -= 1;
                    self.shorten();
                }
                None => drop(self.old.remove(&number)),
            }
        }
        Some(*value)
    }

    fn pages(&self) -> impl Iterator<Item = (u64, &Page<T>)> {
        let row = (self.first..).zip(&self.row).filter_map(|(number, page)| Some((number, page.as_ref()?)));
        self.old.iter().map(|(number, page)| (*number, page)).chain(row)
    }

    /// All entries in key order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.pages().flat_map(|(number, page)| {
            page.entries.iter().enumerate().filter_map(move |(offset, entry)| {
                entry.as_deref().map(|value| ((number << PAGE_BITS) + offset as u64, value))
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
    use proptest::prelude::*;

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
        assert_eq!((table.len(), table.pages().count()), (3, 2));
    }

    /// Goal: what lives for long costs its page, however many come and go after it.
    #[test]
    fn a_long_lived_entry_keeps_only_its_page() {
        let mut table = Paged::default();
        table.insert(5, 5);
        for key in 100..1_000_000 {
            table.insert(key, key);
            if key >= 200 {
                assert_eq!(table.remove(key - 100), Some(key - 100));
            }
        }
        assert!(table.row.len() <= 2 * table.in_row + ROW_SLACK, "{} places", table.row.len());
        assert_eq!((table.get(5), table.old.len()), (Some(&5), 1));
    }

    proptest! {
        /// Goal: the table holds what an ordered map would, whatever comes, goes and lies far apart.
        #[test]
        fn it_holds_what_a_map_would(
            steps in prop::collection::vec((0u64..4, 0u64..20_000, any::<bool>()), 0..300),
        ) {
            let (mut table, mut map) = (Paged::default(), BTreeMap::new());
            for (far, near, adds) in steps {
                let key = far * 1_000_000 + near;
                match adds && !map.contains_key(&key) {
                    true => {
                        table.insert(key, key);
                        map.insert(key, key);
                    }
                    false => {
                        // What is there goes, from the beginning.
                        let key = map.keys().next().copied().unwrap_or(key);
                        prop_assert_eq!(table.remove(key), map.remove(&key));
                    }
                }
                prop_assert_eq!(table.get(key), map.get(&key));
                prop_assert!(table.row.len() <= 2 * table.in_row + ROW_SLACK);
            }
            let pages: std::collections::BTreeSet<u64> = map.keys().map(|key| key >> PAGE_BITS).collect();
            prop_assert_eq!(table.pages().map(|(number, _)| number).collect::<Vec<_>>(), Vec::from_iter(pages));
            let known: Vec<(u64, u64)> = table.iter().map(|(key, value)| (key, *value)).collect();
            prop_assert_eq!(known, map.into_iter().collect::<Vec<_>>());
        }
    }
}
