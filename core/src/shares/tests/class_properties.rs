//! What holds for every division of idle workers.

use proptest::prelude::*;

use crate::shares::classes::{ClassLoad, Given, Percents};

#[derive(Clone, Debug)]
struct Drawn {
    /// Name, percent as stated, load.
    classes: Vec<(String, i64, ClassLoad)>,
    total: u64,
    idle: u64,
}

impl Drawn {
    fn percents(&self) -> Percents {
        let stated: Vec<(&str, i64)> =
            self.classes.iter().map(|(name, percent, _)| (name.as_str(), *percent)).collect();
        Percents::new(&stated).expect("valid")
    }

    fn divide(&self) -> (Vec<u64>, u64) {
        let loads: Vec<ClassLoad> = self.classes.iter().map(|(_, _, load)| *load).collect();
        let mut given = vec![Given::default(); loads.len()];
        let left = self.percents().counts(self.total, self.idle, &loads, &mut given);
        (given.into_iter().map(Given::all).collect(), left)
    }
}

/// Small and large clusters, nearly full and nearly empty ones, with and without classes of 0%.
fn drawn() -> impl Strategy<Value = Drawn> {
    let size = prop_oneof![Just(3_u64), Just(10), Just(100), Just(10_000), Just(5_000_000)];
    size.prop_flat_map(|size| {
        let count = || prop_oneof![2 => Just(0), 3 => 0..=size / 4, 1 => 0..=size * 2];
        let load = (count(), count()).prop_map(|(running, waiting)| ClassLoad { running, waiting });
        let percent = prop_oneof![1 => Just(0_i64), 6 => 0_i64..60];
        let classes = prop::collection::vec((percent, load), 1..14);
        (classes, 0..=size, prop_oneof![0..=5_u64, 0..=size])
    })
    .prop_map(|(classes, total, idle)| {
        let mut classes: Vec<(String, i64, ClassLoad)> = classes
            .into_iter()
            .enumerate()
            .map(|(at, (percent, load))| (format!("c{at:02}"), percent, load))
            .collect();
        classes[0].1 += 1;
        Drawn { classes, total, idle }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn all_idle_workers_are_used_as_far_as_tasks_wait(drawn in drawn()) {
        let (given, left) = drawn.divide();
        let percents = drawn.percents();
        let mut waiting = 0;
        for ((_, _, load), (class, given)) in drawn.classes.iter().zip(percents.classes().iter().zip(&given)) {
            let may_start = if class.percent == 0 { 0 } else { load.waiting };
            prop_assert!(*given <= may_start, "no more than wait, nothing at 0%");
            waiting += may_start;
        }
        let started: u64 = given.iter().sum();
        prop_assert_eq!(started, drawn.idle.min(waiting));
        prop_assert_eq!(started + left, drawn.idle);
    }

    #[test]
    fn the_order_of_the_settings_does_not_matter(drawn in drawn(), turn in 0_usize..14) {
        let mut turned = drawn.clone();
        let by = turn % turned.classes.len();
        turned.classes.rotate_left(by);
        let (mut given, left) = drawn.divide();
        given.rotate_left(by);
        prop_assert_eq!(turned.divide(), (given, left));
        turned.classes.reverse();
        let (mut given, left) = drawn.divide();
        given.rotate_left(by);
        given.reverse();
        prop_assert_eq!(turned.divide(), (given, left));
    }

    /// While a class with waiting tasks is short of its target, nobody is lent anything: no class goes
    /// above its target, but for the points that rounding shares down to whole percents leaves to the
    /// first class in line, less than one percent of the idle workers per class, and one worker for
    /// rounding up.
    #[test]
    fn nobody_borrows_while_another_is_short(drawn in drawn()) {
        let (given, _) = drawn.divide();
        let percents = drawn.percents();
        let mut targets = vec![0; given.len()];
        percents.targets(drawn.total, &mut targets);
        let figures = || drawn.classes.iter().zip(given.iter().zip(&targets));
        let short = figures().any(|((_, _, load), (given, target))| {
            load.waiting > *given && load.running + given < *target
        });
        let above: u64 = figures()
            .map(|((_, _, load), (given, target))| given.saturating_sub(target.saturating_sub(load.running)))
            .sum();
        let classes = given.len() as u64;
        let rounding = (classes - 1) * drawn.idle / 100 + classes;
        prop_assert!(!short || above <= rounding, "{} above, {} allowed", above, rounding);
    }

    #[test]
    fn with_enough_of_everything_each_class_gets_its_target(drawn in drawn()) {
        let mut empty = drawn.clone();
        empty.idle = empty.total;
        for (_, _, load) in &mut empty.classes {
            *load = ClassLoad { running: 0, waiting: 10 * empty.total };
        }
        let (given, left) = empty.divide();
        let mut targets = vec![0; given.len()];
        empty.percents().targets(empty.total, &mut targets);
        let classes = given.len() as u64;
        prop_assert_eq!(left, 0);
        for (given, target) in given.iter().zip(&targets) {
            let distance = given.abs_diff(*target);
            prop_assert!(distance <= (classes - 1) * empty.total / 100 + classes, "{} for {}", given, target);
        }
    }
}
