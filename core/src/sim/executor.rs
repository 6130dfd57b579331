//! The executors of the world: nothing really runs, but everything takes its time and ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::{Attempt, GroupId, JobId, NodeId, Slot, TaskId};
use crate::machine::{Broken, promise};
use crate::messages::{AgentMessage, ExecutorMessage};
use crate::outcome::{Exit, FailureCause, Phase};
use crate::spec::UnitNames;
use crate::time::{Span, Time};

/// How an execution will go if nobody interferes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Course {
    /// Time until it runs; `None` if the preparations go on until it is told to end.
    pub prepare: Option<Span>,
    /// The preparations fail when their time is over.
    pub unprepared: bool,
    /// Time from then until it ends by itself; `None` if it runs until it is told to end.
    pub run: Option<Span>,
    pub exit: Exit,
    /// Time from a kill until it has ended.
    pub dying: Span,
}

impl Course {
    /// Runs at once, ends well after this time or when it is told to, and dies without delay.
    pub fn plain(run: Option<Span>) -> Course {
        let (prepare, dying) = (Some(Span::ZERO), Span::ZERO);
        Course { prepare, unprepared: false, run, exit: Exit::Completed, dying }
    }
}

/// Decides the course of each execution.
pub trait Behaviour {
    fn course(&mut self, attempt: Attempt) -> Course;
}

#[derive(Clone, Debug)]
struct Execution {
    course: Course,
    next: Step,
    due: Time,
    /// The units it was told to use.
    units: Option<Arc<UnitNames>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Prepare,
    Run,
    Exit(Exit),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Executors {
    running: BTreeMap<(NodeId, Attempt), Execution>,
    due: BTreeSet<(Time, NodeId, Attempt)>,
}

impl Executors {
    pub(super) fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(due, _, _)| *due)
    }

    /// Executions that have not ended, by node.
    pub(super) fn running(&self) -> impl Iterator<Item = (NodeId, Attempt)> + '_ {
        self.running.keys().copied()
    }

    /// Nodes on which something has not ended, each once.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let mut last = None;
        let nodes = self.running.keys().map(|(node, _)| *node);
        nodes.filter(move |node| last.replace(*node) != Some(*node))
    }

    /// What has not ended on a node, and the named units that it uses.
    pub(super) fn running_on(&self, node: NodeId) -> impl Iterator<Item = (Attempt, Option<&UnitNames>)> {
        let task = TaskId { group: GroupId::new(JobId(0), 0), role: 0, index: 0 };
        let first = Attempt { task, number: 0, slot: Slot(0) };
        let of_node = self.running.range((node, first)..).take_while(move |((on, _), _)| *on == node);
        of_node.map(|((_, attempt), one)| (*attempt, one.units.as_deref()))
    }

    pub(super) fn handle(
        &mut self,
        now: Time,
        node: NodeId,
        message: ExecutorMessage,
        behaviour: &mut dyn Behaviour,
    ) -> Result<(), Broken> {
        match message {
            ExecutorMessage::Run(attempt, units) => {
                let course = behaviour.course(attempt);
                let twice = self.running.contains_key(&(node, attempt));
                promise!(3, !twice, "{attempt} is run twice on {node}");
                let next = if course.prepare == Some(Span::ZERO) { Step::Run } else { Step::Prepare };
                self.running.insert((node, attempt), Execution { course, next, due: now, units });
                self.due.insert((now, node, attempt));
            }
            ExecutorMessage::Kill(attempt) => {
                if let Some(execution) = self.running.get(&(node, attempt)) {
                    let due = now + execution.course.dying;
                    let ends_first = matches!(execution.next, Step::Exit(_)) && execution.due <= due;
                    if !ends_first {
                        self.schedule(node, attempt, Step::Exit(Exit::Stopped), due);
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends an execution now, as if it had come to its end by itself.
    pub(super) fn finish(&mut self, now: Time, node: NodeId, attempt: Attempt, exit: Exit) {
        self.schedule(node, attempt, Step::Exit(exit), now);
    }

    fn schedule(&mut self, node: NodeId, attempt: Attempt, next: Step, due: Time) {
        let Some(execution) = self.running.get_mut(&(node, attempt)) else { return };
        self.due.remove(&(execution.due, node, attempt));
        (execution.next, execution.due) = (next, due);
        if due < Time::NEVER {
            self.due.insert((due, node, attempt));
        }
    }

    /// The next thing that happens by itself, if its time has come.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<(NodeId, AgentMessage)> {
        let (due, node, attempt) = *self.due.first()?;
        if due > now {
            return None;
        }
        let execution = self.running.get(&(node, attempt)).expect("what is due is running");
        let Course { prepare, unprepared, run, exit, .. } = execution.course;
        match execution.next {
            Step::Prepare => {
                let end = prepare.map_or(Time::NEVER, |prepare| now + prepare);
                let failed = Step::Exit(Exit::Failed(FailureCause::NotStarted));
                self.schedule(node, attempt, if unprepared { failed } else { Step::Run }, end);
                Some((node, AgentMessage::Reached(attempt, Phase::Installing)))
            }
            Step::Run => {
                let end = run.map_or(Time::NEVER, |run| now + run);
                self.schedule(node, attempt, Step::Exit(exit), end);
                Some((node, AgentMessage::Reached(attempt, Phase::Running)))
            }
            Step::Exit(exit) => {
                self.due.remove(&(due, node, attempt));
                self.running.remove(&(node, attempt));
                Some((node, AgentMessage::Exited(attempt, exit)))
            }
        }
    }

    /// Everything on a node dies without a word.
    pub(super) fn crash(&mut self, node: NodeId) {
        self.running.retain(|(on, _), _| *on != node);
        self.due.retain(|(_, on, _)| *on != node);
    }
}
