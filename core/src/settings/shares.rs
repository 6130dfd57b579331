//! Who gets the next free capacity: classes, queues, bands and the keys by which they are compared.

use serde::{Deserialize, Serialize};

use crate::resources::KindId;
use crate::shares::bucket::Rate;
use crate::shares::classes::{ClassIndex, Percents};
use crate::shares::ratio::Weight;
use crate::shares::requestors::{ClassPatterns, RequestorMap};
use crate::time::Span;

/// One part of a resource weight: what one whole unit of a kind costs is a whole number of these.
pub const COST_SCALE: u64 = 1_000_000;

/// The name of the band of jobs that name none.
pub const BAND_DEFAULT: &str = "normal";

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ShareSettings {
    /// Without classes everything is in one.
    pub classes: Option<ClassSettings>,
    pub queues: Vec<QueueSettings>,
    /// The places of the queues in the order of their names: a job is looked up, however many there are.
    pub(super) queues_by_name: Vec<u32>,
    /// How classes are compared.
    pub share_key: ShareKey,
    /// How the queues of a class are compared.
    pub queue_key: ShareKey,
    /// How the jobs of a queue are compared.
    pub job_key: JobKey,
    /// What a class is entitled to percents of.
    pub unit: ShareUnit,
    /// What one whole unit of each kind costs, by the number of the kind, in parts of [`COST_SCALE`].
    pub resource_weights: Vec<u64>,
    /// In this time the memory of what a queue used beyond now loses half of its weight.
    pub half_time: Span,
    /// How far work without a lifetime may go beyond the fair share of its queue.
    pub non_preemptible_factor: Option<Weight>,
    /// How much a queue above its fair share may have outstanding, in cost times seconds.
    pub excess_budget: Option<u64>,
    /// In the order of their values, largest first.
    pub bands: Vec<Band>,
    /// What has waited for so long is raised by one strict band, and again after as long.
    pub ageing: Option<Span>,
    pub rates: Rates,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClassSettings {
    pub percents: Percents,
    pub requestors: RequestorMap,
    /// Where requestors go that no pattern matches.
    pub default: ClassIndex,
    /// Somebody said so; else it is the class with the lowest percent, whichever that is.
    pub default_is_stated: bool,
    /// By class: what all of its work together may hold at most, where there is a limit.
    pub caps: Vec<Option<Ceiling>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueueSettings {
    pub name: String,
    pub weight: Weight,
    /// The class it belongs to; without one each job goes by its requestor.
    pub class: Option<ClassIndex>,
    /// What all of its work together may hold at most.
    pub quota: Option<Ceiling>,
}

/// What somebody may hold at most, of each kind that is limited; zero is a limit too.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Ceiling {
    pub amounts: Vec<(KindId, i64)>,
}

/// How shares of one level are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareKey {
    /// Whoever waits longest.
    #[default]
    Fifo,
    /// By percents of all there is, with loans of what nobody is entitled to. For classes only.
    Entitlement,
    /// By what was used lately, with this job, divided by the weight.
    Flow,
    /// By the largest part of any resource in use, with this job, divided by the weight.
    Dominant,
    /// By weighted run time.
    RunTime,
}

/// How the jobs of one queue are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKey {
    /// Band, priority, when it is to be finished, arrival.
    #[default]
    Priority,
    /// Priority, the fewest running tasks, in turn; inside a job the longest task first.
    LeastRunning,
    /// Weighted run time, where the band is the weight.
    RunTime,
}

/// What a class is entitled to percents of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareUnit {
    /// Slots: a task counts as many as it requests, and at least one.
    #[default]
    Slot,
    /// The weighted sum of what is requested.
    Weighted,
    /// The largest part of any resource.
    Dominant,
}

/// In parts of a whole: what [`ShareUnit::Dominant`] counts in.
pub const DOMINANT_PARTS: u64 = 1_000_000_000;

impl ShareUnit {
    /// An amount as people count it: slots, what it costs, or the part of all there is.
    pub fn whole(self, amount: u64) -> f64 {
        let parts = match self {
            ShareUnit::Slot => 1,
            ShareUnit::Weighted => COST_SCALE,
            ShareUnit::Dominant => DOMINANT_PARTS,
        };
        amount as f64 / parts as f64
    }

    /// The same in words, to the third digit behind the point, or the first one of percents.
    pub fn describe(self, amount: u64) -> String {
        let trimmed = |text: String| match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        };
        match self {
            ShareUnit::Slot => amount.to_string(),
            ShareUnit::Weighted => trimmed(format!("{:.3}", self.whole(amount))),
            ShareUnit::Dominant => trimmed(format!("{:.1}", 100.0 * self.whole(amount))) + "%",
        }
    }
}

/// A level of priority.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Band {
    pub name: String,
    /// Its weight where bands are weights, and its height where they are strict.
    pub value: u64,
    /// Goes before any share.
    pub strict: bool,
}

/// Token buckets; what is not given is not limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Rates {
    /// Tasks placed, over all.
    pub scheduling: Option<Rate>,
    /// Tasks placed of any one queue.
    pub queue_scheduling: Option<Rate>,
}

impl ShareSettings {
    /// Where a band stands, by its name; the empty name is the default's.
    pub fn band(&self, name: &str) -> Option<usize> {
        let wanted = if name.is_empty() { BAND_DEFAULT } else { name };
        let found = self.bands.iter().position(|band| band.name == wanted);
        // Whoever names no band where there is none of the default's name stands last.
        found.or_else(|| (name.is_empty() && !self.bands.is_empty()).then(|| self.bands.len() - 1))
    }

    /// Whether a job may have another place than by these settings: another share, another order in it, or
    /// another cost. Percents, weights, limits and keys of shares place nobody.
    pub fn places_otherwise(&self, other: &ShareSettings) -> bool {
        self.classes_of_jobs() != other.classes_of_jobs()
            || !self.queues_of_jobs().eq(other.queues_of_jobs())
            || self.minds_lifetimes() != other.minds_lifetimes()
            || (self.job_key, self.ageing) != (other.job_key, other.ageing)
            || self.bands != other.bands
            || self.resource_weights != other.resource_weights
    }

    /// Whose jobs belong to which class.
    fn classes_of_jobs(&self) -> Option<(&[ClassPatterns], ClassIndex)> {
        self.classes.as_ref().map(|classes| (classes.requestors.source(), classes.default))
    }

    fn queues_of_jobs(&self) -> impl Iterator<Item = (&str, Option<ClassIndex>)> {
        self.queues.iter().map(|queue| (queue.name.as_str(), queue.class))
    }

    /// Whether limits tell work of different lifetimes apart.
    pub fn minds_lifetimes(&self) -> bool {
        self.non_preemptible_factor.is_some() || self.excess_budget.is_some()
    }

    /// The name of the class of a job: that of its queue, or else by who asks for it.
    pub fn class_of(&self, requestor: &str, queue: &str) -> Option<&str> {
        let classes = self.classes.as_ref()?;
        let of_queue = self.queue(queue).and_then(|queue| self.queues[queue].class);
        let class = of_queue.or_else(|| classes.requestors.class_of(requestor)).unwrap_or(classes.default);
        Some(&classes.percents.classes()[class.at()].name)
    }

    pub fn queue(&self, name: &str) -> Option<usize> {
        let name_of = |place: &u32| self.queues[*place as usize].name.as_str();
        let found = self.queues_by_name.binary_search_by(|place| name_of(place).cmp(name));
        found.ok().map(|index| self.queues_by_name[index] as usize)
    }

    /// Levels that go one before the other: one for each strict band, and one for all the rest.
    pub fn levels(&self) -> usize {
        self.bands.iter().filter(|band| band.strict).count() + 1
    }

    /// After how long what waits is raised, where there is a band to raise it to.
    pub fn ageing(&self) -> Option<Span> {
        self.ageing.filter(|_| self.levels() > 1)
    }

    /// The strict band of a level, if it is one of theirs.
    pub fn band_of_level(&self, level: usize) -> Option<usize> {
        let mut strict = self.bands.iter().enumerate().filter(|(_, band)| band.strict);
        strict.nth(level).map(|(band, _)| band)
    }

    /// The level of a band; 0 goes first.
    pub fn level(&self, band: Option<usize>) -> usize {
        let strict = |band: &Band| band.strict;
        match band.filter(|band| self.bands[*band].strict) {
            Some(band) => self.bands[..band].iter().filter(|band| strict(band)).count(),
            None => self.levels() - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_told_as_people_count_them() {
        for (unit, amount, expected) in [
            (ShareUnit::Slot, 100, "100"),
            (ShareUnit::Weighted, 12_000_000, "12"),
            (ShareUnit::Weighted, 12_500_400, "12.5"),
            (ShareUnit::Weighted, 0, "0"),
            (ShareUnit::Dominant, 1_000_000_000, "100%"),
            (ShareUnit::Dominant, 333_333_333, "33.3%"),
        ] {
            assert_eq!(unit.describe(amount), expected);
        }
    }
}
