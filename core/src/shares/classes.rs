//! Classes with whole percents of the workers, and how many tasks of each class a batch of idle
//! workers starts: first what a class is entitled to, then loans of what nobody is entitled to.
//!
//! Everything is in exact integers. Classes are known by their place in the settings
//! ([`ClassIndex`]); results do not depend on that place, because the work is done in an order of
//! its own: percent descending, then name.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use thiserror::Error;

/// More classes than whole percents would only be classes of 0%.
pub const CLASSES_MAX: usize = 100;

/// The largest percent a class may state before the set is normalised.
pub const PERCENT_MAX: i64 = 1_000_000;

/// Counts above this are read as this: no product of a count, a percent and a number of classes can
/// then overflow 64 bits.
pub const COUNT_MAX: u64 = 1 << 48;

/// Up to this many classes the counts are taken without heap memory.
const INLINE: usize = 16;

type Column = SmallVec<[u64; INLINE]>;

/// A class, by its place in the settings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ClassIndex(pub u16);

impl ClassIndex {
    pub fn at(self) -> usize {
        usize::from(self.0)
    }
}

/// Why a set of percents is refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PercentsError {
    #[error("there are no classes")]
    Empty,
    #[error("there are {count} classes, at most {CLASSES_MAX} are allowed")]
    TooMany { count: usize },
    #[error("class `{class}` is named twice")]
    Twice { class: String },
    #[error("class `{class}` has {percent} percent; a percent is not negative")]
    Negative { class: String, percent: i64 },
    #[error("class `{class}` has {percent} percent, at most {PERCENT_MAX} are allowed")]
    TooLarge { class: String, percent: i64 },
    #[error("every class has 0 percent; at least one class needs a share")]
    AllZero,
}

/// One class and its share of the workers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClassPercent {
    pub name: String,
    /// Whole percents; those of a set add up to 100.
    pub percent: u64,
}

/// What a class has and wants, in workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClassLoad {
    pub running: u64,
    pub waiting: u64,
}

/// What a class may start of the idle workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Given {
    /// Towards its target.
    pub entitled: u64,
    /// Of what nobody is entitled to.
    pub lent: u64,
}

impl Given {
    pub fn all(self) -> u64 {
        self.entitled + self.lent
    }

    /// So many were started: first those that it is entitled to.
    pub fn spend(&mut self, tasks: u64) {
        let lent = tasks.saturating_sub(self.entitled);
        self.entitled = self.entitled.saturating_sub(tasks);
        self.lent = self.lent.saturating_sub(lent);
    }
}

/// A checked set of classes whose percents add up to 100.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<ClassPercent>", into = "Vec<ClassPercent>")]
pub struct Percents {
    /// In the order of the settings.
    classes: Vec<ClassPercent>,
    /// Percent descending, then name.
    order: Vec<ClassIndex>,
}

impl Percents {
    /// Checks the percents and, where they do not add up to 100, normalises them: each becomes
    /// `floor(percent * 100 / sum)` and the first in order takes what is missing. A class far below
    /// one percent of the sum becomes a class of 0%.
    pub fn new<N: AsRef<str>>(stated: &[(N, i64)]) -> Result<Percents, PercentsError> {
        let mut classes = checked(stated)?;
        let sum: u64 = classes.iter().map(|class| class.percent).sum();
        if sum == 0 {
            return Err(PercentsError::AllZero);
        }
        let first = order_of(&classes)[0].at();
        if sum != 100 {
            classes.iter_mut().for_each(|class| class.percent = class.percent * 100 / sum);
            let missing = 100 - classes.iter().map(|class| class.percent).sum::<u64>();
            classes[first].percent += missing;
        }
        // Taken again: two classes may have become equal, and reading the set back must give the
        // same order.
        let order = order_of(&classes);
        Ok(Percents { classes, order })
    }

    /// The classes as normalised, in the order of the settings.
    pub fn classes(&self) -> &[ClassPercent] {
        &self.classes
    }

    /// The classes by percent descending, then name.
    pub fn order(&self) -> &[ClassIndex] {
        &self.order
    }

    pub fn percent(&self, class: ClassIndex) -> u64 {
        self.classes[class.at()].percent
    }

    pub fn index_of(&self, name: &str) -> Option<ClassIndex> {
        let at = self.classes.iter().position(|class| class.name == name)?;
        Some(ClassIndex(at as u16))
    }

    /// The class with the lowest percent: where unmatched requestors go unless a class is named.
    pub fn lowest(&self) -> ClassIndex {
        self.order[self.order.len() - 1]
    }

    /// How many of `total` workers each class is entitled to: `floor(total * percent / 100)`, the
    /// first in order gets the rest.
    pub fn targets(&self, total: u64, targets: &mut [u64]) {
        assert_eq!(targets.len(), self.classes.len(), "one target per class");
        let total = total.min(COUNT_MAX);
        let mut rest = total;
        for class in &self.order[1..] {
            let target = total * self.percent(*class) / 100;
            targets[class.at()] = target;
            rest -= target;
        }
        targets[self.order[0].at()] = rest;
    }

    /// How many tasks of each class the `idle` of `total` workers start. Returns how many workers
    /// stay idle, because no class above 0% has anything more waiting: they are for the classes of
    /// 0%, whose counts stay 0 here.
    ///
    /// Starts exactly `min(idle, waiting in classes above 0%)`. What runs in a class of 0% is
    /// nobody's loan.
    pub fn counts(&self, total: u64, idle: u64, loads: &[ClassLoad], given: &mut [Given]) -> u64 {
        assert_eq!(loads.len(), self.classes.len(), "one load per class");
        assert_eq!(given.len(), self.classes.len(), "one count per class");
        given.fill(Given::default());
        let mut division = Division::new(self, total.min(COUNT_MAX), idle.min(COUNT_MAX), loads);
        division.entitle();
        for (row, class) in division.rows.iter().zip(&self.order) {
            given[class.at()].entitled = row.given;
        }
        division.lend();
        for (row, class) in division.rows.iter().zip(&self.order) {
            let given = &mut given[class.at()];
            given.lent = row.given - given.entitled;
        }
        idle - idle.min(COUNT_MAX) + division.idle
    }
}

impl TryFrom<Vec<ClassPercent>> for Percents {
    type Error = PercentsError;

    fn try_from(classes: Vec<ClassPercent>) -> Result<Percents, PercentsError> {
        let stated: Vec<(String, i64)> = classes
            .into_iter()
            .map(|class| (class.name, i64::try_from(class.percent).unwrap_or(i64::MAX)))
            .collect();
        Percents::new(&stated)
    }
}

impl From<Percents> for Vec<ClassPercent> {
    fn from(percents: Percents) -> Vec<ClassPercent> {
        percents.classes
    }
}

fn checked<N: AsRef<str>>(stated: &[(N, i64)]) -> Result<Vec<ClassPercent>, PercentsError> {
    if stated.is_empty() {
        return Err(PercentsError::Empty);
    }
    if stated.len() > CLASSES_MAX {
        return Err(PercentsError::TooMany { count: stated.len() });
    }
    let mut classes: Vec<ClassPercent> = Vec::with_capacity(stated.len());
    for (name, percent) in stated {
        let (class, percent) = (name.as_ref().to_owned(), *percent);
        if classes.iter().any(|other| other.name == class) {
            return Err(PercentsError::Twice { class });
        }
        if percent > PERCENT_MAX {
            return Err(PercentsError::TooLarge { class, percent });
        }
        match u64::try_from(percent) {
            Ok(percent) => classes.push(ClassPercent { name: class, percent }),
            Err(_) => return Err(PercentsError::Negative { class, percent }),
        }
    }
    Ok(classes)
}

fn order_of(classes: &[ClassPercent]) -> Vec<ClassIndex> {
    let mut order: Vec<ClassIndex> = (0..classes.len()).map(|at| ClassIndex(at as u16)).collect();
    order.sort_by(|one, other| {
        let (one, other) = (&classes[one.at()], &classes[other.at()]);
        other.percent.cmp(&one.percent).then_with(|| one.name.cmp(&other.name))
    });
    order
}

/// A class while workers are being divided.
#[derive(Clone, Copy, Default)]
struct Row {
    percent: u64,
    target: u64,
    running: u64,
    /// Of what is above 0%: tasks that no worker has been given yet.
    waiting: u64,
    given: u64,
}

impl Row {
    /// What the class already has above its target.
    fn borrowed(&self) -> u64 {
        self.running.saturating_sub(self.target)
    }
}

/// The division of one batch of idle workers, classes in order.
struct Division {
    idle: u64,
    rows: SmallVec<[Row; INLINE]>,
    /// Per class, what the share of a round is computed from, then that share in whole percents.
    part: Column,
}

impl Division {
    fn new(percents: &Percents, total: u64, idle: u64, loads: &[ClassLoad]) -> Division {
        let mut rest = total;
        let mut rows: SmallVec<[Row; INLINE]> = SmallVec::new();
        for class in &percents.order {
            let (percent, load) = (percents.percent(*class), &loads[class.at()]);
            let target = total * percent / 100;
            rest -= target;
            // A class of 0% takes no part: it neither waits nor borrows here.
            let counted = |count: u64| if percent == 0 { 0 } else { count.min(COUNT_MAX) };
            let (running, waiting) = (counted(load.running), counted(load.waiting));
            rows.push(Row { percent, target, running, waiting, given: 0 });
        }
        rows[0].target += rest;
        let part = Column::from_elem(0, rows.len());
        Division { idle, rows, part }
    }

    /// Gives classes what their targets still leave them. A round with enough workers for all fills
    /// at least the first class that has anything unused, so as many rounds as classes are enough.
    fn entitle(&mut self) {
        for _ in 0..self.rows.len() {
            let mut sum = 0;
            for (row, unused) in self.rows.iter().zip(&mut self.part) {
                let left = row.target.saturating_sub(row.running + row.given);
                *unused = if row.waiting > 0 { left } else { 0 };
                sum += *unused;
            }
            if sum == 0 || self.idle == 0 {
                return;
            }
            let Some(first) = self.part.iter().position(|unused| *unused > 0) else { return };
            self.part.iter_mut().for_each(|part| *part = *part * 100 / sum);
            self.part[first] += 100 - self.part.iter().sum::<u64>();
            self.visit(self.idle.min(sum));
        }
    }

    /// Lends what is left until the workers or the waiting tasks are used up.
    ///
    /// Every round gives at least one worker. There are few rounds: in each either a class has
    /// nothing waiting any more, or the shares, of which rounding takes less than one point per
    /// class, are handed out whole and the idle workers shrink by that fraction, or nothing is due
    /// and [`Division::give_one`] gives one. The last happens less often than there are classes:
    /// with `w` waiting classes the parts of the pot add up to more than `pot - w`, and the pot is
    /// at least the idle workers plus all they have borrowed, so something is due whenever
    /// `idle >= w`.
    fn lend(&mut self) {
        let borrowed: u64 = self.rows.iter().map(Row::borrowed).sum();
        while self.idle > 0 {
            let percents: u64 = self.rows.iter().filter(|row| row.waiting > 0).map(|row| row.percent).sum();
            if percents == 0 {
                return;
            }
            let pot = self.idle + borrowed;
            let mut sum = 0;
            for (row, due) in self.rows.iter().zip(&mut self.part) {
                let fair = if row.waiting > 0 { row.percent * pot / percents } else { 0 };
                *due = fair.saturating_sub(row.borrowed());
                sum += *due;
            }
            if sum == 0 {
                self.give_one();
                continue;
            }
            // At most 100 classes are above 0%, so the largest share is at least one point.
            self.part.iter_mut().for_each(|part| *part = *part * 100 / sum);
            self.visit(self.idle);
        }
    }

    /// Hands out at most `workers` in order, to each class its share in `part`, rounded up.
    fn visit(&mut self, workers: u64) {
        let mut left = workers;
        for (row, share) in self.rows.iter_mut().zip(&self.part) {
            let count = (workers * share).div_ceil(100).min(row.waiting).min(left);
            row.given += count;
            row.waiting -= count;
            left -= count;
        }
        self.idle -= workers - left;
    }

    /// One worker to the waiting class that has least for its percent, ties by order.
    fn give_one(&mut self) {
        let waiting = self.rows.iter_mut().filter(|row| row.waiting > 0);
        let least = waiting.min_by(|one, other| {
            let (of_one, of_other) = (one.running + one.given, other.running + other.given);
            (of_one * other.percent).cmp(&(of_other * one.percent))
        });
        if let Some(row) = least {
            row.given += 1;
            row.waiting -= 1;
            self.idle -= 1;
        }
    }
}
