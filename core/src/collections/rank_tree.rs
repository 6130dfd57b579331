//! An ordered tree that answers "which entry with room comes first" when the entries that come first
//! are mostly those without room.
//!
//! Entries stand in the order of their keys. Each knows the componentwise largest vector at or below it,
//! so a search passes over everything that cannot fit and stops at the first that does. It is a treap:
//! which of two entries stands above is a fixed mix of their indexes, so its form depends on what is in
//! it and not on how that came about, and no order of changes can make it deep on purpose. Entries are
//! addressed by a dense index; ties between equal keys go to the smaller index.

#[derive(Clone, Debug)]
pub struct RankTree<K> {
    /// Numbers per vector.
    width: usize,
    root: u32,
    entries: Vec<Option<Entry<K>>>,
    /// By index, the vector of the entry itself.
    vectors: Vec<i64>,
    /// By index, the largest of each component at or below the entry.
    largest: Vec<i64>,
}

#[derive(Clone, Debug)]
struct Entry<K> {
    key: K,
    left: u32,
    right: u32,
}

/// No entry.
const NONE: u32 = u32::MAX;

/// Who of two entries stands above: the larger. Neighbouring indexes differ in every bit.
fn height(index: u32) -> u64 {
    let mut mixed = (u64::from(index) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl<K: Ord> RankTree<K> {
    pub fn new(width: usize) -> RankTree<K> {
        RankTree { width, root: NONE, entries: Vec::new(), vectors: Vec::new(), largest: Vec::new() }
    }

    /// The largest of each component over all entries; `None` if there are none.
    pub fn largest(&self) -> Option<&[i64]> {
        (self.root != NONE).then(|| self.largest_below(self.root))
    }

    /// Enters or changes an entry. Components beyond the end of `vector` are zero.
    pub fn set(&mut self, index: usize, key: K, vector: &[i64]) {
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
            self.vectors.resize((index + 1) * self.width, 0);
            self.largest.resize((index + 1) * self.width, 0);
        }
        let stays = self.entries[index].as_ref().is_some_and(|entry| entry.key == key);
        if stays && self.has_vector(index, vector) {
            return;
        }
        if !stays {
            self.remove(index);
        }
        let own = &mut self.vectors[index * self.width..][..self.width];
        let given = vector.len().min(own.len());
        own[..given].copy_from_slice(&vector[..given]);
        own[given..].fill(0);
        if stays {
            return self.update_path(self.root, index as u32);
        }
        self.entries[index] = Some(Entry { key, left: NONE, right: NONE });
        self.root = self.insert(self.root, index as u32);
    }

    /// Takes an entry out; nothing happens if it is not there.
    pub fn remove(&mut self, index: usize) {
        if self.entries.get(index).is_some_and(Option::is_some) {
            self.root = self.take_out(self.root, index as u32);
            self.entries[index] = None;
        }
    }

    /// Shows the entries whose vector is at least `wanted` in every component, in order, until `take`
    /// makes something of one. What it does not take costs a look each.
    pub fn find_fit<T>(&self, wanted: &[i64], mut take: impl FnMut(usize) -> Option<T>) -> Option<T> {
        assert!(wanted.len() <= self.width, "the tree is as wide as the widest question");
        self.search(self.root, wanted, &mut take)
    }

    fn search<T>(&self, at: u32, wanted: &[i64], take: &mut impl FnMut(usize) -> Option<T>) -> Option<T> {
        if at == NONE || !covers(self.largest_below(at), wanted) {
            return None;
        }
        let entry = self.entry(at);
        if let Some(found) = self.search(entry.left, wanted, take) {
            return Some(found);
        }
        let own = &self.vectors[at as usize * self.width..][..self.width];
        let found = if covers(own, wanted) { take(at as usize) } else { None };
        found.or_else(|| self.search(entry.right, wanted, take))
    }

    fn entry(&self, index: u32) -> &Entry<K> {
        self.entries[index as usize].as_ref().expect("a linked entry is there")
    }

    fn entry_mut(&mut self, index: u32) -> &mut Entry<K> {
        self.entries[index as usize].as_mut().expect("a linked entry is there")
    }

    fn largest_below(&self, index: u32) -> &[i64] {
        &self.largest[index as usize * self.width..][..self.width]
    }

    fn has_vector(&self, index: usize, vector: &[i64]) -> bool {
        let own = &self.vectors[index * self.width..][..self.width];
        own.iter().enumerate().all(|(kind, amount)| *amount == vector.get(kind).copied().unwrap_or(0))
    }

    fn comes_before(&self, first: u32, second: u32) -> bool {
        (&self.entry(first).key, first) < (&self.entry(second).key, second)
    }

    /// Recomputes what is known of an entry and everything below it.
    fn update(&mut self, at: u32) {
        let (left, right) = (self.entry(at).left, self.entry(at).right);
        for component in 0..self.width {
            let mut largest = self.vectors[at as usize * self.width + component];
            for below in [left, right] {
                if below != NONE {
                    largest = largest.max(self.largest[below as usize * self.width + component]);
                }
            }
            self.largest[at as usize * self.width + component] = largest;
        }
    }

    fn update_path(&mut self, at: u32, index: u32) {
        if at != index {
            let entry = self.entry(at);
            let next = if self.comes_before(index, at) { entry.left } else { entry.right };
            self.update_path(next, index);
        }
        self.update(at);
    }

    /// Puts a new entry below `at`, and says who stands there now.
    fn insert(&mut self, at: u32, new: u32) -> u32 {
        if at == NONE || height(new) > height(at) {
            let (left, right) = self.split(at, new);
            let entry = self.entry_mut(new);
            (entry.left, entry.right) = (left, right);
            self.update(new);
            return new;
        }
        if self.comes_before(new, at) {
            let left = self.insert(self.entry(at).left, new);
            self.entry_mut(at).left = left;
        } else {
            let right = self.insert(self.entry(at).right, new);
            self.entry_mut(at).right = right;
        }
        self.update(at);
        at
    }

    /// Takes an entry out below `at`, and says who stands there now.
    fn take_out(&mut self, at: u32, index: u32) -> u32 {
        let (left, right) = (self.entry(at).left, self.entry(at).right);
        if at == index {
            return self.join(left, right);
        }
        if self.comes_before(index, at) {
            let left = self.take_out(left, index);
            self.entry_mut(at).left = left;
        } else {
            let right = self.take_out(right, index);
            self.entry_mut(at).right = right;
        }
        self.update(at);
        at
    }

    /// What comes before the new entry, and what comes after.
    fn split(&mut self, at: u32, new: u32) -> (u32, u32) {
        if at == NONE {
            return (NONE, NONE);
        }
        let halves = if self.comes_before(at, new) {
            let (before, after) = self.split(self.entry(at).right, new);
            self.entry_mut(at).right = before;
            (at, after)
        } else {
            let (before, after) = self.split(self.entry(at).left, new);
            self.entry_mut(at).left = after;
            (before, at)
        };
        self.update(at);
        halves
    }

    /// One tree of two of which the first comes before the second.
    fn join(&mut self, first: u32, second: u32) -> u32 {
        if first == NONE {
            return second;
        }
        if second == NONE {
            return first;
        }
        let above = if height(first) > height(second) {
            let right = self.join(self.entry(first).right, second);
            self.entry_mut(first).right = right;
            first
        } else {
            let left = self.join(first, self.entry(second).left);
            self.entry_mut(second).left = left;
            second
        };
        self.update(above);
        above
    }
}

fn covers(vector: &[i64], wanted: &[i64]) -> bool {
    vector.iter().zip(wanted).all(|(has, wants)| has >= wants)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    type Plain = Vec<Option<(u8, [i64; 2])>>;

    fn expected(plain: &Plain, wanted: [i64; 2]) -> Vec<usize> {
        let present = plain.iter().enumerate().filter_map(|(index, entry)| entry.map(|entry| (entry, index)));
        let fits =
            |((_, vector), _): &((u8, [i64; 2]), usize)| vector[0] >= wanted[0] && vector[1] >= wanted[1];
        let mut fitting: Vec<(u8, usize)> =
            present.filter(fits).map(|((key, _), index)| (key, index)).collect();
        fitting.sort_unstable();
        fitting.into_iter().map(|(_, index)| index).collect()
    }

    proptest! {
        /// Goal: the tree answers like a plain scan, whatever was entered, changed and taken out.
        #[test]
        fn answers_like_a_scan(
            steps in prop::collection::vec((0usize..40, prop::option::of((0u8..6, -2i64..5, -2i64..5))), 0..120),
            questions in prop::collection::vec((-2i64..6, -2i64..6), 1..8),
        ) {
            let mut tree = RankTree::new(2);
            let mut plain: Plain = vec![None; 40];
            for (index, entry) in steps {
                match entry {
                    Some((key, first, second)) => tree.set(index, key, &[first, second]),
                    None => tree.remove(index),
                }
                plain[index] = entry.map(|(key, first, second)| (key, [first, second]));
            }
            for (first, second) in questions {
                let mut seen = Vec::new();
                let nothing: Option<()> = tree.find_fit(&[first, second], |index| {
                    seen.push(index);
                    None
                });
                prop_assert_eq!((nothing, &seen), (None, &expected(&plain, [first, second])));
                prop_assert_eq!(tree.find_fit(&[first, second], Some), seen.first().copied());
            }
            let vectors = || plain.iter().flatten().map(|(_, vector)| vector);
            let largest = vectors().map(|one| one[0]).max().zip(vectors().map(|one| one[1]).max());
            prop_assert_eq!(tree.largest().map(|all| (all[0], all[1])), largest);
        }
    }

    /// Goal: entries without room cost nothing, although they come first. Method: many of them, before
    /// one that fits, in every order of entering; how many entries are looked at is bounded by the depth.
    #[test]
    fn what_comes_first_without_room_is_passed_over() {
        const ENTRIES: usize = 20_000;
        let mut tree = RankTree::new(1);
        for index in (0..ENTRIES).rev() {
            tree.set(index, index, &[i64::from(index == ENTRIES - 1)]);
        }
        let looks = Cell::new(0);
        let found = tree.find_fit(&[1], |index| {
            looks.set(looks.get() + 1);
            Some(index)
        });
        assert_eq!((found, looks.get()), (Some(ENTRIES - 1), 1));
        let depth = depth(&tree, tree.root);
        assert!(depth < 60, "a tree of {ENTRIES} entries is {depth} deep");
    }

    fn depth<K: Ord>(tree: &RankTree<K>, at: u32) -> usize {
        if at == NONE {
            return 0;
        }
        1 + depth(tree, tree.entry(at).left).max(depth(tree, tree.entry(at).right))
    }
}
