//! What makes two waiting things identical.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::resources::Resources;
use crate::spec::{Hops, ShapeSpec};

/// What makes two waiting things identical.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) enum ShapeKey {
    Task(Arc<ShapeSpec>),
    /// An atomic group: how many tasks of which shape must find room together, how far apart.
    Gang(Vec<(Arc<ShapeSpec>, u32)>, Option<Hops>),
}

impl ShapeKey {
    /// The pool that it is bound to.
    pub(super) fn bound_pool(&self) -> Option<&Arc<str>> {
        self.specs().next().and_then(|spec| spec.rules.bound_pool.as_ref())
    }

    /// The distinct tasks that are part of it.
    pub(super) fn specs(&self) -> impl Iterator<Item = &Arc<ShapeSpec>> {
        let (task, gang) = match self {
            ShapeKey::Task(spec) => (Some(spec), [].as_slice()),
            ShapeKey::Gang(roles, _) => (None, roles.as_slice()),
        };
        // Guests follow their hosts, wherever those find room.
        let gang = gang.iter().map(|(spec, _)| spec).filter(|spec| spec.guest_of.is_none());
        task.into_iter().chain(gang)
    }

    /// The least room on a node that matters to it.
    pub(super) fn touch(&self) -> Resources {
        match self {
            ShapeKey::Task(spec) => spec.request.clone(),
            ShapeKey::Gang(roles, _) => {
                let hosts = roles.iter().filter(|(spec, _)| spec.guest_of.is_none());
                let mut requests = hosts.map(|(spec, _)| &spec.request);
                let first = requests.next().expect("a gang has roles of its own").clone();
                requests.fold(first, |smallest, request| smallest.componentwise_min(request))
            }
        }
    }
}
