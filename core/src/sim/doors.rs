//! Who may use the nodes of the worlds, and for whom their jobs run.

use std::sync::Arc;

use fastrand::Rng;

use crate::cluster_state::Node;
use crate::id::GroupId;
use crate::spec::{Access, Asker, GroupSpec, JobSpec, NodePatch, NodeSpec};

const POOLS: [&str; 2] = ["default", "lab"];

/// A pool, and now and then a door that is not open to everybody.
pub(super) fn settle(rng: &mut Rng, node: &mut NodeSpec) {
    node.facts.pool = rng.choice(POOLS).expect("not empty").to_owned();
    node.facts.os = system(rng);
    node.facts.access = if rng.u8(0..4) == 0 { access(rng) } else { None };
}

/// What a node runs on; some jobs mind.
pub(super) fn system(rng: &mut Rng) -> Option<String> {
    rng.choice(["linux", "linux", "plan9"]).map(str::to_owned)
}

/// Who may use a node from now on.
pub(super) fn access(rng: &mut Rng) -> Option<Arc<Access>> {
    let some = |rng: &mut Rng, names: &[&str]| -> Vec<String> {
        let chosen = names.iter().filter(|_| rng.u8(0..3) == 0);
        chosen.map(|name| (*name).to_owned()).collect()
    };
    let access = Access {
        owner: rng.bool().then(|| "ann".to_owned()),
        requestors: some(rng, &["bob", "c*"]),
        queues: some(rng, &["q1"]),
        except: some(rng, &["bob", "cid"]),
        loan: (rng.u8(0..4) == 0).then(|| "cid".to_owned()),
    };
    (access != Access::default()).then(|| Arc::new(access))
}

/// Some jobs are for one pool.
pub(super) fn confine(rng: &mut Rng, job: &mut JobSpec) {
    if rng.u8(0..5) > 0 {
        return;
    }
    job.confine(&[rng.choice(POOLS).expect("not empty").to_owned()]);
}

/// Loans end when everything is mended; what is not for somebody stays so.
pub(super) fn end_loan(node: &Node, patch: &mut NodePatch) {
    if let Some(access) = node.facts.access.as_ref().filter(|access| access.loan.is_some()) {
        let access = Access { loan: None, ..Access::clone(access) };
        patch.access = Some((access != Access::default()).then(|| Arc::new(access)));
    }
}

/// A group of a job with those for whom it runs, as every node is to judge them.
pub(super) fn asked(job: &JobSpec, id: GroupId) -> GroupSpec {
    let mut group = job.groups[id.index()].clone();
    let asker = Asker { requestor: job.requestor.to_string(), queue: job.standing.queue.to_string() };
    let asker = Arc::new(asker);
    for role in &mut group.roles {
        Arc::make_mut(&mut role.shape).rules.asker = Some(Arc::clone(&asker));
    }
    group
}
