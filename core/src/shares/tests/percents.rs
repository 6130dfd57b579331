//! Which sets of percents are taken, and as what they read back.

use crate::shares::classes::{CLASSES_MAX, ClassIndex, PERCENT_MAX, Percents, PercentsError};

fn read_back(stated: &[(&str, i64)]) -> Vec<u64> {
    let percents = Percents::new(stated).expect("valid");
    percents.classes().iter().map(|class| class.percent).collect()
}

fn order(stated: &[(&str, i64)]) -> Vec<String> {
    let percents = Percents::new(stated).expect("valid");
    percents.order().iter().map(|class| percents.classes()[class.at()].name.clone()).collect()
}

#[test]
fn a_sum_of_100_stays_as_it_is() {
    assert_eq!(read_back(&[("a", 40), ("b", 25), ("c", 17), ("d", 18), ("e", 0)]), [40, 25, 17, 18, 0]);
}

#[test]
fn other_sums_are_normalised_and_the_largest_takes_the_rest() {
    assert_eq!(read_back(&[("a", 58), ("b", 142)]), [29, 71]);
    assert_eq!(read_back(&[("a", 29), ("b", 21)]), [58, 42]);
    assert_eq!(read_back(&[("a", 1), ("b", 1), ("c", 1)]), [34, 33, 33]);
    assert_eq!(read_back(&[("c", 1), ("b", 1), ("a", 1)]), [33, 33, 34]);
    assert_eq!(read_back(&[("a", 30), ("b", 25), ("c", 15), ("d", 0), ("e", 10)]), [39, 31, 18, 0, 12]);
    assert_eq!(read_back(&[("a", 50)]), [100]);
    assert_eq!(read_back(&[("a", 1), ("b", PERCENT_MAX)]), [0, 100]);
}

#[test]
fn what_is_read_back_is_taken_unchanged() {
    for stated in [vec![("z", 351), ("a", 350), ("m", 299)], vec![("b", 7), ("a", 7), ("c", 2)]] {
        let once = Percents::new(&stated).expect("valid");
        let text = serde_json::to_string(&once).expect("it serialises");
        assert_eq!(serde_json::from_str::<Percents>(&text).expect("it is read back"), once);
    }
}

#[test]
fn senseless_sets_are_refused() {
    let refused = |stated: &[(&str, i64)]| Percents::new(stated).expect_err("refused");
    let class = |name: &str| name.to_owned();
    assert_eq!(refused(&[]), PercentsError::Empty);
    assert_eq!(refused(&[("a", 0)]), PercentsError::AllZero);
    assert_eq!(refused(&[("a", 0), ("b", 0)]), PercentsError::AllZero);
    let negative = PercentsError::Negative { class: class("b"), percent: -20 };
    assert_eq!(refused(&[("a", 120), ("b", -20)]), negative);
    let large = PercentsError::TooLarge { class: class("a"), percent: PERCENT_MAX + 1 };
    assert_eq!(refused(&[("a", PERCENT_MAX + 1)]), large);
    assert_eq!(refused(&[("a", 1), ("a", 2)]), PercentsError::Twice { class: class("a") });
    let many: Vec<(String, i64)> = (0..=CLASSES_MAX).map(|at| (at.to_string(), 1)).collect();
    let count = CLASSES_MAX + 1;
    assert_eq!(Percents::new(&many).expect_err("refused"), PercentsError::TooMany { count });
    assert!(serde_json::from_str::<Percents>(r#"[{"name": "a", "percent": 0}]"#).is_err());
}

#[test]
fn classes_are_ordered_by_percent_then_name() {
    assert_eq!(
        order(&[("tryout", 2), ("land", 60), ("coverage", 2), ("diff", 36)]),
        ["land", "diff", "coverage", "tryout"]
    );
    let percents =
        Percents::new(&[("tryout", 2), ("land", 60), ("coverage", 2), ("diff", 36)]).expect("valid");
    assert_eq!(percents.lowest(), ClassIndex(0));
    assert_eq!(percents.index_of("coverage"), Some(ClassIndex(2)));
    assert_eq!(percents.index_of("nobody"), None);
}

#[test]
fn targets_are_rounded_down_and_the_first_class_takes_the_rest() {
    let targets = |stated: &[(&str, i64)], total: u64| {
        let mut targets = vec![0; stated.len()];
        Percents::new(stated).expect("valid").targets(total, &mut targets);
        targets
    };
    assert_eq!(targets(&[("a", 97), ("b", 2), ("c", 1)], 5), [5, 0, 0]);
    assert_eq!(targets(&[("c", 10), ("b", 25), ("a", 65)], 999), [99, 249, 651]);
    assert_eq!(targets(&[("a", 60), ("b", 40), ("c", 0)], 0), [0, 0, 0]);
}
