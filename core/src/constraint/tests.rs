//! What expressions mean, what is refused and where: by table.

use std::collections::BTreeMap;

use super::*;
use crate::codec::{decode, encode};

/// A node that has a name for everything and allocates nothing to tell it.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) id: &'static str,
    pub(super) hostname: Option<&'static str>,
    pub(super) ip: Option<&'static str>,
    pub(super) role: Option<&'static str>,
    pub(super) pool: Option<&'static str>,
    pub(super) os: Option<&'static str>,
    pub(super) arch: Option<&'static str>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) engine_labels: BTreeMap<String, String>,
}

impl Facts for Node {
    fn fact(&self, key: &Key) -> Option<&str> {
        match key {
            Key::Id => Some(self.id),
            Key::Hostname => self.hostname,
            Key::Ip => self.ip,
            Key::Role => self.role,
            Key::Pool => self.pool,
            Key::Os => self.os,
            Key::Arch => self.arch,
            Key::NodeLabel(name) => self.labels.get(name).map(String::as_str),
            Key::EngineLabel(name) => self.engine_labels.get(name).map(String::as_str),
        }
    }
}

fn node() -> Node {
    Node { id: "nodeid-1", ip: Some("186.17.9.41"), role: Some("worker"), ..Node::default() }
}

fn named(hostname: &'static str) -> Node {
    Node { hostname: Some(hostname), ..node() }
}

impl Node {
    fn label(mut self, name: &str, value: &str) -> Node {
        self.labels.insert(name.into(), value.into());
        self
    }

    fn engine_label(mut self, name: &str, value: &str) -> Node {
        self.engine_labels.insert(name.into(), value.into());
        self
    }

    fn platform(self, os: &'static str, arch: &'static str) -> Node {
        Node { os: Some(os), arch: Some(arch), ..self }
    }

    fn address(self, ip: &'static str) -> Node {
        Node { ip: Some(ip), ..self }
    }

    fn satisfies(&self, text: &str) -> bool {
        let constraint = Constraint::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        constraint.holds(self)
    }
}

fn check(table: &[(&str, Node, bool)]) {
    for (text, node, expected) in table {
        assert_eq!(node.satisfies(text), *expected, "{text} on {node:?}");
    }
}

// The next four tests hold every expression for which SwarmKit's behaviour is recorded, none left out.
// Those that fare differently here are all in the last of the four, with the reason.

#[test]
fn single_expressions_mean_what_they_mean_in_swarmkit() {
    check(&[
        ("node.hostname != node-1", named("node-1"), false),
        ("node.ip != 186.17.9.41", node(), false),
        ("node.ip == 186.17.9.42", node(), false),
        ("node.ip == 186.17.9.4/24", node(), true),
        ("node.ip != 0.0.0.0", node(), true),
        ("node.ip == 2001:db8:0::2", node().address("2001:db8::2"), true),
        ("node.ip == 2001:db8::/64", node().address("2001:db8::2"), true),
        ("node.ip == 2001:db9::/64", node().address("2001:db8::2"), false),
        ("node.ip == 0.0.0.0", node().address(""), false),
        ("node.id == nodeid-1", node(), true),
        ("node.id == NODEID-1", node(), true),
        ("node.role == worker", node(), true),
        ("node.role == manager", node(), false),
        ("node.role == worker-manager", node(), false),
        ("NODE.ROLE == Worker", node(), true),
        ("node.platform.os == linux", node(), false),
        ("node.platform.os != linux", node(), true),
        ("node.platform.os == linux", node().platform("linux", "x86_64"), true),
        ("node.labels.security == high", node().engine_label("security", "high"), false),
        ("node.labels.Security == high", node().label("security", "high"), false),
        ("engine.labels.disk != ssd", node(), true),
        ("node.labels.x == f*o", node().label("x", "foo"), false),
        ("node.labels.x == f*o", node().label("x", "F*o"), true),
        ("node.labels.x == f.-$o", node().label("x", "fa-$o"), false),
        ("node.labels.x == f.-$o", node().label("x", "f.-$o"), true),
        // There with the key `node`, which does not exist.
        ("node.labels.x==[a-b]+c*(n|b)/", node().label("x", "[a-b]+c*(n|b)/"), true),
        ("node.labels.x==_node1", node().label("x", "_node1"), true),
    ]);
}

#[test]
fn lists_of_expressions_mean_what_they_mean_in_swarmkit() {
    let name = "node.hostname == node-1";
    let system = "engine.labels.operatingsystem != Ubuntu 14.04";
    let security = "node.labels.security == high";
    let runs = |system| named("node-1").engine_label("operatingsystem", system);
    let table: [(&[&str], Node, bool); 7] = [
        (&[name, system], node(), false),
        (&[name, system], runs("Ubuntu 14.04"), false),
        (&[name, system], runs("ubuntu 14.04"), false),
        (&[name, system], runs("ubuntu 15.04"), true),
        (&[name, system, security], runs("ubuntu 15.04"), false),
        (&[name, system, security], runs("ubuntu 15.04").label("security", "low"), false),
        (&[name, system, security], runs("ubuntu 15.04").label("security", "high"), true),
    ];
    for (list, node, expected) in table {
        assert_eq!(list.iter().all(|text| node.satisfies(text)), expected, "{list:?} on {node:?}");
        let joined = list.join(" and ");
        assert_eq!(node.satisfies(&joined), expected, "{joined} on {node:?}");
    }
}

#[test]
fn what_swarmkit_refuses_is_refused() {
    for text in [
        "",
        " ",
        "nodeabc",
        "node ~ abc",
        "1node==a2",
        "no de== node1",
        "no*de==node1",
        "node== ",
        "n==v",
        "node.labels.x=~v",
        "a==b!=c",
        "a_b!=c==d",
        "node.labels.x==a,b",
        "node.labels.x==a@b",
        "node.ip == ",
    ] {
        assert!(Constraint::parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_differs_from_swarmkit_differs_as_stated() {
    // A key that does not exist, or has no label name, is refused; there it never holds.
    for text in ["_node==_node1", "node==[a-b]+c*(n|b)/", "node.labels. == v"] {
        let problem = Constraint::parse(text).map_err(|error| error.problem);
        assert!(matches!(problem, Err(ConstraintProblem::UnknownKey { .. })), "{text}: {problem:?}");
    }
    // What is no address is refused; there it never holds.
    for text in ["node.ip != 266.17.9.41", "node.ip == not_ip_addr"] {
        let error = Constraint::parse(text).map(|parsed| parsed.to_string()).unwrap_err();
        let is_about_address =
            matches!(error.problem, ConstraintProblem::Unexpected { expected: Expected::Address, .. });
        assert!(is_about_address, "{text}: {error}");
    }
    check(&[
        // Both names of an architecture are one; there this is false.
        ("node.platform.arch == amd64", node().platform("windows", "x86_64"), true),
        // There are orders and sets; there these are refused.
        ("node.labels.x>=3", node().label("x", "3"), true),
        ("node.labels.x in (a,b)", node().label("x", "B"), true),
    ]);
}

#[test]
fn missing_facts_count_as_empty() {
    let bare = Node::default();
    check(&[
        ("node.labels.x == \"\"", bare.clone(), true),
        ("node.labels.x in (a, \"\")", bare.clone(), true),
        ("node.labels.x not in (a, b)", bare.clone(), true),
        ("node.labels.x like *", bare.clone(), true),
        ("node.labels.x like ?*", bare.clone(), false),
        ("node.labels.x not like ?*", bare.clone(), true),
        ("exists node.labels.x", bare.clone(), false),
        ("not exists node.labels.x", bare.clone(), true),
        ("exists node.labels.x", bare.clone().label("x", ""), true),
        ("node.labels.x < 1 or node.labels.x >= 1", bare.clone(), false),
        ("node.ip == 0.0.0.0/0 or node.ip in (::/0)", bare.clone(), false),
        ("node.ip != 10.0.0.1 and node.ip not in (::/0, 0.0.0.0/0)", bare.clone(), true),
        ("node.ip != 0.0.0.0/0", bare.address("ten"), true),
    ]);
}

#[test]
fn every_operator_and_key_works() {
    let full = Node { pool: Some("Batch"), ..named("rack-3-a") }
        .platform("Linux", "aarch64")
        .label("memory", "12.5")
        .label("colour", "Big Blue")
        .label("example.com/zone", "eu-1");
    check(&[
        ("node.pool == batch", full.clone(), true),
        ("NODE.LABELS.memory > 12", full.clone(), true),
        ("node.labels.memory <= 12.50", full.clone(), true),
        ("node.labels.memory < 12.5", full.clone(), false),
        ("node.labels.colour > 1", full.clone(), false),
        ("node.labels.colour == big blue", full.clone(), true),
        ("node.labels.colour == big blue and node.pool == batch", full.clone(), true),
        ("(node.labels.colour == big blue)", full.clone(), true),
        ("node.labels.colour == \"big blue\"", full.clone(), true),
        ("node.labels.colour IN (red, big blue)", full.clone(), true),
        ("node.labels.colour Not In (red, big blue)", full.clone(), false),
        ("node.labels.example.com/zone == eu-1", full.clone(), true),
        ("node.hostname like RACK-?-*", full.clone(), true),
        ("node.hostname not like rack-*", full.clone(), false),
        ("node.platform.arch == ARM64", full.clone(), true),
        ("node.platform.arch in (amd64, aarch64)", full.clone(), true),
        ("node.platform.arch like arm*", full.clone(), true),
        ("node.platform.arch like aarch*", full.clone(), true),
        ("node.platform.arch != x86_64", full.clone(), true),
        ("node.ip in (10.0.0.0/8, 186.16.0.0/15)", full, true),
    ]);
}

#[test]
fn operators_bind_as_usual() {
    let (yes, no) = ("node.role == worker", "node.role == none");
    for (text, expected) in [
        (format!("{yes} or {no} and {no}"), true),
        (format!("({yes} or {no}) and {no}"), false),
        (format!("not {no} and {no}"), false),
        (format!("not ({no} and {no})"), true),
        (format!("NOT not {yes}"), true),
        (format!("{no} or not({no})AND({yes}) Or {no}"), true),
        (format!("{yes} and {yes} and {no} or {yes}"), true),
    ] {
        assert_eq!(node().satisfies(&text), expected, "{text}");
    }
}

#[test]
fn words_of_the_language_are_values_where_nothing_else_can_stand() {
    let says = |value| node().label("x", value);
    check(&[
        ("node.labels.x == or", says("or"), true),
        ("node.labels.x == and or node.role == none", says("and"), true),
        ("node.labels.x == do not", says("do not"), true),
        ("node.labels.x == android", says("android"), true),
        ("node.labels.x == a (b and c)", says("a (b and c)"), true),
        ("node.labels.x == f(a)or", says("f(a)or"), true),
        ("node.labels.x in (salt and pepper, b)", says("salt and pepper"), true),
        ("node.labels.x == \"salt and pepper\"", says("salt and pepper"), true),
        (r#"node.labels.x == "a \"b\" \\ (c""#, says(r#"a "b" \ (c"#), true),
    ]);
}

#[test]
fn errors_say_where_and_what_was_expected() {
    for (text, expected) in [
        ("", "column 1: expected a condition such as `node.role == worker`, found the end"),
        ("node.id == a and", "column 17: expected a condition such as `node.role == worker`, found the end"),
        ("exists ~", "column 8: expected a key such as `node.labels.disk`, found `~`"),
        (
            "node.id ~ a",
            "column 9: expected one of ==, !=, <, <=, >, >=, in, not in, like, not like, found `~`",
        ),
        (
            "node.id not 3",
            "column 9: expected one of ==, !=, <, <=, >, >=, in, not in, like, not like, found `not`",
        ),
        ("node.ip > 3", "column 9: expected one of ==, !=, in, not in, as for every address, found `>`"),
        (
            "node.ip not like a",
            "column 9: expected one of ==, !=, in, not in, as for every address, found `not`",
        ),
        ("node.ip in (::1, 1.2.3)", NO_ADDRESS),
        ("node.labels.a < five", "column 17: expected a decimal number, found `five`"),
        ("node.labels.a < \"\"", "column 17: expected a decimal number, found ``"),
        ("node.labels.a in b", "column 18: expected a list in parentheses such as `(a, b)`, found `b`"),
        ("node.labels.a in (\"b\" c)", "column 23: expected `,` or `)`, found `c`"),
        ("node.labels.a == b(c", "column 19: expected `)`, or quotes around the value, found `(`"),
        ("node.labels.a == \"b", "column 20: expected a closing quote, found the end"),
        ("node.labels.a == \"b\\n\"", "column 20: expected `\\\"` or `\\\\`, found `\\n`"),
        ("(node.labels.a == b", "column 20: expected `and`, `or` or `)`, found the end"),
        ("node.labels.a == b)", "column 19: expected `and`, `or` or the end, found `)`"),
        ("node.labels.a == \"b\" c", "column 22: expected `and`, `or` or the end, found `c`"),
        ("node.labels.a == b\u{1}", CONTROL),
        // Columns are letters, whatever their bytes.
        ("node.labels.a == \"é\" c", "column 22: expected `and`, `or` or the end, found `c`"),
    ] {
        let error = Constraint::parse(text).map(|parsed| parsed.to_string()).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
        assert!(error.position <= text.len(), "{text}");
    }
    let error = Constraint::parse("node.id == a or node.zone == b").unwrap_err();
    assert_eq!((error.position, error.to_string().as_str()), (16, UNKNOWN));
}

const NO_ADDRESS: &str =
    "column 18: expected an address such as 10.0.0.7 or a network such as 10.0.0.0/8, found `1.2.3`";
const CONTROL: &str = "column 19: expected a value: letters, digits and any of :-_.*?+[]\\^$|/, \
                       or any text in double quotes, found `\\u{1}`";
const UNKNOWN: &str = "column 17: there is no key `node.zone`, possible are node.id, node.hostname, node.ip, \
                       node.role, node.pool, node.platform.os, node.platform.arch, node.labels.NAME and \
                       engine.labels.NAME";

#[test]
fn limits_are_exact_and_typed() {
    let problem = |text: &str| Constraint::parse(text).map_err(|error| error.problem).err();
    let nested = |depth: usize, open: &str, close: &str| {
        format!("{}exists node.id{}", open.repeat(depth), close.repeat(depth))
    };
    let too_deep = Some(ConstraintProblem::TooDeep { limit: DEPTH_MAX });
    for (open, close) in [("(", ")"), ("not ", "")] {
        assert_eq!(problem(&nested(DEPTH_MAX, open, close)), None);
        assert_eq!(problem(&nested(DEPTH_MAX + 1, open, close)), too_deep);
    }
    assert_eq!(problem(&nested(DEPTH_MAX / 2 + 1, "not (", ")")), too_deep);

    let conditions = |count: usize| vec!["node.id<1"; count].join(" or ");
    let too_many = Some(ConstraintProblem::TooManyConditions { limit: CONDITIONS_MAX });
    assert_eq!(problem(&conditions(CONDITIONS_MAX)), None);
    assert_eq!(problem(&conditions(CONDITIONS_MAX + 1)), too_many);

    let start = "node.id == ";
    let filled = |length: usize| format!("{start}{}", "a".repeat(length - start.len()));
    let too_long = Some(ConstraintProblem::TooLong { limit: LENGTH_MAX });
    assert_eq!(problem(&filled(LENGTH_MAX)), None);
    assert_eq!(problem(&filled(LENGTH_MAX + 1)), too_long);
    // It would be printed with a blank before the operator and could not be read again.
    assert_eq!(problem(&filled(LENGTH_MAX).replace(" == ", "==a")), too_long);
}

/// The first left side must survive until the end, below all others that wait.
#[test]
fn the_deepest_expression_forgets_nothing() {
    let (yes, no) = ("exists node.id", "exists node.pool");
    let level = format!("{no} or {yes} and (");
    let inner = format!("{no} or {yes} and {no}");
    let text = format!("{}{inner}{}", level.repeat(DEPTH_MAX), ")".repeat(DEPTH_MAX));
    assert!(!node().satisfies(&text));
    assert!(node().satisfies(&text.replacen(no, yes, 1)));
}

#[test]
fn one_meaning_has_one_text() {
    for (given, printed) in [
        ("NODE.LABELS.A==big  blue", "node.labels.A == \"big  blue\""),
        ("node.labels.a NOT IN(b,c d)", "node.labels.a not in (b, \"c d\")"),
        ("((node.id==a))", "node.id == a"),
        ("not(not node.id like \"a*\")", "not not node.id like a*"),
        ("not (node.id == a or node.id == b)", "not (node.id == a or node.id == b)"),
        ("exists node.id and (exists node.ip and exists node.role)", AND_RIGHT),
        ("(exists node.id and exists node.ip) or exists node.role", AND_LEFT),
        ("node.labels.a>=+07.50", "node.labels.a >= 7.5"),
        ("node.ip == 186.17.9.4/24", "node.ip == 186.17.9.0/24"),
        ("node.labels.a == or", "node.labels.a == \"or\""),
        (r#"node.labels.a == "\\\"""#, r#"node.labels.a == "\\\"""#),
    ] {
        let parsed = Constraint::parse(given).map(|constraint| constraint.to_string());
        assert_eq!(parsed.as_deref(), Ok(printed));
    }
}

const AND_RIGHT: &str = "exists node.id and (exists node.ip and exists node.role)";
const AND_LEFT: &str = "exists node.id and exists node.ip or exists node.role";

#[test]
fn keys_come_in_the_order_of_the_text() {
    let constraint = Constraint::parse("not node.id == a or exists node.labels.B and node.id != c").unwrap();
    let keys: Vec<String> = constraint.keys().map(Key::to_string).collect();
    assert_eq!(keys, ["node.id", "node.labels.B", "node.id"]);
}

#[test]
fn stored_text_goes_through_the_parser() {
    let constraint = Constraint::parse("node.ip in (10.0.0.0/8) and not node.pool == batch").unwrap();
    let bytes = encode(&constraint).unwrap();
    assert_eq!(decode::<Constraint>(&bytes).unwrap(), constraint);
    assert_eq!(bytes, encode(&constraint.to_string()).unwrap());
    assert!(decode::<Constraint>(&encode(&"node.zone == a").unwrap()).is_err());
    let error = serde_json::from_str::<Constraint>("\"node.id\"").unwrap_err();
    assert!(error.to_string().starts_with("column 8: expected one of =="), "{error}");
}
