//! The herald: passes on what the machines say to the service. It answers callers, writes the board and
//! serves subscribers, on a thread of its own, so that nobody who decides waits for it.

use std::sync::Arc;

use actix::{Actor, Addr, Context, Handler, Message};
use metrics::{Counter, Gauge};
use plimsoll_core::messages::{Finding, HostMessage, NodeEvent};

use crate::backlog::Backlog;
use crate::board::Board;
use crate::fatal::Part;
use crate::front::{AgentSilent, Front};
use crate::replies::{Expected, Replies};
use crate::share_gauges::ShareGauges;
use crate::subscriptions::{Event, Subscriber};
use crate::vital::{Emergency, Vital};

/// What a machine's turn said to the host.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct HostBatch(pub(crate) Vec<HostMessage>);

/// Callers to be answered. Told before the machines can hear what was asked.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Expect(pub(crate) Vec<Expected>);

#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Subscribe(pub(crate) Vec<Subscriber>);

/// Nobody will say anything any more.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct DropAll;

/// Answered when everything that was said before has been passed on.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Flush;

pub(crate) struct Herald {
    board: Arc<Board>,
    backlog: Backlog,
    front: Addr<Front>,
    replies: Replies,
    subscribers: Vec<Subscriber>,
    share_gauges: ShareGauges,
    /// What was said to the service and not passed on yet.
    depth: Gauge,
    /// By [`Finding::KINDS`].
    findings: [Counter; Finding::KINDS.len()],
    _vital: Vital,
}

impl Herald {
    pub(crate) fn new(
        board: Arc<Board>,
        backlog: Backlog,
        front: Addr<Front>,
        emergency: &Arc<Emergency>,
    ) -> Herald {
        Herald {
            _vital: Vital::new(Part::Herald, emergency),
            board,
            backlog,
            front,
            replies: Replies::default(),
            subscribers: Vec::new(),
            share_gauges: ShareGauges::default(),
            depth: metrics::gauge!("plimsoll_herald_backlog"),
            findings: Finding::KINDS.map(|kind| metrics::counter!("plimsoll_findings_total", "kind" => kind)),
        }
    }

    /// Whatever the monitor finds is a fault of the runtime: it is counted, logged and told.
    fn note_finding(&self, finding: Finding, events: &mut Vec<Event>) {
        let (kind, mended) = (Finding::KINDS[finding.kind()], finding.is_mended());
        self.findings[finding.kind()].increment(1);
        tracing::warn!(%finding, kind, mended, "the machines do not agree");
        if !self.subscribers.is_empty() {
            events.push(Event::Finding(finding));
        }
    }

    fn publish(&mut self, events: Vec<Event>) {
        if events.is_empty() || self.subscribers.is_empty() {
            return;
        }
        let events: Arc<[Event]> = events.into();
        self.subscribers.retain(|subscriber| subscriber.publish(&events));
    }
}

impl Actor for Herald {
    type Context = Context<Self>;
}

impl Handler<HostBatch> for Herald {
    type Result = ();

    fn handle(&mut self, batch: HostBatch, _: &mut Context<Self>) {
        let keep_events = !self.subscribers.is_empty();
        let mut events = Vec::new();
        let mut shares_changed = false;
        let messages = batch.0.len();
        for message in batch.0 {
            match message {
                HostMessage::Reply { ticket, answer } => self.replies.answer(ticket, answer),
                // The board learned of it when it was said.
                HostMessage::Accepted { .. } => {}
                HostMessage::Aborted { job, reason } => self.board.note_abort(job, &reason),
                HostMessage::Assigned { group, pool } => self.board.note_assigned(group, pool),
                // Who holds a claim is told as the state of its group.
                HostMessage::Claim(_) => {}
                HostMessage::Respecified { job, spec } => self.board.respecify(job, spec),
                HostMessage::Shares(news) => {
                    self.board.note_shares(&news);
                    shares_changed = true;
                }
                HostMessage::Unsatisfiable { group, at, explanation } => {
                    self.board.note_abort(group.job(), &explanation.sentence().into());
                    if keep_events {
                        events.push(Event::Unsatisfiable { group, at, explanation });
                    }
                }
                // The monitor learned of it when it was said.
                HostMessage::Audited(_) => {}
                HostMessage::Standing(audit) => {
                    for finding in self.board.compare_states(&audit) {
                        self.note_finding(finding, &mut events);
                    }
                }
                HostMessage::Ledger(audit) => {
                    for finding in self.board.compare_attempts(&audit) {
                        self.note_finding(finding, &mut events);
                    }
                }
                HostMessage::Finding(finding) => self.note_finding(finding, &mut events),
                HostMessage::Job(event) => {
                    self.board.note_job(&event);
                    if keep_events {
                        events.push(Event::Job(event));
                    }
                }
                HostMessage::Node(event) => {
                    self.board.note_node(&event);
                    if let NodeEvent::Unresponsive { node } = event {
                        self.front.do_send(AgentSilent(node));
                    }
                    if keep_events {
                        events.push(Event::Node(event));
                    }
                }
            }
        }
        if shares_changed {
            self.share_gauges.show(&self.board.shares());
        }
        self.publish(events);
        self.depth.set(self.backlog.messages() as f64);
        self.backlog.done(messages);
    }
}

impl Handler<Expect> for Herald {
    type Result = ();

    fn handle(&mut self, expect: Expect, _: &mut Context<Self>) {
        self.replies.expect(expect.0);
    }
}

impl Handler<Subscribe> for Herald {
    type Result = ();

    fn handle(&mut self, mut subscribe: Subscribe, _: &mut Context<Self>) {
        self.subscribers.retain(Subscriber::is_read);
        self.subscribers.append(&mut subscribe.0);
    }
}

impl Handler<DropAll> for Herald {
    type Result = ();

    fn handle(&mut self, _: DropAll, _: &mut Context<Self>) {
        self.replies = Replies::default();
        self.subscribers.clear();
    }
}

impl Handler<Flush> for Herald {
    type Result = ();

    fn handle(&mut self, _: Flush, _: &mut Context<Self>) {}
}

#[cfg(test)]
impl Handler<crate::vital::Sabotage> for Herald {
    type Result = ();

    fn handle(&mut self, _: crate::vital::Sabotage, _: &mut Context<Self>) {
        panic!("as it was told to");
    }
}
