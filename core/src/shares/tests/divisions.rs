//! Known divisions of idle workers.

use super::{drawn_divisions, known_divisions};
use crate::shares::classes::{COUNT_MAX, ClassLoad, Given, Percents};

struct Case<'a> {
    name: &'a str,
    total: u64,
    idle: u64,
    /// Percent, running, waiting and, where prescribed, given.
    classes: Vec<Vec<u64>>,
}

fn cases(table: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for line in table.lines().filter(|line| !line.is_empty()) {
        let figures = match line.split_once(": ") {
            Some((name, figures)) => {
                cases.push(Case { name, total: 0, idle: 0, classes: Vec::new() });
                let (total, figures) = figures.split_once(' ').expect("a total");
                let (idle, figures) = figures.split_once(' ').expect("the idle workers");
                let case = cases.last_mut().expect("just pushed");
                case.total = total.parse().expect("a number");
                case.idle = idle.parse().expect("a number");
                figures
            }
            None => line,
        };
        let case = cases.last_mut().expect("a case begins with its name");
        for class in figures.split_whitespace() {
            case.classes.push(class.split('/').map(|figure| figure.parse().expect("a number")).collect());
        }
    }
    cases
}

fn percents(classes: &[Vec<u64>]) -> Percents {
    let stated = classes.iter().enumerate().map(|(at, class)| (format!("c{at:02}"), class[0] as i64));
    Percents::new(&stated.collect::<Vec<_>>()).expect("valid")
}

/// What each class is given, and how many workers stay idle.
fn divide(case: &Case<'_>) -> (Vec<u64>, u64) {
    let loads: Vec<ClassLoad> =
        case.classes.iter().map(|class| ClassLoad { running: class[1], waiting: class[2] }).collect();
    let mut given = vec![Given { entitled: u64::MAX, lent: u64::MAX }; loads.len()];
    let left = percents(&case.classes).counts(case.total, case.idle, &loads, &mut given);
    (given.into_iter().map(Given::all).collect(), left)
}

fn check_table(table: &str, count: usize) {
    let cases = cases(table);
    assert_eq!(cases.len(), count, "the table is read whole");
    let mut wrong = Vec::new();
    for case in &cases {
        let (given, left) = divide(case);
        let expected: Vec<u64> = case.classes.iter().map(|class| class[3]).collect();
        if given != expected {
            wrong.push(format!("{}: {given:?} instead of {expected:?}", case.name));
        }
        assert_eq!(left, case.idle - given.iter().sum::<u64>(), "{}", case.name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn worked_examples_come_out_exactly() {
    check_table(known_divisions::WORKED, 22);
}

#[test]
fn edges_come_out_exactly() {
    check_table(known_divisions::EDGES, 8);
}

#[test]
fn drawn_entitlements_come_out_exactly() {
    check_table(drawn_divisions::ENTITLEMENT, 66);
}

#[test]
fn drawn_loans_come_out_exactly() {
    check_table(drawn_divisions::LOAN, 53);
}

#[test]
fn a_class_without_unused_entitlement_takes_no_rounding_points() {
    check_table(drawn_divisions::LARGEST_HAS_NONE_UNUSED, 3);
}

#[test]
fn where_nothing_is_due_the_workers_are_used_all_the_same() {
    let cases = cases(known_divisions::NOTHING_DUE);
    assert_eq!(cases.len(), 19, "the table is read whole");
    for case in &cases {
        let (given, left) = divide(case);
        let percents = percents(&case.classes);
        let in_shares = case.classes.iter().zip(percents.classes()).filter(|(_, class)| class.percent > 0);
        let waiting: u64 = in_shares.map(|(figures, _)| figures[2]).sum();
        assert_eq!(given.iter().sum::<u64>(), case.idle.min(waiting), "{}", case.name);
        assert_eq!(left, case.idle - case.idle.min(waiting), "{}", case.name);
    }
}

#[test]
fn points_lost_to_rounding_go_to_a_class_that_is_short() {
    // The largest class is over its target: the rounding points of the entitlement are not its own.
    let classes = vec![vec![43, 60, 50], vec![20, 0, 50], vec![19, 0, 50], vec![18, 0, 50]];
    let case = Case { name: "over", total: 100, idle: 40, classes };
    assert_eq!(divide(&case), (vec![0, 15, 14, 11], 0));
    // Shares are rounded up in exact integers: 15% of 100 are 15.
    let classes = vec![vec![70, 0, 100], vec![15, 0, 100], vec![10, 0, 100], vec![5, 0, 100]];
    assert_eq!(divide(&Case { name: "exact", total: 100, idle: 100, classes }), (vec![70, 15, 10, 5], 0));
    let classes = vec![vec![58, 0, 100], vec![142, 0, 100]];
    assert_eq!(divide(&Case { name: "normalised", total: 100, idle: 100, classes }), (vec![29, 71], 0));
}

#[test]
fn one_worker_goes_to_whom_has_least_for_its_percent() {
    let classes = vec![vec![50, 49, 0], vec![30, 30, 5], vec![20, 20, 5]];
    assert_eq!(divide(&Case { name: "tie", total: 100, idle: 1, classes }).0, [0, 1, 0]);
    let classes = vec![vec![50, 49, 0], vec![30, 31, 5], vec![20, 20, 5]];
    assert_eq!(divide(&Case { name: "least", total: 101, idle: 1, classes }).0, [0, 0, 1]);
}

#[test]
fn a_class_of_0_percent_gets_nothing_here_and_what_is_left_is_told() {
    let classes = vec![vec![60, 0, 5], vec![40, 0, 5], vec![0, 20, 25]];
    assert_eq!(divide(&Case { name: "spare", total: 50, idle: 30, classes }), (vec![5, 5, 0], 20));
}

#[test]
fn the_largest_counts_neither_overflow_nor_take_long() {
    let figures = |percent: u64| vec![percent, u64::MAX, u64::MAX];
    let case = Case { name: "borrowers", total: u64::MAX, idle: u64::MAX, classes: vec![figures(1); 100] };
    let (given, left) = divide(&case);
    assert_eq!(given.iter().sum::<u64>() + left, u64::MAX);
    assert_eq!(given.iter().sum::<u64>(), COUNT_MAX);
    // Nobody waits for long: all is lent in steps that shrink by a fraction.
    let mut classes = vec![vec![1, 0, u64::MAX]; 100];
    classes[0][1] = COUNT_MAX / 2;
    let (given, _) = divide(&Case { name: "steps", total: 0, idle: COUNT_MAX, classes });
    assert_eq!(given.iter().sum::<u64>(), COUNT_MAX);
}
