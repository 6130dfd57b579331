//! Decisions about groups as a whole: one each, whatever the group is made of.

use crate::explanation::Explanation;
use crate::id::{GroupId, NodeId};
use crate::messages::{ClaimEvent, ClaimNews, ClaimView};
use crate::plan::{Decision, DecisionKind};
use crate::time::Time;

use super::DryRun;

impl DryRun<'_> {
    /// A group that can never fit.
    pub(super) fn fail(&mut self, id: GroupId, at: Time, explanation: &Explanation) {
        self.decide_group(id, at, DecisionKind::Fail, String::new(), explanation.sentence());
    }

    /// Nodes are kept for a group, or not any more. That it has started is a decision already.
    pub(super) fn claim(&mut self, news: &ClaimNews) {
        match (&news.claim, news.event) {
            (Some(claim), _) => {
                let name = |node: &NodeId| self.node_name(*node);
                let nodes: Vec<String> = claim.nodes.iter().map(name).collect();
                let why = why_claimed(claim);
                self.decide_group(news.group, news.at, DecisionKind::Claim, nodes.join(", "), why);
            }
            (None, ClaimEvent::Started) => {}
            (None, event) => {
                let why = event.words().to_owned();
                self.decide_group(news.group, news.at, DecisionKind::Revoke, String::new(), why);
            }
        }
    }

    fn decide_group(&mut self, id: GroupId, at: Time, kind: DecisionKind, node: String, why: String) {
        let spec = &self.jobs[id.job().0 as usize - 1];
        let shares = &self.settings.shares;
        self.report.record(Decision {
            at: at.as_seconds(),
            kind,
            job: spec.name.clone(),
            group: spec.groups[id.index()].name.clone(),
            role: String::new(),
            task: 0,
            node,
            class: shares.class_of(&spec.requestor, &spec.standing.queue).map(str::to_owned),
            queue: (!spec.standing.queue.is_empty()).then(|| spec.standing.queue.to_string()),
            units: None,
            why,
        });
    }
}

fn why_claimed(claim: &ClaimView) -> String {
    let ends = match claim.awaited {
        0 if claim.yielding > 0 => "those who run there go at once".to_owned(),
        0 => "there is room by now".to_owned(),
        1 => "1 task has to end there first".to_owned(),
        awaited => format!("{awaited} tasks have to end there first"),
    };
    match claim.expected {
        Some(expected) => format!("it has waited long enough; {ends}; expected to start at {expected}"),
        None => format!("it has waited long enough; {ends}; nobody knows when"),
    }
}
