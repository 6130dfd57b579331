//! Work that replaces earlier work: jobs of one requestor and basis go together by their tag, and a new tag
//! cancels the jobs of the one before. What was replaced once does not come back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::JobId;
use crate::messages::{Outbox, Refusal};
use crate::mutation::{self, Mutation};
use crate::outcome::StopCause;
use crate::spec::{JobSpec, Relations};

use super::JobState;

/// So many pairs of requestor and basis are remembered, those that were used last.
const BASES_MAX: usize = 100_000;

/// So many tags of each that were replaced.
const TAGS_MAX: usize = 100;

type Key = (Arc<str>, Arc<str>);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Bases {
    by_key: BTreeMap<Key, Basis>,
    /// When each was used last, by a count of uses.
    by_use: BTreeMap<u64, Key>,
    uses: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Basis {
    tag: Arc<str>,
    /// Jobs of the tag that have not finished.
    jobs: BTreeSet<JobId>,
    /// Tags that were replaced, oldest first.
    replaced: VecDeque<Arc<str>>,
    used: u64,
}

/// The tag of a job: its own number, if it names none.
pub(super) fn tag_of(spec: &JobSpec, id: JobId) -> Arc<str> {
    let Relations { basis, tag, .. } = &*spec.relations;
    match (basis.as_str(), tag.as_str()) {
        ("", _) => Arc::default(),
        (_, "") => id.to_string().into(),
        (_, tag) => tag.into(),
    }
}

fn key_of(spec: &JobSpec) -> Key {
    (Arc::clone(&spec.requestor), spec.relations.basis.as_str().into())
}

impl Bases {
    /// The jobs that this one replaces.
    fn enter(&mut self, key: Key, tag: Arc<str>, id: JobId) -> BTreeSet<JobId> {
        self.uses += 1;
        let used = self.uses;
        self.by_use.insert(used, key.clone());
        let Some(basis) = self.by_key.get_mut(&key) else {
            let (jobs, replaced) = (BTreeSet::from([id]), VecDeque::new());
            self.by_key.insert(key, Basis { tag, jobs, replaced, used });
            self.forget_old();
            return BTreeSet::new();
        };
        self.by_use.remove(&basis.used);
        basis.used = used;
        if basis.tag == tag {
            basis.jobs.insert(id);
            return BTreeSet::new();
        }
        basis.replaced.push_back(std::mem::replace(&mut basis.tag, tag));
        if basis.replaced.len() > TAGS_MAX {
            basis.replaced.pop_front();
        }
        std::mem::replace(&mut basis.jobs, BTreeSet::from([id]))
    }

    fn forget_old(&mut self) {
        while self.by_key.len() > BASES_MAX {
            let Some((_, key)) = self.by_use.pop_first() else { return };
            self.by_key.remove(&key);
        }
    }
}

impl JobState {
    /// Whether work of this tag may still come.
    pub(super) fn check_tag(&self, spec: &JobSpec, tag: &Arc<str>) -> Result<(), Refusal> {
        if spec.relations.basis.is_empty() {
            return Ok(());
        }
        let Some(basis) = self.bases.by_key.get(&key_of(spec)) else { return Ok(()) };
        if !basis.replaced.contains(tag) || mutation::active(Mutation::TakeOldTag) {
            return Ok(());
        }
        let (basis, by) = (key_of(spec).1, Arc::clone(&basis.tag));
        Err(Refusal::Superseded { basis, tag: Arc::clone(tag), by })
    }

    /// Cancels the jobs that a new one replaces.
    pub(super) fn supersede(&mut self, spec: &JobSpec, tag: Arc<str>, id: JobId, out: &mut Outbox) {
        if spec.relations.basis.is_empty() {
            return;
        }
        let replaced = self.bases.enter(key_of(spec), tag, id);
        for job in replaced.into_iter().filter(|_| !mutation::active(Mutation::KeepSuperseded)) {
            self.withdraw(job, StopCause::Cancel, out);
        }
    }

    pub(super) fn leave_basis(&mut self, spec: &JobSpec, id: JobId) {
        if spec.relations.basis.is_empty() {
            return;
        }
        if let Some(basis) = self.bases.by_key.get_mut(&key_of(spec)) {
            basis.jobs.remove(&id);
        }
    }
}
