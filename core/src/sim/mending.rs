//! Shows that the Monitor mends what other machines break: a rule of the protocol is broken for good, nothing
//! is checked on the way, and with the Monitor all work ends nevertheless, each fault reported.

use std::sync::Arc;

use crate::id::{Attempt, JobId, NodeId, Ticket};
use crate::machine::Machine;
use crate::messages::{ClusterMessage, Finding, HostMessage, JobMessage, MonitorMessage, Outbox};
use crate::monitor::Monitor;
use crate::mutation::{Mutation, with};
use crate::resources::{KindId, Resources};
use crate::settings::Settings;
use crate::spec::{Condition, JobSpec, NodePatch, NodeSpec, OnUnsatisfiable, ReservationSpec, Start};
use crate::time::Span;

use super::executor::{Behaviour, Course};
use super::links::{Batch, Party};
use super::world::World;

const SLOT: KindId = KindId(0);

struct Second;

impl Behaviour for Second {
    fn course(&mut self, _: Attempt) -> Course {
        Course::plain(Some(Span::from_whole_seconds(1)))
    }
}

/// A world of so many nodes of one slot each, in which nothing is checked on the way.
fn world(nodes: u32) -> World {
    let mut settings = Settings { on_unsatisfiable: OnUnsatisfiable::Fail, ..Settings::default() };
    settings.window.gap = Span::ZERO;
    let mut world = World::new(Arc::new(settings));
    world.lenient = true;
    for number in 0..nodes {
        let node = Box::new(NodeSpec::new(name(number), Resources::of(SLOT, 1)));
        tell(&mut world, ClusterMessage::AddNode { ticket: Ticket(0), node });
    }
    world
}

fn name(number: u32) -> String {
    format!("n{number}")
}

fn tell(world: &mut World, message: ClusterMessage) {
    world.tell(Party::Cluster, Batch::Cluster(vec![message]));
}

fn submit(world: &mut World, tasks: u32, start: Start) {
    let mut job = JobSpec::bag("j", tasks, Resources::of(SLOT, 1));
    job.groups[0].start = start;
    if start == Start::Atomic {
        job.groups[0].roles[0].min = tasks;
    }
    let submit = JobMessage::Submit { ticket: Ticket(1), job: Arc::new(job), adopted: Vec::new() };
    world.tell(Party::Jobs, Batch::Jobs(vec![submit]));
}

fn settle(world: &mut World) {
    world.settle(&mut Second).expect("nothing is checked but what really runs");
}

/// Nine tasks on three nodes, and the Monitor if it is wanted.
fn run(with_monitor: bool) -> (Vec<Finding>, u64) {
    let mut world = world(3);
    submit(&mut world, 9, Start::Independent);
    go_on(world, with_monitor)
}

/// What was found, and how many jobs never ended.
fn go_on(mut world: World, with_monitor: bool) -> (Vec<Finding>, u64) {
    let mut monitor = Monitor::new(Arc::new(world.scheduler.settings().clone()));
    let mut found = Vec::new();
    for _ in 0..100 {
        settle(&mut world);
        let mut heard = Vec::new();
        for message in world.take_host_messages() {
            match message {
                HostMessage::Finding(finding) => found.push(finding),
                HostMessage::Audited(audited) => heard.push(MonitorMessage::Audited(audited)),
                _ => {}
            }
        }
        let audits = monitor.wake_at().filter(|_| with_monitor);
        let Some(next) = world.next_event().into_iter().chain(audits).min() else { break };
        world.now = next.max(world.now);
        if with_monitor {
            let mut out = Outbox::default();
            monitor.receive(world.now, heard, &mut out);
            if !out.cluster.is_empty() {
                world.tell(Party::Cluster, Batch::Cluster(out.cluster));
            }
        }
    }
    (found, world.jobs.unfinished())
}

#[test]
fn nothing_is_found_where_all_is_well() {
    assert_eq!(run(true), (Vec::new(), 0));
}

#[test]
fn lost_wake_ups_are_found_and_healed() {
    with(Mutation::ForgetPending, || {
        assert_eq!(run(false).1, 1, "without the Monitor it waits for ever");
        let (found, unfinished) = run(true);
        assert_eq!(unfinished, 0);
        let lost = |finding: &Finding| match finding {
            Finding::LostWakeUp { group, turn } => {
                let said = finding.to_string();
                group.job() == JobId(1) && *turn > 0 && said.contains(&format!("in turn {turn}"))
            }
            _ => false,
        };
        assert!(!found.is_empty() && found.iter().all(lost), "{found:?}");
    });
}

#[test]
fn ends_that_the_scheduler_did_not_hear_of_are_found_and_made_good() {
    with(Mutation::DropRelease, || {
        let (found, unfinished) = run(true);
        assert_eq!(unfinished, 0);
        assert!(found.iter().any(|finding| matches!(finding, Finding::EndUnheard(_))), "{found:?}");
    });
}

/// Goal: a group that can never run any more, and is to be ended then, is found although nobody looked. Method:
/// a group waits for two nodes, and one of them goes without a look at those who would need it.
#[test]
fn groups_that_can_never_run_any_more_are_found_and_ended() {
    with(Mutation::TrustOldProspect, || {
        let overlooked = || {
            let mut world = world(2);
            submit(&mut world, 1, Start::Independent);
            settle(&mut world);
            submit(&mut world, 2, Start::Atomic);
            settle(&mut world);
            tell(&mut world, ClusterMessage::RemoveNode { ticket: Ticket(2), name: name(1) });
            world
        };
        assert_eq!(go_on(overlooked(), false).1, 1, "without the Monitor it waits for ever");
        let (found, unfinished) = go_on(overlooked(), true);
        assert_eq!(unfinished, 0);
        let about_it = |finding: &Finding| match finding {
            Finding::Overlooked { group, turn } => group.job() == JobId(2) && *turn > 0,
            _ => false,
        };
        assert!(!found.is_empty() && found.iter().all(about_it), "{found:?}");
    });
}

/// Goal: a node of which the Scheduler has a wrong view takes work again. Method: somebody gives it back, and the
/// Scheduler does not hear of it.
#[test]
fn wrong_views_of_nodes_are_found_and_mended() {
    with(Mutation::ReturnInSilence, || {
        let given_back = || {
            let mut world = world(1);
            let condition = |condition| {
                let patch = Box::new(NodePatch { condition: Some(condition), ..NodePatch::default() });
                ClusterMessage::UpdateNode { ticket: Ticket(3), name: name(0), patch }
            };
            tell(&mut world, condition(Condition::Manual));
            let wish = Box::new(ReservationSpec { who: "ann".into(), prepare: None });
            tell(&mut world, ClusterMessage::Reserve { ticket: Ticket(4), name: name(0), wish });
            tell(&mut world, condition(Condition::Automated));
            tell(&mut world, ClusterMessage::Return { ticket: Ticket(5), name: name(0) });
            submit(&mut world, 1, Start::Independent);
            world
        };
        assert_eq!(go_on(given_back(), false).1, 1, "without the Monitor it waits for ever");
        let (found, unfinished) = go_on(given_back(), true);
        assert_eq!((&found[0], unfinished), (&Finding::WrongView(NodeId(0)), 0));
        let started = |finding: &Finding| matches!(finding, Finding::LostWakeUp { .. });
        assert!(found.len() == 2 && started(&found[1]), "and what waited for it has started: {found:?}");
    });
}
