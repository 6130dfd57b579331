//! A flat tournament tree that answers "which entry with room has the smallest key" in a few steps.
//!
//! Each entry has a key and a vector. An inner node holds the smallest key and the componentwise
//! largest vector below it, so a search prunes whatever cannot fit or cannot win. Re-keying one
//! entry walks to the root and stops where nothing changes. Entries are addressed by a dense
//! index; ties between equal keys go to the smaller index.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

/// See the module documentation. `K::MAX`-like "absent" is stated by the caller as `absent`.
#[derive(Clone, Debug)]
pub struct FitTree<K> {
    absent: K,
    /// Numbers per vector.
    width: usize,
    /// A power of two; leaf `i` stands at `leaves + i`, the root at 1.
    leaves: usize,
    keys: Vec<K>,
    vectors: Vec<i64>,
}

/// A present entry in the hands of whoever sweeps over the tree.
#[derive(Debug)]
pub struct Swept<'a, K> {
    absent: K,
    key: &'a mut K,
    vector: &'a mut [i64],
}

impl<K: Copy + Ord> Swept<'_, K> {
    /// Changes the entry. Components beyond the end of `vector` are zero.
    pub fn set(&mut self, key: K, vector: &[i64]) {
        assert!(key < self.absent, "the absent key is reserved");
        *self.key = key;
        let given = vector.len().min(self.vector.len());
        self.vector[..given].copy_from_slice(&vector[..given]);
        self.vector[given..].fill(0);
    }
}

/// The vector of an absent entry: nothing fits into it.
const NO_ROOM: i64 = i64::MIN;

impl<K: Copy + Ord> FitTree<K> {
    /// A tree of no entries. `absent` must be larger than every key in use.
    pub fn new(absent: K, width: usize) -> FitTree<K> {
        FitTree { absent, width, leaves: 1, keys: vec![absent; 2], vectors: vec![NO_ROOM; 2 * width] }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    /// The smallest key of all, whatever its vector.
    pub fn min_key(&self) -> Option<K> {
        (self.keys[1] != self.absent).then_some(self.keys[1])
    }

    /// The largest of each component over all entries; `None` if there are none.
    pub fn largest(&self) -> Option<&[i64]> {
        self.min_key().map(|_| &self.vectors[self.width..][..self.width])
    }

    /// The entry with the smallest key of all, whatever its vector.
    pub fn min_index(&self) -> Option<usize> {
        self.min_key()?;
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.keys[node + 1] < self.keys[node] {
                node += 1;
            }
        }
        Some(node - self.leaves)
    }

    /// The key of an entry, if it is present.
    pub fn key(&self, index: usize) -> Option<K> {
        if index >= self.leaves {
            return None;
        }
        let key = self.keys[self.leaves + index];
        (key != self.absent).then_some(key)
    }

    /// Enters or changes an entry. Components beyond the end of `vector` are zero.
    pub fn set(&mut self, index: usize, key: K, vector: &[i64]) {
        self.grow_to_hold(index);
        let leaf = self.leaves + index;
        self.entry(leaf).set(key, vector);
        self.update_ancestors(leaf);
    }

    /// Takes an entry out; nothing happens if it is not there.
    pub fn remove(&mut self, index: usize) {
        if self.key(index).is_none() {
            return;
        }
        let leaf = self.leaves + index;
        self.keys[leaf] = self.absent;
        self.vectors[leaf * self.width..(leaf + 1) * self.width].fill(NO_ROOM);
        self.update_ancestors(leaf);
    }

    /// The present entry with the smallest (key, index) whose vector is at least `wanted` in every
    /// component. Components beyond the end of `wanted` are not looked at.
    pub fn first_fit(&self, wanted: &[i64]) -> Option<usize> {
        self.first_fit_where(wanted, |_| true)
    }

    /// The same among the entries that `accept` takes. What it does not take costs a look each.
    pub fn first_fit_where(&self, wanted: &[i64], accept: impl Fn(usize) -> bool) -> Option<usize> {
        assert!(wanted.len() <= self.width, "the tree is as wide as the widest question");
        if self.keys[1] == self.absent || !self.has_room(1, wanted) {
            return None;
        }
        let mut best: Option<(K, usize)> = None;
        self.search(1, wanted, &accept, &mut best);
        best.map(|(_, leaf)| leaf - self.leaves)
    }

    /// Up to `most` present entries, by index, whose vector is at least `wanted`.
    pub fn fits(&self, wanted: &[i64], most: usize) -> Vec<usize> {
        self.fits_where(wanted, most, |_| true)
    }

    /// The same among the entries that `accept` takes. What it does not take costs a look each.
    pub fn fits_where(&self, wanted: &[i64], most: usize, accept: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut found = Vec::new();
        let mut stack = vec![1];
        while let Some(node) = stack.pop() {
            if found.len() == most {
                break;
            }
            if self.keys[node] == self.absent || !self.has_room(node, wanted) {
                continue;
            }
            if node >= self.leaves {
                found.extend(accept(node - self.leaves).then(|| node - self.leaves));
            } else {
                stack.extend([2 * node + 1, 2 * node]);
            }
        }
        found
    }

    /// Up to `most` present entries that `accept` takes and whose vector is at least `wanted`, those with the
    /// smallest keys, in their order; no two keys may be equal. The answer knows nothing of where entries stand.
    pub fn first_fits_where(
        &self,
        wanted: &[i64],
        most: usize,
        accept: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let mut found = Vec::new();
        let mut nearest = BinaryHeap::from([Reverse((self.keys[1], 1))]);
        while let Some(Reverse((key, node))) = nearest.pop() {
            if found.len() == most || key == self.absent {
                break;
            }
            if !self.has_room(node, wanted) {
                continue;
            }
            if node >= self.leaves {
                found.extend(accept(node - self.leaves).then(|| node - self.leaves));
            } else {
                nearest.extend([2 * node, 2 * node + 1].map(|child| Reverse((self.keys[child], child))));
            }
        }
        found
    }

    /// Shows the present entries with a key below `bound` and a vector of at least `wanted`, by
    /// index, until `visit` breaks off. What it changes about them is in the tree afterwards: many
    /// entries in one sweep cost a few steps each, where each on its own would walk to the root.
    pub fn sweep(
        &mut self,
        wanted: &[i64],
        bound: K,
        mut visit: impl FnMut(usize, Swept<'_, K>) -> ControlFlow<()>,
    ) {
        assert!(wanted.len() <= self.width, "the tree is as wide as the widest question");
        // What breaks the sweep off is known to the visitor.
        let _ = self.sweep_below(1, wanted, bound.min(self.absent), &mut visit);
    }

    fn sweep_below(
        &mut self,
        node: usize,
        wanted: &[i64],
        bound: K,
        visit: &mut impl FnMut(usize, Swept<'_, K>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.keys[node] >= bound || !self.has_room(node, wanted) {
            return ControlFlow::Continue(());
        }
        if node >= self.leaves {
            return visit(node - self.leaves, self.entry(node));
        }
        let mut flow = self.sweep_below(2 * node, wanted, bound, visit);
        if flow.is_continue() {
            flow = self.sweep_below(2 * node + 1, wanted, bound, visit);
        }
        self.update(node);
        flow
    }

    fn entry(&mut self, leaf: usize) -> Swept<'_, K> {
        let vector = &mut self.vectors[leaf * self.width..][..self.width];
        Swept { absent: self.absent, key: &mut self.keys[leaf], vector }
    }

    fn search(
        &self,
        node: usize,
        wanted: &[i64],
        accept: &impl Fn(usize) -> bool,
        best: &mut Option<(K, usize)>,
    ) {
        if node >= self.leaves {
            if accept(node - self.leaves) {
                *best = Some((self.keys[node], node));
            }
            return;
        }
        let (left, right) = (2 * node, 2 * node + 1);
        let (first, second) = if self.keys[right] < self.keys[left] { (right, left) } else { (left, right) };
        for child in [first, second] {
            let key = self.keys[child];
            if key == self.absent {
                continue;
            }
            let can_win = match *best {
                None => true,
                // Equal keys go to the smaller index: a child to the left of the best may still win.
                Some((best_key, leaf)) => key < best_key || (key == best_key && self.is_left_of(child, leaf)),
            };
            if can_win && self.has_room(child, wanted) {
                self.search(child, wanted, accept, best);
            }
        }
    }

    fn is_left_of(&self, node: usize, leaf: usize) -> bool {
        let mut first_leaf = node;
        while first_leaf < self.leaves {
            first_leaf *= 2;
        }
        first_leaf < leaf
    }

    fn has_room(&self, node: usize, wanted: &[i64]) -> bool {
        let vector = &self.vectors[node * self.width..][..wanted.len()];
        vector.iter().zip(wanted).all(|(has, wants)| has >= wants)
    }

    fn update_ancestors(&mut self, leaf: usize) {
        let mut node = leaf / 2;
        while node >= 1 {
            if !self.update(node) {
                return;
            }
            node /= 2;
        }
    }

    /// Recomputes one inner node; false if it was right already.
    fn update(&mut self, node: usize) -> bool {
        let (left, right) = (2 * node, 2 * node + 1);
        let key = self.keys[left].min(self.keys[right]);
        let mut changed = key != self.keys[node];
        self.keys[node] = key;
        let (above, below) = self.vectors.split_at_mut(left * self.width);
        let (left, right) = below[..2 * self.width].split_at(self.width);
        let own = &mut above[node * self.width..][..self.width];
        for ((own, left), right) in own.iter_mut().zip(left).zip(right) {
            let largest = *left.max(right);
            changed |= *own != largest;
            *own = largest;
        }
        changed
    }

    fn grow_to_hold(&mut self, index: usize) {
        if index < self.leaves {
            return;
        }
        let leaves = (index + 1).next_power_of_two();
        let mut keys = vec![self.absent; 2 * leaves];
        let mut vectors = vec![NO_ROOM; 2 * leaves * self.width];
        keys[leaves..leaves + self.leaves].copy_from_slice(&self.keys[self.leaves..]);
        vectors[leaves * self.width..][..self.leaves * self.width]
            .copy_from_slice(&self.vectors[self.leaves * self.width..]);
        (self.leaves, self.keys, self.vectors) = (leaves, keys, vectors);
        for node in (1..leaves).rev() {
            self.update(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Plain = [Option<(u64, [i64; 2])>];

    fn distinct(index: usize, key: u64) -> u64 {
        key * 100 + 40 - index as u64
    }

    /// The entries with keys of which no two are equal.
    fn by_distinct_keys(plain: &Plain) -> FitTree<u64> {
        let mut tree = FitTree::new(u64::MAX, 2);
        for (index, (key, vector)) in plain.iter().enumerate().filter_map(|(index, it)| Some((index, (*it)?)))
        {
            tree.set(index, distinct(index, key), &vector);
        }
        tree
    }

    proptest! {
        /// Goal: the tree answers like a plain scan, whatever was entered, changed and taken out.
        #[test]
        fn answers_like_a_scan(
            steps in prop::collection::vec((0usize..40, prop::option::of((0u64..6, -2i64..5, -2i64..5))), 0..120),
            questions in prop::collection::vec((-2i64..6, -2i64..6), 1..8),
        ) {
            let mut tree = FitTree::new(u64::MAX, 2);
            let mut plain: Vec<Option<(u64, [i64; 2])>> = vec![None; 40];
            for (index, entry) in steps {
                match entry {
                    Some((key, first, second)) => tree.set(index, key, &[first, second]),
                    None => tree.remove(index),
                }
                plain[index] = entry.map(|(key, first, second)| (key, [first, second]));
            }
            for (first, second) in questions {
                let expected = plain
                    .iter()
                    .enumerate()
                    .filter_map(|(index, entry)| entry.map(|(key, vector)| (key, index, vector)))
                    .filter(|(_, _, vector)| vector[0] >= first && vector[1] >= second)
                    .min()
                    .map(|(_, index, _)| index);
                prop_assert_eq!(tree.first_fit(&[first, second]), expected);
                let fitting = |(index, entry): (usize, &Option<(u64, [i64; 2])>)| {
                    entry.filter(|(_, vector)| vector[0] >= first && vector[1] >= second).map(|_| index)
                };
                let all: Vec<usize> = plain.iter().enumerate().filter_map(fitting).collect();
                prop_assert_eq!(tree.fits(&[first, second], 3), &all[..all.len().min(3)]);
                let even = |index: &usize| index.is_multiple_of(2);
                let mut in_order: Vec<usize> = all.into_iter().filter(even).collect();
                let key = |index: &usize| distinct(*index, plain[*index].expect("it fits").0);
                in_order.sort_unstable_by_key(key);
                in_order.truncate(3);
                let found = by_distinct_keys(&plain).first_fits_where(&[first, second], 3, |index| even(&index));
                prop_assert_eq!(found, in_order);
            }
            let smallest = plain.iter().flatten().map(|(key, _)| *key).min();
            prop_assert_eq!(tree.min_key(), smallest);
        }
    }

    #[test]
    fn equal_keys_go_to_the_smaller_index() {
        let mut tree = FitTree::new(u64::MAX, 1);
        for index in [5, 3, 9] {
            tree.set(index, 7, &[1]);
        }
        assert_eq!(tree.first_fit(&[1]), Some(3));
        assert_eq!(tree.min_index(), Some(3));
    }

    proptest! {
        /// Goal: a sweep shows what a scan would, and leaves the tree as if each change came alone.
        #[test]
        fn a_sweep_is_many_changes_at_once(
            entries in prop::collection::vec(prop::option::of((0u64..6, 0i64..5)), 1..40),
            bound in 0u64..8,
            wanted in 0i64..5,
            most in 1usize..10,
        ) {
            let mut tree = FitTree::new(u64::MAX, 1);
            for (index, entry) in entries.iter().enumerate() {
                entry.iter().for_each(|(key, room)| tree.set(index, *key, &[*room]));
            }
            let mut alone = tree.clone();
            let present = |(index, entry): (usize, &Option<(u64, i64)>)| entry.map(|entry| (index, entry));
            let fits = |(_, (key, room)): &(usize, (u64, i64))| *key < bound && *room >= wanted;
            let expected: Vec<(usize, (u64, i64))> =
                entries.iter().enumerate().filter_map(present).filter(fits).take(most).collect();
            let mut visited = Vec::new();
            tree.sweep(&[wanted], bound, |index, mut entry| {
                let (key, room) = entries[index].expect("only present entries are shown");
                entry.set(key + 1, &[room - 1]);
                visited.push((index, (key, room)));
                if visited.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            for (index, (key, room)) in &expected {
                alone.set(*index, key + 1, &[room - 1]);
            }
            prop_assert_eq!(visited, expected);
            prop_assert_eq!((tree.keys, tree.vectors), (alone.keys, alone.vectors));
        }
    }

    #[test]
    fn a_tree_without_vectors_is_a_priority_queue() {
        let mut tree = FitTree::new(u64::MAX, 0);
        tree.set(4, 9, &[]);
        tree.set(1, 3, &[]);
        tree.remove(1);
        assert_eq!((tree.min_key(), tree.min_index()), (Some(9), Some(4)));
    }
}
