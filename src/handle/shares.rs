//! The settings of classes and of the gate, typed, to be read and changed while the runtime runs. What is
//! set applies at once to everything that waits and runs, and reads back as it counts.

use std::time::Duration;

use plimsoll_core::document::{Fault, FaultKind, Faults, Value};
use plimsoll_core::settings::{RawClass, RawSettings};

use super::Handle;
use crate::error::RequestError;

impl Handle {
    /// The classes and their percents, which add up to 100; none if there are no classes.
    pub fn class_percents(&self) -> Vec<(String, u64)> {
        let settings = self.settings();
        let classes = settings.shares.classes.iter().flat_map(|classes| classes.percents.classes());
        classes.map(|class| (class.name.clone(), class.percent)).collect()
    }

    /// Gives the classes other percents, which need not add up to 100: what counts is given back. Classes
    /// that are not named are gone, and new names are new classes; the others keep their patterns and caps.
    pub fn set_class_percents(&self, percents: &[(&str, i64)]) -> Result<Vec<(String, u64)>, RequestError> {
        self.change_settings(|raw| {
            let before = raw.shares.classes.take().unwrap_or_default();
            let class = |(name, percent): &(&str, i64)| RawClass {
                percent: *percent,
                ..before
                    .iter()
                    .find(|class| class.name == *name)
                    .cloned()
                    .unwrap_or_else(|| RawClass { name: (*name).to_owned(), ..RawClass::default() })
            };
            let classes: Vec<RawClass> = percents.iter().map(class).collect();
            let is_known = |name: &String| classes.iter().any(|class| class.name == *name);
            raw.shares.default_class = raw.shares.default_class.take().filter(is_known);
            if classes.is_empty() {
                return Err(refused("classes", "", "at least one class must have a percent"));
            }
            raw.shares.classes = Some(classes);
            Ok(())
        })?;
        Ok(self.class_percents())
    }

    /// The patterns of each class, in the order in which they are tried.
    pub fn requestor_map(&self) -> Vec<(String, Vec<String>)> {
        let settings = self.settings();
        let sources = settings.shares.classes.iter().flat_map(|classes| classes.requestors.source());
        sources.map(|source| (source.class.clone(), source.patterns.clone())).collect()
    }

    /// Gives classes other patterns; a class that is not named has none from now on.
    pub fn set_requestor_map(&self, map: &[(&str, &[&str])]) -> Result<(), RequestError> {
        self.change_settings(|raw| {
            let classes = raw.shares.classes.get_or_insert_default();
            for class in classes.iter_mut() {
                class.requestors.clear();
            }
            for (name, patterns) in map {
                let class = classes.iter_mut().find(|class| class.name == *name);
                let class = class.ok_or_else(|| refused("classes", name, "must be the name of a class"))?;
                class.requestors.extend(patterns.iter().map(|pattern| (*pattern).to_owned()));
            }
            Ok(())
        })
    }

    /// Percent points between classes above and below their share beyond which running work may be
    /// stopped; 0 for never.
    pub fn rebalance_threshold(&self) -> u64 {
        self.settings().rebalance.threshold
    }

    /// Changes [`Handle::rebalance_threshold`].
    pub fn set_rebalance_threshold(&self, percent_points: u64) -> Result<(), RequestError> {
        self.change_settings(|raw| {
            raw.rebalance.threshold = Some(percent_points);
            Ok(())
        })
    }

    /// How long the threshold must be exceeded without a break.
    pub fn rebalance_duration(&self) -> Duration {
        Duration::from_micros(self.settings().rebalance.duration.0)
    }

    /// Changes [`Handle::rebalance_duration`].
    pub fn set_rebalance_duration(&self, duration: Duration) -> Result<(), RequestError> {
        self.change_settings(|raw| {
            raw.rebalance.duration = Some(duration.as_secs_f64());
            Ok(())
        })
    }

    fn change_settings(
        &self,
        edit: impl FnOnce(&mut RawSettings) -> Result<(), Faults>,
    ) -> Result<(), RequestError> {
        self.edit_settings(edit).map(drop)
    }
}

fn refused(field: &str, found: &str, expected: &str) -> Faults {
    let found = Value::Text(found.to_owned());
    Faults::from(Fault::new(field, FaultKind::Refused, Some(&found), expected.to_owned()))
}
