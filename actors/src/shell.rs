//! The shell every deciding machine lives in: a mailbox, one timer, and nothing that decides.

use std::any::Any;
use std::cell::OnceCell;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, MessageResult, SpawnHandle, WrapFuture,
};
use metrics::{Counter, Gauge, Histogram};
use plimsoll_core::cluster_state::ClusterState;
use plimsoll_core::codec::{self, CodecError};
use plimsoll_core::job_state::JobState;
use plimsoll_core::machine::Machine;
use plimsoll_core::messages::Outbox;
use plimsoll_core::rebalancer::Rebalancer;
use plimsoll_core::scheduler::Scheduler;
use plimsoll_core::settings::Settings;
use plimsoll_core::task_runner::TaskRunner;
use plimsoll_core::time::{Span, Time};
use plimsoll_core::turn_log::{MachineName, TurnRecord};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::Clock;
use crate::fatal::{Fatal, FatalError, Part, TURN_SHOWN_MAX, panic_text};
use crate::meters::{Measured, Sampled};
use crate::recorder::Recorder;
use crate::router::{Batch, Router};
use crate::vital::{Emergency, Vital};

/// What every shell shares.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) clock: Clock,
    pub(crate) router: Rc<OnceCell<Router>>,
    pub(crate) fatal: Fatal,
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// The service carries out the assignments itself.
    pub(crate) decide_only: bool,
    pub(crate) emergency: Arc<Emergency>,
}

impl Common {
    /// The settings for the TaskRunner: a service that runs the work itself answers when it can, so
    /// only the run deadline applies to it.
    pub(crate) fn runner_settings(&self, settings: &Arc<Settings>) -> Arc<Settings> {
        if !self.decide_only {
            return Arc::clone(settings);
        }
        let mut patient = Settings::clone(settings);
        (patient.deadlines.dispatch, patient.deadlines.stop) = (FOREVER, FOREVER);
        Arc::new(patient)
    }
}

/// Longer than any runtime lives.
const FOREVER: Span = Span::from_whole_seconds(1_000_000_000_000);

/// What can be said to a machine in a shell.
pub(crate) trait Talk: Clone + Send + Serialize + DeserializeOwned + Debug + Unpin + 'static {}

impl<T: Clone + Send + Serialize + DeserializeOwned + Debug + Unpin + 'static> Talk for T {}

/// A machine that can live in a shell.
pub(crate) trait Seated:
    Machine<Message: Talk> + Measured + Serialize + DeserializeOwned + Unpin + 'static
{
    const NAME: MachineName;

    fn turn_record(now: Time, batch: Vec<Self::Message>, out: Outbox) -> TurnRecord;
}

pub(crate) struct Shell<M: Seated> {
    machine: M,
    common: Common,
    /// The one timer, and when it fires.
    timer: Option<(Time, SpawnHandle)>,
    /// Time spent in turns since others last had theirs.
    busy: Span,
    /// Batches that came in while the machine is held for a snapshot, oldest first.
    held: Option<Vec<Vec<M::Message>>>,
    turns: Counter,
    messages: Counter,
    /// How long after a deadline the turn came that saw to it, in seconds.
    lateness: Histogram,
    turn_seconds: Histogram,
    /// Batches that were sent and not heard yet.
    depth: Gauge,
    meter: M::Meter,
    /// Somebody will look at the machine for the gauges.
    to_be_sampled: bool,
    _vital: Vital,
}

impl<M: Seated> Shell<M> {
    pub(crate) fn new(machine: M, common: Common) -> Shell<M> {
        let label = M::NAME.to_string();
        let turns = metrics::counter!("plimsoll_turns_total", "machine" => label.clone());
        let messages = metrics::counter!("plimsoll_messages_total", "machine" => label.clone());
        let lateness = metrics::histogram!("plimsoll_deadline_lateness_seconds", "machine" => label.clone());
        let turn_seconds = metrics::histogram!("plimsoll_turn_seconds", "machine" => label);
        let vital = Vital::new(Part::Machine(M::NAME), &common.emergency);
        Shell {
            _vital: vital,
            machine,
            common,
            timer: None,
            busy: Span::ZERO,
            held: None,
            turns,
            messages,
            lateness,
            turn_seconds,
            depth: depth_gauge::<M>(),
            meter: M::meter(),
            to_be_sampled: false,
        }
    }

    /// One turn: hand the batch over, pass on what was said, set the timer anew.
    fn turn(&mut self, batch: Vec<M::Message>, context: &mut Context<Self>) {
        if self.common.fatal.get().is_some() {
            return;
        }
        let now = self.common.clock.now();
        self.turns.increment(1);
        self.messages.increment(batch.len() as u64);
        if let Some(due) = self.machine.next_deadline().filter(|due| *due <= now) {
            self.lateness.record(now.since(due).as_seconds());
        }
        let span = tracing::debug_span!("turn", machine = %M::NAME, messages = batch.len());
        let _entered = span.enter();
        // A copy of the batch costs little beside the turn; without it a panic could not be explained.
        let copy = batch.clone();
        let mut out = Outbox::default();
        let machine = &mut self.machine;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| machine.receive(now, batch, &mut out))) {
            return self.stop_everything(now, &copy, panic.as_ref());
        }
        if let Some(recorder) = &self.common.recorder {
            recorder.record(&M::turn_record(now, copy, out.clone()));
        }
        let took = self.common.clock.now().since(now);
        self.turn_seconds.record(took.as_seconds());
        M::count(&self.meter, &out, took);
        self.sample_later(context);
        if !out.is_empty() {
            self.common.router.get().expect("wiring is done before the first turn").send(out);
        }
        self.arm(context);
        self.give_way(now, context);
        if M::NAME == MachineName::Scheduler {
            self.wait_for_herald(context);
        }
    }

    /// Without the Scheduler nothing starts, so what others still have to say is bounded by what runs.
    fn wait_for_herald(&self, context: &mut Context<Self>) {
        const LOOK_EVERY: Duration = Duration::from_millis(1);
        let backlog = &self.common.router.get().expect("wiring is done before the first turn").backlog;
        if backlog.is_far_too_long() {
            let backlog = backlog.clone();
            let shorter = async move {
                while backlog.is_far_too_long() {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            };
            context.wait(shorter.into_actor(self));
        }
    }

    /// Looks at the machine for the gauges, once some time has passed: not at every turn, and not at all
    /// while nothing happens.
    fn sample_later(&mut self, context: &mut Context<Self>) {
        const SAMPLE_AFTER: Duration = Duration::from_secs(1);
        if !std::mem::replace(&mut self.to_be_sampled, true) {
            context.run_later(SAMPLE_AFTER, Shell::sample);
        }
    }

    fn sample(&mut self, context: &mut Context<Self>) {
        const THE_REST_AFTER: Duration = Duration::from_millis(2);
        let now = self.common.clock.now();
        self.to_be_sampled = self.machine.sample(now, &mut self.meter) == Sampled::Part;
        if self.to_be_sampled {
            context.run_later(THE_REST_AFTER, Shell::sample);
        }
    }

    /// A mailbox is served until it is empty. Whoever has been busy for a while lets others go on.
    fn give_way(&mut self, turn_began: Time, context: &mut Context<Self>) {
        const BUSY_MAX: Span = Span(500);
        self.busy = Span(self.busy.0 + self.common.clock.now().since(turn_began).0);
        if self.busy >= BUSY_MAX {
            self.busy = Span::ZERO;
            context.wait(async { tokio::task::yield_now().await }.into_actor(self));
        }
    }

    fn stop_everything(&self, at: Time, batch: &[M::Message], panic: &(dyn Any + Send)) {
        let turn = shorten(format!("{batch:?}")).into();
        let (part, message) = (Part::Machine(M::NAME), panic_text(panic).into());
        self.common.emergency.stop(FatalError { part, at, message, turn });
    }

    /// Arms the timer for the machine's next deadline. A timer that is set too early is left alone:
    /// it fires, finds nothing due and is set anew, which costs less than moving it at every turn.
    fn arm(&mut self, context: &mut Context<Self>) {
        let Some(wake_at) = self.machine.wake_at() else { return };
        if self.timer.is_some_and(|(fires, _)| fires <= wake_at) {
            return;
        }
        if let Some((_, timer)) = self.timer.take() {
            context.cancel_future(timer);
        }
        let delay = Duration::from_micros(wake_at.since(self.common.clock.now()).0);
        let fires = |shell: &mut Self, context: &mut Context<Self>| {
            shell.timer = None;
            if shell.held.is_none() {
                shell.wake(context);
            }
        };
        let timer = match delay.is_zero() {
            // Timers count whole milliseconds. What is due goes on as soon as others had their turn.
            true => {
                let others_first = async { tokio::task::yield_now().await }.into_actor(self);
                context.spawn(others_first.map(move |(), shell, context| fires(shell, context)))
            }
            false => context.run_later(delay, fires),
        };
        self.timer = Some((wake_at, timer));
    }

    fn wake(&mut self, context: &mut Context<Self>) {
        match self.machine.wake_at() {
            Some(due) if due <= self.common.clock.now() => self.turn(Vec::new(), context),
            _ => self.arm(context),
        }
    }
}

/// How many batches wait in the mailbox of a machine: whoever sends one counts it.
pub(crate) fn depth_gauge<M: Seated>() -> Gauge {
    metrics::gauge!("plimsoll_mailbox_depth", "machine" => M::NAME.to_string())
}

fn shorten(mut text: String) -> String {
    if text.len() > TURN_SHOWN_MAX {
        let end = (0..=TURN_SHOWN_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

impl<M: Seated> Actor for Shell<M> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.arm(context);
    }
}

impl<M: Seated> Handler<Batch<M::Message>> for Shell<M> {
    type Result = ();

    fn handle(&mut self, batch: Batch<M::Message>, context: &mut Context<Self>) {
        self.depth.decrement(1.0);
        match &mut self.held {
            Some(held) => held.push(batch.0),
            None => self.turn(batch.0, context),
        }
    }
}

/// Answered when everything that was sent before has been heard.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct CatchUp;

impl<M: Seated> Handler<CatchUp> for Shell<M> {
    type Result = ();

    fn handle(&mut self, _: CatchUp, _: &mut Context<Self>) {}
}

/// From now on batches are kept aside until [`Resume`].
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Hold;

/// The machine and the batches kept aside, as bytes.
#[derive(Message)]
#[rtype(result = "Result<Vec<u8>, CodecError>")]
pub(crate) struct Photograph;

#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Resume;

impl<M: Seated> Handler<Hold> for Shell<M> {
    type Result = ();

    fn handle(&mut self, _: Hold, _: &mut Context<Self>) {
        self.held.get_or_insert_default();
    }
}

impl<M: Seated> Handler<Photograph> for Shell<M> {
    type Result = MessageResult<Photograph>;

    fn handle(&mut self, _: Photograph, _: &mut Context<Self>) -> MessageResult<Photograph> {
        MessageResult(codec::encode(&(&self.machine, self.held.as_deref().unwrap_or_default())))
    }
}

impl<M: Seated> Handler<Resume> for Shell<M> {
    type Result = ();

    fn handle(&mut self, _: Resume, context: &mut Context<Self>) {
        for batch in self.held.take().into_iter().flatten() {
            self.turn(batch, context);
        }
        self.wake(context);
    }
}

#[cfg(test)]
impl<M: Seated> Handler<crate::vital::Sabotage> for Shell<M> {
    type Result = ();

    fn handle(&mut self, _: crate::vital::Sabotage, _: &mut Context<Self>) {
        panic!("as it was told to");
    }
}

macro_rules! seat {
    ($machine:ty, $record:ident, $name:expr) => {
        impl Seated for $machine {
            const NAME: MachineName = $name;

            fn turn_record(now: Time, batch: Vec<Self::Message>, out: Outbox) -> TurnRecord {
                TurnRecord::$record(now, batch, out)
            }
        }
    };
}

seat!(JobState, Jobs, MachineName::JobState);
seat!(Scheduler, Scheduler, MachineName::Scheduler);
seat!(ClusterState, Cluster, MachineName::ClusterState);
seat!(TaskRunner, Runner, MachineName::TaskRunner);
seat!(Rebalancer, Rebalancer, MachineName::Rebalancer);
