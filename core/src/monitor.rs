//! The Monitor: the only machine that walks. In slices, and now and then, it has everybody's view of the
//! nodes compared with the ledger. It never decides what runs where.

use std::sync::Arc;

use crate::id::NodeId;
use crate::machine::{Broken, Machine};
use crate::messages::{Audited, ClusterMessage, MonitorMessage, Outbox};
use crate::settings::Settings;
use crate::time::Time;

/// Nodes of one slice, unless somebody wants fewer.
const SLICE: u32 = 256;

/// Nothing of it has to outlive the runtime: a walk can begin anywhere.
#[derive(Clone, Debug)]
pub struct Monitor {
    settings: Arc<Settings>,
    cursor: NodeId,
    slice: u32,
    due: Time,
}

impl Monitor {
    pub fn new(settings: Arc<Settings>) -> Monitor {
        let due = Time::ZERO + settings.monitor.interval;
        Monitor { settings, cursor: NodeId(0), slice: SLICE, due }
    }

    /// Looks at so many nodes at a time.
    pub fn in_slices_of(self, slice: u32) -> Monitor {
        Monitor { slice, ..self }
    }
}

impl Machine for Monitor {
    type Message = MonitorMessage;

    fn receive(&mut self, now: Time, batch: Vec<MonitorMessage>, out: &mut Outbox) {
        for message in batch {
            match message {
                MonitorMessage::Settings(settings) => {
                    self.due = now + settings.monitor.interval;
                    self.settings = settings;
                }
                MonitorMessage::Audited(Audited { next, .. }) => self.cursor = next.unwrap_or(NodeId(0)),
            }
        }
        if self.wake_at().is_some_and(|due| due <= now) {
            self.due = now + self.settings.monitor.interval;
            out.cluster.push(ClusterMessage::Audit { first: self.cursor, most: self.slice });
        }
    }

    fn wake_at(&self) -> Option<Time> {
        (!self.settings.monitor.interval.is_zero()).then_some(self.due)
    }

    fn check(&self) -> Result<(), Broken> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::MonitorSettings;
    use crate::time::Span;

    /// Goal: one slice per interval, each from where the last one ended, and none when it is switched off.
    #[test]
    fn slices_follow_each_other_at_the_pace_of_the_settings() {
        let settings = |seconds| {
            let monitor = MonitorSettings { interval: Span::from_whole_seconds(seconds) };
            Arc::new(Settings { monitor, ..Settings::default() })
        };
        let mut monitor = Monitor::new(settings(5));
        let mut hear = |now, batch| {
            let mut out = Outbox::default();
            monitor.receive(Time::ZERO + Span::from_whole_seconds(now), batch, &mut out);
            (out.cluster, monitor.wake_at())
        };
        assert!(hear(4, Vec::new()).0.is_empty());
        let slice = |first| [ClusterMessage::Audit { first: NodeId(first), most: SLICE }];
        assert_eq!(hear(5, Vec::new()).0, slice(0));
        let audited = |next| vec![MonitorMessage::Audited(Audited { compared: 256, next })];
        assert!(hear(6, audited(Some(NodeId(256)))).0.is_empty());
        assert_eq!(hear(10, Vec::new()).0, slice(256));
        hear(11, audited(None));
        assert_eq!(hear(15, Vec::new()).0, slice(0));
        let off = hear(20, vec![MonitorMessage::Settings(settings(0))]);
        assert_eq!(off, (Vec::new(), None));
    }
}
