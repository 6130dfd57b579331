//! Reading documents: every problem, by path, at once.

use proptest::prelude::*;

use super::*;
use crate::resources::{KindId, Kinds, Resources};
use crate::time::{Span, Time};

fn faults(text: &str, read: impl FnOnce(&Fields<'_>)) -> Vec<String> {
    let value: Value = serde_json::from_str(text).expect("well-formed");
    let log = FaultLog::new();
    let read = Cursor::root(&value, &log).table(read);
    match log.into_result(read) {
        Ok(()) => Vec::new(),
        Err(faults) => faults.listed.iter().map(Fault::to_string).collect(),
    }
}

#[test]
fn good_values_are_read() {
    let text = r#"{"n": 2, "w": 3.0, "t": "x", "b": true, "s": 0.05, "e": "two", "l": [1, 2],
                   "r": {"cpu": 0.5, "memory": "1Ki"}, "nothing": null}"#;
    let found = faults(text, |fields| {
        let field = |name| fields.get(name).expect("it is there");
        assert_eq!(field("n").number(0.0..=2.0), Some(2.0));
        assert_eq!(field("w").whole(3..=3), Some(3));
        assert_eq!(field("t").name(), Some("x"));
        assert_eq!(field("b").flag(), Some(true));
        assert_eq!(field("s").span(Span::ZERO..=Span::from_whole_seconds(1)), Some(Span::from_millis(50)));
        assert_eq!(field("s").time(), Some(Time(50_000)));
        assert_eq!(field("e").one_of(&[("one", 1), ("two", 2)]), Some(2));
        assert_eq!(field("l").list(|item| item.whole(0..=9)), Some(vec![1, 2]));
        let mut amounts = Resources::of(KindId(1), 500);
        amounts.set(KindId(2), 1_024);
        assert_eq!(field("r").amounts(&Kinds::default()), Some(amounts));
        assert!(fields.get("nothing").is_none());
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn every_fault_is_noted_with_its_place() {
    let text = r#"{"n": -1, "w": 2.5, "t": 7, "b": "yes", "s": [], "e": "three", "empty": "",
                   "l": [1, {"x": 12}], "twice": 1, "twice": 2, "windw": 1,
                   "r": {"cpu": -1, "memory": 0.5, "gpu": "lots", "slot": null, "apu": 1}}"#;
    let found = faults(text, |fields| {
        let get = |name| fields.get(name).expect("it is there");
        get("n").number(0.0..=2.0);
        get("w").whole(1..=3);
        get("t").text();
        get("b").flag();
        get("s").time();
        get("e").one_of(&[("one", 1), ("two", 2)]);
        get("empty").name();
        get("twice").whole(0..=9);
        get("l").list(|item| item.table(|fields| fields.get("x").and_then(|x| x.whole(0..=9))));
        get("r").amounts(&Kinds::default());
        fields.required("must", "a text");
        fields.get("window");
    });
    let expected = [
        "twice: a field may be given only once, found 2",
        "n: expected a number between 0 and 2, found -1",
        "w: expected a whole number between 1 and 3, found 2.5",
        "t: expected a text, found 7",
        "b: expected true or false, found \"yes\"",
        "s: expected seconds between 0 and 1000000000000, found []",
        "e: expected one of `one` or `two`, found \"three\"",
        "empty: expected a text that is not empty, found \"\"",
        "l[0]: expected a table, found 1",
        "l[1].x: expected a whole number between 0 and 9, found 12",
        "r.cpu: expected an amount of at least 0, found -1",
        "r.memory: expected a multiple of 1, found 0.5",
        "r.gpu: expected an amount such as 2, 0.5, \"500m\" or \"4Gi\", found \"lots\"",
        "r.slot: expected an amount such as 2, 0.5, \"500m\" or \"4Gi\", found null",
        "r.apu: expected a resource kind that is declared in `resources` or offered by a node, \
         such as `cpu` or `gpu`, found 1",
        "must: missing, expected a text",
        "windw: unknown field, expected `window`",
    ];
    assert_eq!(found, expected);
}

pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Integer),
        any::<f64>().prop_map(Value::Float),
        ".{0,12}".prop_map(Value::Text),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
            prop::collection::vec((".{0,6}", inner), 0..6).prop_map(Value::Table),
        ]
    })
}

proptest! {
    #[test]
    fn no_getter_panics_on_any_value(value in any_value()) {
        let log = FaultLog::new();
        let cursor = Cursor::root(&value, &log);
        cursor.flag();
        cursor.name();
        cursor.number(-1.0..=1.0);
        cursor.whole(0..=u64::MAX);
        cursor.time();
        cursor.span(Span::ZERO..=Span::from_whole_seconds(1));
        cursor.one_of(&[("one", 1)]);
        cursor.amounts(&Kinds::default());
        cursor.list(|item| item.amount(crate::quantity::Unit::Whole));
        cursor.table(|fields| fields.required("x", "anything").is_some());
        let _ = log.into_result(Some(())).map_err(|faults| faults.to_string());
    }
}
