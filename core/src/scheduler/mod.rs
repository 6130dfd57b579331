//! The Scheduler: who runs where, decided the moment something happened that can matter.
//!
//! Work happens on messages and closing windows only. Everything that waits is indexed by what
//! blocks it: a shape whose window is open waits for a deadline, every other shape waits because
//! no node has room for it. So a turn looks at shapes that just arrived or whose window closed,
//! at nodes that just gained room, and at nothing else.
//!
//! The policy is the plainest that is fair: first come, first served; what does not fit is skipped.
//! Each task goes to a node that its rules allow and that has room. Spread, that is the one with the fewest
//! tasks of its service, in the branch that has the fewest, then the one with the fewest tasks; packed, the
//! one that has the least left of what is scarce. A node that is warm for a task goes before others.

mod account;
mod ageing;
mod ahead;
mod arrivals;
mod askers;
mod audit;
mod backfill;
mod causes;
mod change_log;
mod check;
mod check_choice;
mod claim_choice;
mod claim_turns;
mod claimants;
mod claims;
mod counts;
mod credit;
mod earmarks;
mod elastic;
mod ends;
mod explain;
mod explain_claims;
mod explain_gate;
mod explain_group;
mod explain_hops;
mod explain_share;
mod fair_cause;
mod faults;
mod figures;
mod fillers;
mod floors;
mod gangs;
mod glance;
mod grants;
mod groups;
mod growth;
mod guests;
mod hops;
mod job_standing;
mod keys;
mod leaf;
mod levelling;
mod limits;
mod listing;
mod live;
mod matching;
mod memories;
mod near;
mod newcomers;
mod node_news;
mod nodes;
mod obstacles;
mod order;
mod outlook;
mod packing;
mod pick;
mod plan;
mod pools;
mod preempt;
mod prospects;
mod questions;
mod queue;
mod realms;
mod rehearsal;
mod relief;
mod resize;
mod restand;
mod row;
mod scopes;
mod search;
mod shape_key;
mod shapes;
mod share_news;
mod shares;
mod sight;
mod spread;
mod standings;
mod stop_records;
mod sums;
mod ties;
mod topology;
mod victims;
mod views;
mod wants;
mod weigh;
mod windows;

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::collections::Paged;
use crate::id::{GroupId, NodeId, TaskId};
use crate::machine::{Broken, Machine};
use crate::messages::{Answer, ClusterMessage, NodeEvent, Outbox, SchedulerMessage, ShareFigure};
use crate::outcome::StopCause;
use crate::resources::Resources;
use crate::settings::Settings;
use crate::shares::bucket::Bucket;
use crate::shares::durations::Durations;
use crate::spec::{Filters, ShapeSpec};
use crate::time::{Span, Time};

use ageing::Ageing;
pub use check::Startable;
pub use claims::ALL_POOLS;
use claims::Claims;
use credit::Credit;
pub use earmarks::EarmarkEnd;
use earmarks::Earmarks;
use elastic::Elastic;
use grants::Grants;
use groups::{GroupView, JobView};
use limits::Limits;
use live::LiveTable;
use nodes::Nodes;
use plan::Turn;
use prospects::Prospects;
use questions::Question;
use queue::Entry;
use shapes::Shapes;
use share_news::Told;
use shares::Shares;
pub use stop_records::{Evidence, StopRecord, SupposedRoom};

/// Run times are remembered for at most this many keys.
const DURATIONS_MAX: usize = 100_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scheduler {
    settings: Arc<Settings>,
    nodes: Nodes,
    shapes: Shapes,
    jobs: Paged<JobView>,
    live: LiveTable,
    last_plan: u64,
    /// The last plan that ClusterState has dealt with.
    booked_plan: u64,
    gate_open: bool,
    /// When it opens if nothing changes.
    gate_opens: Option<Time>,
    /// What the Rebalancer was told last.
    last_figures: Vec<ShareFigure>,
    credit: Option<Credit>,
    /// Questions to be answered, one a turn: the first answer looks at every node.
    questions: VecDeque<Question>,
    /// Nodes with room that the last turn did not come to.
    unserved: Vec<NodeId>,
    shares: Shares,
    /// What classes were granted and have not used yet, while a turn goes on.
    grants: Option<Grants>,
    limits: Limits,
    earmarks: Earmarks,
    claims: Claims,
    /// Something happened after which somebody may give way to somebody else.
    unsettled: bool,
    /// The last turn ended before lower bands were served, so that higher ones are seen to first.
    ahead: bool,
    /// When somebody who is protected now may have to give way.
    retry_at: Option<Time>,
    stop_bucket: Option<Bucket>,
    /// Who was stopped in this turn, for whom and what got better by it.
    #[serde(skip)]
    stop_records: Vec<StopRecord>,
    /// Records of stops are to hold what somebody needs who wants to see for himself.
    #[serde(skip)]
    witnessed: bool,
    /// Whether there are limits at all.
    limited: bool,
    told: Told,
    durations: Durations,
    /// How long tasks run, the last ones counting most.
    mean_run: Span,
    /// What is known of groups that are to fail when they can never fit.
    #[serde(skip)]
    prospects: Prospects,
    /// Some node is not for everybody, so tasks are told apart by who asks for them.
    nodes_mind: bool,
    elastic: Elastic,
    ageing: Ageing,
    /// Counts turns of planning, and starts of tasks.
    rounds: u64,
    starts: u64,
    /// The time of the turn.
    now: Time,
    /// The last shape that was tried although nothing had happened.
    sampled: u32,
}

impl Scheduler {
    pub fn new(settings: Arc<Settings>) -> Scheduler {
        let (width, choice, faulty) = (settings.kinds.len(), settings.placement, settings.faulty);
        Scheduler {
            told: Told::new(&Shares::new(&settings.shares)),
            shares: Shares::new(&settings.shares),
            grants: None,
            limits: Limits::default(),
            earmarks: Earmarks::default(),
            claims: Claims::default(),
            unsettled: false,
            ahead: false,
            retry_at: None,
            stop_bucket: None,
            stop_records: Vec::new(),
            witnessed: false,
            limited: Limits::any(&settings.shares),
            durations: Durations::new(DURATIONS_MAX),
            mean_run: Span::ZERO,
            prospects: Prospects::default(),
            nodes_mind: false,
            elastic: Elastic::default(),
            ageing: Ageing::default(),
            rounds: 0,
            starts: 0,
            now: Time::ZERO,
            sampled: 0,
            live: LiveTable::new(settings.rebalance.any()),
            settings,
            nodes: Nodes::new(width, choice, faulty),
            shapes: Shapes::new(),
            jobs: Paged::default(),
            last_plan: 0,
            booked_plan: 0,
            gate_open: false,
            gate_opens: None,
            last_figures: Vec::new(),
            credit: None,
            questions: VecDeque::new(),
            unserved: Vec::new(),
        }
    }

    /// The settings it works with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether the last turn ended before everything was looked at.
    fn has_more_to_plan(&self) -> bool {
        !self.unserved.is_empty() || self.shapes.any_open()
    }

    /// Tasks that wait for a place.
    pub fn waiting_tasks(&self) -> u64 {
        self.shapes.iter().map(|(id, _)| self.shapes.waiting(id)).sum()
    }

    fn group(&self, id: GroupId) -> Option<&GroupView> {
        groups::find(&self.jobs, id)
    }

    fn group_mut(&mut self, id: GroupId) -> Option<&mut GroupView> {
        self.jobs.get_mut(id.job().0)?.groups.get_mut(id.index())?.as_mut()
    }

    fn request_of(&self, task: TaskId) -> &Resources {
        &self.shape_of(task).request
    }

    fn shape_of(&self, task: TaskId) -> &ShapeSpec {
        let group = self.group(task.group).expect("a group outlives its attempts");
        &group.roles[usize::from(task.role)].spec
    }

    /// A member of an atomic group ended: it comes back, or it does not after all.
    fn member(&mut self, now: Time, id: GroupId, role: u16, comes_back: bool) {
        if let Some(group) = self.group_mut(id) {
            group.count_returning(role, if comes_back { 1 } else { -1 });
            self.resettle(now, id);
        }
    }

    fn change_settings(&mut self, now: Time, settings: Arc<Settings>) {
        let widened = settings.kinds.len() != self.settings.kinds.len();
        let shared_otherwise = settings.shares != self.settings.shares;
        let chosen_otherwise = settings.placement != self.settings.placement;
        let before = Settings::replace(&mut self.settings, settings);
        let is_ordered = self.live.is_ordered_by_start();
        self.elastic.even_at = None;
        self.nodes.faults.change_settings(self.settings.faulty, now);
        if chosen_otherwise {
            self.nodes.scopes.prefer(self.settings.placement);
            self.shapes.rescope(&mut self.nodes);
        }
        if widened {
            self.rebuild();
        }
        let was_plain = self.shares.is_plain();
        let places_otherwise = widened || self.settings.shares.places_otherwise(&before.shares);
        match shared_otherwise {
            true if places_otherwise => self.share_anew(now, &before.shares),
            true => self.weigh_anew(now, &before.shares),
            false => {}
        }
        let keeps_order = self.settings.rebalance.any();
        if keeps_order != is_ordered || (shared_otherwise && places_otherwise) {
            self.order_by_start();
        }
        self.told.anew |= (widened || shared_otherwise) && !(was_plain && self.shares.is_plain());
    }

    fn switch_to(&mut self, now: Time, settings: Arc<Settings>, turn: &mut Turn) {
        self.end_all_claims(turn);
        self.change_settings(now, settings);
        self.ripen_anew();
    }

    fn handle(&mut self, now: Time, message: SchedulerMessage, turn: &mut Turn, out: &mut Outbox) {
        match message {
            SchedulerMessage::NewGroups(groups) => {
                groups.into_iter().for_each(|group| self.new_group(now, group, turn));
            }
            SchedulerMessage::Return(tasks) => self.take_back(now, tasks),
            SchedulerMessage::Member { group, role, comes_back } => self.member(now, group, role, comes_back),
            SchedulerMessage::Reprioritise(jobs) => {
                jobs.into_iter().for_each(|one| self.reprioritise(now, one.job, one.standing));
            }
            SchedulerMessage::Resize { group, role, min, max } => {
                self.resize(now, Entry { group, role }, (min, max), out);
            }
            SchedulerMessage::Mend(group) => self.mend(now, group),
            SchedulerMessage::Close { group, role } => self.close_role(now, Entry { group, role }, out),
            SchedulerMessage::Discard { group, role } => self.discard_role(now, Entry { group, role }),
            SchedulerMessage::Withdraw(groups) => {
                groups.into_iter().for_each(|group| self.withdraw(group, StopCause::Cancel, out));
            }
            SchedulerMessage::Abort(groups) => {
                groups.into_iter().for_each(|group| self.withdraw(group, StopCause::Abort, out));
            }
            SchedulerMessage::Dismiss(groups) => {
                groups.into_iter().for_each(|group| self.withdraw(group, StopCause::GroupDone, out));
            }
            SchedulerMessage::Revoked(attempts) => self.revoke(&attempts, out),
            SchedulerMessage::StopTasks(tasks) => {
                tasks.into_iter().for_each(|(task, cause)| self.stop_task(task, cause, out));
            }
            SchedulerMessage::ListSizes { ticket, job } => out.reply(ticket, Answer::Sizes(self.sizes(job))),
            SchedulerMessage::ListWaiting { ticket, limit } => {
                out.reply(ticket, Answer::Waiting(self.first_waiting(limit as usize)));
            }
            SchedulerMessage::Extend { ticket, what, span } => self.extend(ticket, what, span, out),
            SchedulerMessage::Break(groups) => {
                groups.into_iter().for_each(|group| self.break_group(group, out));
            }
            SchedulerMessage::Forget(groups) => groups.into_iter().for_each(|group| self.forget(group)),
            SchedulerMessage::Nodes(news) => {
                news.into_iter().for_each(|news| self.node_news(news, turn, out));
            }
            SchedulerMessage::Released(list) => list.into_iter().for_each(|one| self.released(now, one)),
            SchedulerMessage::Pending { sequence, nodes } => {
                turn.seen = Some(sequence);
                nodes.into_iter().for_each(|node| turn.touch(node));
            }
            SchedulerMessage::Committed { plan } => {
                self.booked_plan = plan;
                self.plan_is_booked(now, plan);
            }
            SchedulerMessage::Audit(audit) => self.audit(&audit, turn, out),
            SchedulerMessage::Conflict(attempts) => self.conflict(attempts, turn),
            SchedulerMessage::Credit { granted, window } => self.grant(granted, window, turn),
            SchedulerMessage::NewCredit { window } => self.begin_credit(window, turn),
            SchedulerMessage::Gate { open } => self.gate_open = open,
            SchedulerMessage::GateClock { opens } => self.gate_opens = opens,
            SchedulerMessage::Settings(settings) => self.switch_to(now, settings, turn),
            SchedulerMessage::Explain { ticket, subject } => {
                self.ask(Question { ticket, subject, node: None }, out);
            }
            SchedulerMessage::ExplainOn { ticket, subject, node } => {
                self.ask(Question { ticket, subject, node: Some(node) }, out);
            }
            SchedulerMessage::PastFailures(failures) => self.remember(now, failures),
        }
    }
}

impl Machine for Scheduler {
    type Message = SchedulerMessage;

    fn receive(&mut self, now: Time, batch: Vec<SchedulerMessage>, out: &mut Outbox) {
        self.nodes.faults.advance(now);
        let mut turn = Turn::new(now, self.settings.limits.placements_per_turn);
        self.now = now;
        if !batch.iter().all(grants::outlived_by_grants) {
            self.grants = None;
        }
        self.earmarks.ended.clear();
        self.earmarks.wronged = None;
        self.stop_records.clear();
        self.note_unsettled(&batch);
        self.note_offers(&batch);
        let idle = self.is_idle_turn(now, &batch);
        for message in batch {
            self.handle(now, message, &mut turn, out);
        }
        self.close_due_windows(now);
        self.release_by_time(now);
        self.thaw_due(now);
        self.raise_due(now);
        self.settle_claims(&mut turn);
        self.advance_earmarks(&mut turn);
        self.serve_claimants(&mut turn);
        self.offer_claimed(&turn);
        if idle {
            self.sample_waiting();
        }
        self.plan(&mut turn);
        self.note_ages(now);
        if idle {
            self.note_lost_wake_ups(&turn, out);
        }
        let capacity_changed = turn.capacity_changed;
        if let Some(plan) = turn.take_plan(&mut self.last_plan) {
            out.cluster.push(ClusterMessage::Commit(plan));
        }
        for node in turn.adopted_on {
            self.vacate(node, out);
        }
        for (shape, tasks) in turn.wanted {
            out.node_event(NodeEvent::Wanted { shape, tasks });
        }
        if let Some(sequence) = turn.seen {
            out.cluster.push(ClusterMessage::Seen { sequence });
        }
        self.keep_starts();
        self.disrupt(now, out);
        self.renew_claims(now);
        self.tell_claims(out);
        self.push_figures(out);
        self.fail_the_unable(out);
        if idle {
            self.note_overlooked(out);
        }
        // Nothing of a turn changes a share after this.
        self.tell_shares(capacity_changed, out);
        self.answer_next_question(out);
    }

    fn wake_at(&self) -> Option<Time> {
        // The rest at once, after everybody else had a turn.
        let more = self.has_more_to_plan() || !self.questions.is_empty();
        if more { Some(Time::ZERO) } else { self.next_deadline() }
    }

    fn next_deadline(&self) -> Option<Time> {
        let even_at = self.elastic.even_at.filter(|_| !self.is_starved());
        [self.deadline_but_claims(), self.next_claim(), even_at].into_iter().flatten().min()
    }

    fn equip(&mut self, filters: &Filters) {
        Arc::make_mut(&mut self.settings).filters = filters.clone();
        self.nodes.equip(filters);
    }

    fn rebuild(&mut self) {
        let width = self.settings.kinds.len();
        self.nodes.rebuild(width);
        self.shares.rebuild(&self.settings.shares);
        self.shapes.rebuild(width, self.shares.leaves.len(), &self.jobs);
        self.count_all_waiting();
        self.shares.take_changed();
        self.rebuild_elastic();
        self.rebuild_ages();
        self.rebuild_claims();
        self.order_by_start();
        self.doubt_everything();
    }

    fn check(&self) -> Result<(), Broken> {
        self.check_view()
    }
}

#[cfg(test)]
mod tests;
