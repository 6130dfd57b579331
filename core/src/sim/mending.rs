//! Shows that the Monitor mends what other machines break: a rule of the protocol is broken for good, nothing
//! is checked on the way, and with the Monitor all work ends nevertheless, each fault reported.

use std::sync::Arc;

use crate::id::{Attempt, Ticket};
use crate::machine::Machine;
use crate::messages::{ClusterMessage, Finding, HostMessage, JobMessage, MonitorMessage, Outbox};
use crate::monitor::Monitor;
use crate::mutation::{Mutation, with};
use crate::resources::{KindId, Resources};
use crate::settings::Settings;
use crate::spec::{JobSpec, NodeSpec};
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

/// Nine tasks on three nodes of one slot each, and the Monitor if it is wanted. What was found, and how many
/// jobs never ended.
fn run(with_monitor: bool) -> (Vec<Finding>, u64) {
    let mut settings = Settings::default();
    settings.window.gap = Span::ZERO;
    let settings = Arc::new(settings);
    let mut monitor = Monitor::new(Arc::clone(&settings));
    let mut world = World::new(settings);
    world.lenient = true;
    for number in 0..3 {
        let node = Box::new(NodeSpec::new(format!("n{number}"), Resources::of(SLOT, 1)));
        world.tell(Party::Cluster, Batch::Cluster(vec![ClusterMessage::AddNode { ticket: Ticket(0), node }]));
    }
    let job = Arc::new(JobSpec::bag("j", 9, Resources::of(SLOT, 1)));
    let submit = JobMessage::Submit { ticket: Ticket(1), job, adopted: Vec::new() };
    world.tell(Party::Jobs, Batch::Jobs(vec![submit]));
    let mut found = Vec::new();
    for _ in 0..100 {
        world.settle(&mut Second).expect("nothing is checked but what really runs");
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
        let lost = |finding: &Finding| matches!(finding, Finding::LostWakeUp { .. });
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
