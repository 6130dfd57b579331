//! For whom tasks run, where some node is not for everybody.
//!
//! As long as every node is for everybody nobody asks who asks, and tasks of all requestors share their
//! shapes. The first node that minds tells them apart, for good: nodes that mind seldom come alone.

use std::sync::Arc;

use crate::id::{GroupId, JobId};
use crate::messages::NodeView;
use crate::mutation::{self, Mutation};
use crate::spec::{Asker, ShapeSpec};

use super::Scheduler;
use super::queue::Entry;
use super::shapes::ShapeKey;

impl Scheduler {
    /// The shape of a task of this job, with those for whom it runs where nodes mind.
    pub(super) fn asked_by(&self, id: JobId, spec: &Arc<ShapeSpec>) -> Arc<ShapeSpec> {
        if !self.nodes_mind {
            return Arc::clone(spec);
        }
        let job = self.jobs.get(id.0).expect("the caller has seen the job");
        let asker = job.standing.as_deref().map_or_else(Asker::default, |(requestor, standing)| Asker {
            requestor: requestor.to_string(),
            queue: standing.queue.to_string(),
        });
        if spec.rules.asker.as_deref() == Some(&asker) {
            return Arc::clone(spec);
        }
        let mut spec = ShapeSpec::clone(spec);
        spec.rules.asker = Some(Arc::new(asker));
        Arc::new(spec)
    }

    /// A node is news. The first one that is not for everybody tells all tasks apart by who asks.
    pub(super) fn mind_access(&mut self, view: &NodeView) {
        let ignores = mutation::active(Mutation::ForgetWhoAsks);
        if self.nodes_mind || view.facts.access.is_none() || ignores {
            return;
        }
        self.nodes_mind = true;
        // What is waited with until now is nothing that arrives any more.
        self.shapes.close_all_windows(&mut self.nodes);
        let jobs: Vec<JobId> = self.jobs.iter().map(|(id, _)| JobId(id)).collect();
        for id in jobs {
            self.shape_anew(id);
        }
    }

    /// Gives what a job has waiting the shapes that it has by now.
    fn shape_anew(&mut self, id: JobId) {
        let groups = self.jobs.get(id.0).map_or(0, |job| job.groups.len());
        for group in (0..groups).map(|index| GroupId::new(id, index as u16)) {
            let Some(view) = self.group(group) else { continue };
            let (is_gang, roles) = (view.gang.is_some(), view.roles.len());
            self.doubt(group);
            if is_gang {
                self.dequeue_gang(group);
            }
            for role in 0..roles {
                self.shape_role_anew(Entry { group, role: role as u16 });
            }
            if is_gang {
                let shape = self.enqueue_gang(group);
                self.open_unless_collecting(shape);
            }
        }
    }

    fn shape_role_anew(&mut self, entry: Entry) {
        let (id, role) = (entry.group.job(), usize::from(entry.role));
        let view = &mut self.group_mut(entry.group).expect("the caller has seen the group").roles[role];
        let (before, queued, order) = (view.shape, std::mem::take(&mut view.queued), view.order);
        let spec = Arc::clone(&view.spec);
        if queued > 0 {
            self.take_waiting(before, u64::from(queued));
            self.shapes.settle(before, &self.jobs);
        }
        let spec = self.asked_by(id, &spec);
        let place = self.place_of_role(entry);
        let shape = self.shapes.intern(place, ShapeKey::Task(Arc::clone(&spec)), &mut self.nodes);
        self.shapes.get_mut(shape).references += 1;
        self.shapes.release(before, &mut self.nodes);
        let view = &mut self.group_mut(entry.group).expect("just seen").roles[role];
        (view.shape, view.spec, view.queued) = (shape, spec, queued);
        if queued > 0 {
            self.add_waiting(shape, (order, entry), u64::from(queued));
            self.shapes.settle(shape, &self.jobs);
            self.open_unless_collecting(shape);
        }
    }
}
