//! The Monitor's own actor. It keeps nothing that a snapshot would have to hold, and what it asks for is
//! in the turn log of the machine that hears it.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, Message, SpawnHandle};
use metrics::Counter;
use plimsoll_core::machine::Machine;
use plimsoll_core::messages::{Audited, MonitorMessage, Outbox};
use plimsoll_core::monitor::Monitor;

use crate::clock::Clock;
use crate::fatal::Part;
use crate::router::Router;
use crate::shell::Common;
use crate::vital::Vital;

#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct ForMonitor(pub(crate) MonitorMessage);

pub(crate) struct MonitorShell {
    machine: Monitor,
    clock: Clock,
    router: Rc<OnceCell<Router>>,
    timer: Option<SpawnHandle>,
    compared: Counter,
    _vital: Vital,
}

impl MonitorShell {
    pub(crate) fn new(machine: Monitor, common: &Common) -> MonitorShell {
        let compared = metrics::counter!("plimsoll_nodes_compared_total");
        let (clock, router) = (common.clock, Rc::clone(&common.router));
        let vital = Vital::new(Part::Monitor, &common.emergency);
        MonitorShell { machine, clock, router, timer: None, compared, _vital: vital }
    }

    fn turn(&mut self, batch: Vec<MonitorMessage>, context: &mut Context<Self>) {
        let span = tracing::debug_span!("turn", machine = "Monitor", messages = batch.len());
        let _entered = span.enter();
        let mut out = Outbox::default();
        self.machine.receive(self.clock.now(), batch, &mut out);
        if let Some(router) = self.router.get().filter(|_| !out.is_empty()) {
            router.send(out);
        }
        self.arm(context);
    }

    fn arm(&mut self, context: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            context.cancel_future(timer);
        }
        if let Some(wake_at) = self.machine.wake_at() {
            let delay = Duration::from_micros(wake_at.since(self.clock.now()).0);
            // Timers count whole milliseconds; one that fires early is set again.
            let delay = delay.max(Duration::from_millis(1));
            self.timer = Some(context.run_later(delay, |shell, context| shell.turn(Vec::new(), context)));
        }
    }
}

impl Actor for MonitorShell {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.arm(context);
    }
}

impl Handler<ForMonitor> for MonitorShell {
    type Result = ();

    fn handle(&mut self, message: ForMonitor, context: &mut Context<Self>) {
        if let MonitorMessage::Audited(Audited { compared, .. }) = &message.0 {
            self.compared.increment(*compared);
        }
        self.turn(vec![message.0], context);
    }
}

#[cfg(test)]
impl Handler<crate::vital::Sabotage> for MonitorShell {
    type Result = ();

    fn handle(&mut self, _: crate::vital::Sabotage, _: &mut Context<Self>) {
        panic!("as it was told to");
    }
}
