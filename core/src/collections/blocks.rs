//! A table by dense index that grows in small pieces: nothing it holds is moved when it grows, and no room is
//! kept for more than one piece of what may never come.

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

const BLOCK_BITS: u32 = 6;
const BLOCK: usize = 1 << BLOCK_BITS;

#[derive(Clone)]
pub struct Blocks<T> {
    blocks: Vec<Box<[T; BLOCK]>>,
    len: usize,
}

impl<T> Default for Blocks<T> {
    fn default() -> Blocks<T> {
        Blocks { blocks: Vec::new(), len: 0 }
    }
}

impl<T> Blocks<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        Some(&self.blocks.get(index >> BLOCK_BITS)?[index & (BLOCK - 1)])
    }

    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        Some(&mut self.blocks.get_mut(index >> BLOCK_BITS)?[index & (BLOCK - 1)])
    }

    /// Makes the table so long that it holds this index, filled up with what `fill` says.
    #[inline]
    pub fn reach(&mut self, index: usize, fill: impl FnMut() -> T) {
        if index >= self.len {
            self.grow(index, fill);
        }
    }

    fn grow(&mut self, index: usize, mut fill: impl FnMut() -> T) {
        self.len = index + 1;
        while self.blocks.len() << BLOCK_BITS < self.len {
            self.blocks.push(Box::new(std::array::from_fn(|_| fill())));
        }
    }

    /// The entries of the aligned row of so many, a power of two up to the size of a piece, in which this
    /// one stands.
    pub fn row(&self, index: usize, size: usize) -> &[T] {
        let first = index & (BLOCK - 1) & !(size - 1);
        &self.blocks[index >> BLOCK_BITS][first..first + size]
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flat_map(|block| block.iter()).take(self.len)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.blocks.iter_mut().flat_map(|block| block.iter_mut()).take(self.len)
    }
}

impl<T> Index<usize> for Blocks<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.blocks[index >> BLOCK_BITS][index & (BLOCK - 1)]
    }
}

impl<T> IndexMut<usize> for Blocks<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.blocks[index >> BLOCK_BITS][index & (BLOCK - 1)]
    }
}

impl<T: fmt::Debug> fmt::Debug for Blocks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Serialize> Serialize for Blocks<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut sequence = serializer.serialize_seq(Some(self.len))?;
        for entry in self.iter() {
            sequence.serialize_element(entry)?;
        }
        sequence.end()
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Blocks<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Blocks<T>, D::Error> {
        struct Entries<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Entries<T> {
            type Value = Blocks<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence of entries")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Blocks<T>, A::Error> {
                let mut table = Blocks::default();
                while let Some(entry) = sequence.next_element::<T>()? {
                    let index = table.len();
                    table.reach(index, T::default);
                    table[index] = entry;
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
    fn it_holds_what_a_vector_would() {
        let (mut table, mut plain) = (Blocks::default(), Vec::new());
        for index in [0, 5, 63, 64, 200, 70] {
            table.reach(index, || None);
            plain.resize(plain.len().max(index + 1), None);
            table[index] = Some(index);
            plain[index] = Some(index);
            assert_eq!(
                (table.len(), table.iter().copied().collect::<Vec<_>>()),
                (plain.len(), plain.clone())
            );
        }
        assert_eq!((table.get(64), table.get(65), table.get(1_000)), (Some(&Some(64)), Some(&None), None));
        table.iter_mut().for_each(|entry| *entry = None);
        assert!(table.iter().all(Option::is_none));
    }

    #[test]
    fn growing_moves_nothing_and_keeps_less_than_a_piece_too_much() {
        let mut table = Blocks::default();
        table.reach(0, || 0u64);
        let first = &raw const table[0];
        for index in 1..10_000 {
            table.reach(index, || 0);
            assert!(table.blocks.len() * BLOCK - table.len() < BLOCK);
        }
        assert_eq!(first, &raw const table[0]);
    }

    #[test]
    fn a_row_is_aligned() {
        let mut table = Blocks::default();
        table.reach(130, || 0);
        (0..131).for_each(|index| table[index] = index);
        assert_eq!(table.row(70, 4), [68, 69, 70, 71]);
        assert_eq!(table.row(130, 4), [128, 129, 130, 0]);
    }

    #[test]
    fn its_bytes_are_those_of_a_vector() {
        let plain: Vec<Option<u32>> = (0..100).map(|number| (number % 3 > 0).then_some(number)).collect();
        let bytes = crate::codec::encode(&plain).expect("small");
        let table: Blocks<Option<u32>> = crate::codec::decode(&bytes).expect("whole");
        assert_eq!(table.iter().copied().collect::<Vec<_>>(), plain);
        assert_eq!(crate::codec::encode(&table).expect("small"), bytes);
    }
}
