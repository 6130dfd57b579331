//! How the shares stand, in figures for others.

use crate::messages::ShareFigure;

use super::Scheduler;

impl Scheduler {
    /// How the classes stand against their percents of all there is, in the order of the settings; nothing
    /// where there are no classes.
    pub fn share_figures(&self) -> Vec<ShareFigure> {
        let Some(classes) = &self.settings.shares.classes else { return Vec::new() };
        let total = u128::from(self.total_units().max(1));
        let percents = classes.percents.classes().iter().enumerate();
        let figure = |(class, percent): (usize, &crate::shares::classes::ClassPercent)| {
            let held = u128::from(self.running_units(class)) * 100 / total;
            ShareFigure {
                target_percent: percent.percent as u32,
                held_percent: u32::try_from(held).unwrap_or(u32::MAX),
                has_waiting: self.shares.class_waits(class),
            }
        };
        percents.map(figure).collect()
    }
}
