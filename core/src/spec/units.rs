//! Named units: a kind of which a node offers single units, each under a name of its own.
//!
//! How many there are is a part of the capacity like any other amount, so nothing that looks for room knows
//! of names. They matter where a task is entered in the ledger: it is given as many as it asks for, the
//! first that are free, and nobody else has them until it has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::quantity::Unit;
use crate::resources::{KindId, Kinds, Resources};
use crate::settings::Settings;

use super::limits::{check_count, check_length};
use super::{Invalid, JobSpec, Problem};

/// Names of units by kind, in the order in which they are given out.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Units {
    names: BTreeMap<KindId, Vec<Arc<str>>>,
}

/// Names of units by the names of their kinds, for those who use them.
pub type UnitNames = BTreeMap<String, Vec<Arc<str>>>;

/// Kinds by their numbers, one bit for each.
pub type KindSet = u32;

/// A node has no more named units of one kind than this.
const UNITS_MAX: u64 = 4_096;

/// What one unit of a kind that can be named counts for.
const ONE: i64 = 1_000;

fn bit(kind: KindId) -> KindSet {
    1 << kind.0
}

/// Whether units of this kind can have names: not where everybody takes as little as he likes.
fn can_have_names(kinds: &Kinds, kind: KindId) -> bool {
    kinds.unit(kind) == Unit::Thousandth && kinds.name(kind) != "cpu"
}

impl Units {
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Names these units of a kind, and counts them in the capacity.
    pub fn offer(&mut self, kind: KindId, names: Vec<Arc<str>>, capacity: &mut Resources) {
        capacity.set(kind, names.len() as i64 * ONE);
        self.set(kind, names);
    }

    pub fn set(&mut self, kind: KindId, names: Vec<Arc<str>>) {
        self.names.insert(kind, names);
    }

    pub fn get(&self, kind: KindId) -> Option<&[Arc<str>]> {
        self.names.get(&kind).map(Vec::as_slice)
    }

    pub fn iter(&self) -> impl Iterator<Item = (KindId, &[Arc<str>])> {
        self.names.iter().map(|(kind, names)| (*kind, names.as_slice()))
    }

    /// Whether the units of a kind have names.
    pub fn has(&self, kind: KindId) -> bool {
        self.names.contains_key(&kind)
    }

    /// Every name with its kind.
    pub fn each(&self) -> impl Iterator<Item = (KindId, &Arc<str>)> {
        self.iter().flat_map(|(kind, names)| names.iter().map(move |name| (kind, name)))
    }

    /// The kinds whose units have names.
    pub fn kinds(&self) -> KindSet {
        self.names.keys().fold(0, |kinds, kind| kinds | bit(*kind))
    }

    /// By the names of the kinds.
    pub fn by_kind(&self, kinds: &Kinds) -> UnitNames {
        self.iter().map(|(kind, names)| (kinds.name(kind).to_owned(), names.to_vec())).collect()
    }

    /// What a task that asks for this is given of these units: the first that nobody holds.
    pub fn choose(&self, request: &Resources, held: &BTreeSet<(KindId, Arc<str>)>) -> Units {
        let mut chosen = Units::default();
        for (kind, names) in self.iter() {
            let wanted = request.get(kind).max(0) / ONE;
            if wanted == 0 {
                continue;
            }
            let free = names.iter().filter(|name| !held.contains(&(kind, Arc::clone(name))));
            chosen.set(kind, free.take(wanted as usize).cloned().collect());
        }
        chosen
    }

    pub(super) fn note_problems(&self, capacity: &Resources, settings: &Settings, noted: &mut Vec<Invalid>) {
        for (kind, names) in self.iter() {
            if usize::from(kind.0) >= settings.kinds.len() {
                noted.push(Invalid::new("capacity", format!("kind number {}", kind.0), Problem::UnknownKind));
                continue;
            }
            let field = format!("capacity.{}", settings.kinds.name(kind));
            if !can_have_names(&settings.kinds, kind) {
                noted.push(Invalid::new(&field, "names", Problem::NoNames));
            }
            if capacity.get(kind) != names.len() as i64 * ONE {
                let problem = Problem::UnitsMiscounted { names: names.len() as u64 };
                noted.push(Invalid::new(&field, capacity.get(kind), problem));
            }
            noted.extend(check_count(&field, names.len(), UNITS_MAX));
            let mut seen = BTreeSet::new();
            for (index, name) in names.iter().enumerate() {
                let field = format!("{field}[{index}]");
                if name.is_empty() {
                    noted.push(Invalid::new(&field, "\"\"", Problem::Empty));
                }
                noted.extend(check_length(&field, name, settings.limits.name_length));
                if !seen.insert(name) {
                    noted.push(Invalid::new(&field, name, Problem::Duplicate));
                }
            }
        }
    }
}

/// The kinds of which a request asks for a part of a unit that could have a name.
pub fn parts_of(request: &Resources, kinds: &Kinds) -> KindSet {
    let parts = request.iter().filter(|(kind, amount)| amount % ONE != 0 && can_have_names(kinds, *kind));
    parts.fold(0, |found, (kind, _)| found | bit(kind))
}

impl JobSpec {
    /// Notes for each role of which kinds it asks for a part of a unit.
    pub fn note_parts(&mut self, kinds: &Kinds) {
        for role in self.groups.iter_mut().flat_map(|group| &mut group.roles) {
            let parts = parts_of(&role.shape.request, kinds);
            if parts != role.shape.rules.parts {
                Arc::make_mut(&mut role.shape).rules.parts = parts;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: KindId = KindId(3);

    fn names(names: &[&str]) -> Vec<Arc<str>> {
        names.iter().map(|name| Arc::from(*name)).collect()
    }

    #[test]
    fn the_first_free_names_are_given_in_the_order_of_the_list() {
        let mut units = Units::default();
        units.set(GPU, names(&["b", "a", "d", "c"]));
        let held = BTreeSet::from([(GPU, Arc::from("a"))]);
        let chosen = units.choose(&Resources::of(GPU, 2_000), &held);
        assert_eq!(chosen.get(GPU), Some(names(&["b", "d"]).as_slice()));
        assert!(units.choose(&Resources::of(KindId(1), 2_000), &held).is_empty());
    }

    #[test]
    fn parts_are_of_kinds_that_can_have_names() {
        let kinds = Kinds::default();
        let mut request = Resources::of(KindId(1), 500);
        request.set(KindId(2), 1_234_567);
        assert_eq!(parts_of(&request, &kinds), 0);
        request.set(GPU, 500);
        assert_eq!(parts_of(&request, &kinds), 0b1000);
        request.set(GPU, 3_000);
        assert_eq!(parts_of(&request, &kinds), 0);
    }
}
