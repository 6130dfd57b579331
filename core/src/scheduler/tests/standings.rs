//! Explanations by how nodes stand: as true as a look at every node, and far fewer looks.

use fastrand::Rng;

use super::*;
use crate::constraint::Constraint;
use crate::explanation::{Explanation, NodeReason, Subject};
use crate::id::Ticket;
use crate::messages::{Answer, HostMessage, Refusal};
use crate::spec::{CommonFacts, Filter, HostPort, NodeFacts, NodePath, Rules};

fn random_facts(rng: &mut Rng, id: u32) -> Arc<NodeFacts> {
    let zone = rng.choice(["a", "b"]).expect("not empty").to_owned();
    let labels = [("zone".to_owned(), zone)].into();
    let ip = Some(format!("10.0.0.{id}"));
    let path = NodePath::parse(&format!("r{}/h{id}", id % 3));
    let common = CommonFacts { labels, ..CommonFacts::default() }.into();
    Arc::new(NodeFacts { name: format!("n{id}"), common, ip, path, ..NodeFacts::default() })
}

fn random_shape(rng: &mut Rng) -> ShapeSpec {
    let constraint = |text: &str| vec![Constraint::parse(text).expect("a constraint")];
    let rules = match rng.u8(0..8) {
        0 => Rules { constraints: constraint("node.labels.zone == a"), ..Rules::default() },
        1 => Rules { constraints: constraint("node.hostname like n?"), ..Rules::default() },
        2 => Rules { constraints: constraint("node.ip == 10.0.0.3"), ..Rules::default() },
        3 | 4 => Rules { node: Some(format!("n{}", rng.u8(0..14))), ..Rules::default() },
        _ => Rules::default(),
    };
    let service = rng.bool().then(|| Box::new(("web".to_owned(), 1)));
    let max_per_node = if service.is_some() && rng.bool() { 1 } else { 0 };
    let port = if rng.u8(0..3) == 0 { HostPort::parse("80") } else { None };
    ShapeSpec {
        service,
        request: Resources::of(CPU, rng.i64(0..5)),
        rules: rules.into(),
        max_per_node,
        ports: port.into_iter().collect(),
        exclusive: rng.u8(0..6) == 0,
        ..ShapeSpec::default()
    }
}

fn explanations(scheduler: &Scheduler, jobs: u64) -> Vec<Option<Explanation>> {
    (1..=jobs).map(|job| scheduler.explain(group(job))).collect()
}

/// Goal: an explanation by standings says the same as one that looks at every node. Method: a random
/// cluster changes in random ways; after each change every job is explained both ways.
#[test]
fn explanations_by_standing_are_those_by_node() {
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let mut bench = Bench::new();
        let mut live: Vec<(Attempt, NodeId)> = Vec::new();
        for job in 1..=30 {
            let id = rng.u32(0..12);
            let capacity = Resources::of(CPU, rng.i64(0..5));
            let (open, state) = (rng.u8(0..5) > 0, PAUSED);
            let view = NodeView {
                version: job,
                facts: random_facts(&mut rng, id),
                capacity,
                reserved: Default::default(),
                open,
                state,
                breakdown: None,
            };
            let gone = rng.u8(0..10) == 0 && !live.iter().any(|(_, node)| node.0 == id);
            let news = NodeNews { node: NodeId(id), view: (!gone).then_some(view) };
            let arrival = role_of(random_shape(&mut rng), rng.u32(1..4));
            let arrival = SchedulerMessage::NewGroups(vec![independent(job, vec![arrival])]);
            bench.hear(vec![SchedulerMessage::Nodes(vec![news]), arrival]);
            live.extend(bench.attempts());
            if rng.bool() && !live.is_empty() {
                let ended = live.swap_remove(rng.usize(0..live.len()));
                let pending = bench.pending(&[ended.1.0]);
                bench.hear(vec![released(&[ended], Outcome::Completed), pending]);
                live.extend(bench.attempts());
            }
            let mut by_node = bench.scheduler.clone();
            by_node.rebuild();
            bench.scheduler.prepare_to_explain();
            let (fast, slow) = (explanations(&bench.scheduler, job), explanations(&by_node, job));
            assert_eq!(fast, slow, "seed {seed}, job {job}");
        }
    }
}

/// Goal: a question costs as many looks as there are ways to stand. Method: two thousand nodes of five
/// capacities, each at a place of its own, one of them for the tasks alone; the list of those that stand alike
/// is short and complete, and a change moves one node only.
#[test]
fn many_nodes_that_stand_alike_are_one_look() {
    let mut bench = Bench::new();
    let amounts: Vec<i64> = (0..2_000).map(|index| 1 + index % 5).collect();
    let news = amounts.iter().zip(0..).map(|(amount, id)| {
        let news = node(id, Resources::of(CPU, *amount));
        let (name, path) = (format!("n{id}"), NodePath::parse(&format!("block/rack/{id}")));
        let facts = Arc::new(NodeFacts { name, path, ..NodeFacts::default() });
        NodeNews { view: news.view.map(|view| NodeView { facts, ..view }), ..news }
    });
    bench.hear(vec![SchedulerMessage::Nodes(news.collect())]);
    bench.scheduler.prepare_to_explain();
    let any = ShapeSpec { request: Resources::of(CPU, 9), ..ShapeSpec::default() };
    let alike = |bench: &Bench, shape: &ShapeSpec| {
        bench.scheduler.nodes.alike(std::iter::once(shape), Default::default())
    };
    let five: Vec<_> = (0..5).map(|id| (NodeId(id), 400)).collect();
    assert_eq!(alike(&bench, &any), five);
    let rules = Rules { node: Some("n7".into()), ..Rules::default() };
    let pinned = ShapeSpec { rules: rules.into(), ..any.clone() };
    assert_eq!(alike(&bench, &pinned)[2], (NodeId(2), 399));
    assert_eq!(alike(&bench, &pinned)[5], (NodeId(7), 1));
    bench.hear(vec![bag(1, 1, CPU, 1)]);
    assert_eq!(alike(&bench, &any).len(), 2_000, "what is filed is old: every node is looked at");
    bench.scheduler.prepare_to_explain();
    assert_eq!(alike(&bench, &any).len(), 6);
}

/// Goal: for a named node everything that is in the way is told at once, in words, to whoever asks and to
/// tasks that are for it alone. Method: a paused node in the wrong zone with too little room.
#[test]
fn a_named_node_tells_everything_at_once() {
    let mut bench = Bench::new();
    let news = vec![closed(0, Resources::of(CPU, 2_000)), node(1, Resources::of(CPU, 9_000))];
    bench.hear(vec![SchedulerMessage::Nodes(news)]);
    let constraints = vec![Constraint::parse("node.labels.zone == a").expect("a constraint")];
    let rules = Rules { constraints, node: Some("n0".into()), ..Rules::default() };
    let shape = ShapeSpec { request: Resources::of(CPU, 4_000), rules: rules.into(), ..ShapeSpec::default() };
    let arrival = role_of(shape, 1);
    bench.hear(vec![SchedulerMessage::NewGroups(vec![independent(1, vec![arrival])])]);
    let reason = |filter, detail: &str| NodeReason { filter, detail: detail.to_owned() };
    let reasons = vec![
        reason(Filter::Ready, "is paused"),
        reason(Filter::Resources, "needs 2 more cpu, is too small even if empty"),
        reason(Filter::Constraints, "does not satisfy `node.labels.zone == a`"),
    ];
    let subject = Subject::Group(group(1));
    let explained = bench.scheduler.explain_on(subject, "n0").expect("both are known");
    assert_eq!((explained.len(), &explained[0].on_node.reasons), (1, &reasons));
    let sentence = "node n0 is paused, needs 2 more cpu, is too small even if empty, does not satisfy \
                    `node.labels.zone == a`";
    assert_eq!(explained[0].sentence(), sentence);
    let whole = bench.scheduler.explain(group(1)).expect("it waits").sentence();
    assert!(whole.contains(sentence), "{whole}");
    let elsewhere = bench.scheduler.explain_on(subject, "n1").expect("both are known");
    let filters: Vec<_> = elsewhere[0].on_node.reasons.iter().map(|reason| reason.filter.clone()).collect();
    assert_eq!(filters, [Filter::Constraints, Filter::Node]);
    let ask = SchedulerMessage::ExplainOn { ticket: Ticket(3), subject, node: "n9".into() };
    bench.hear(vec![ask]);
    let refusal = Answer::Refused(Refusal::UnknownNode("n9".into()));
    assert_eq!(bench.out.host, [HostMessage::Reply { ticket: Ticket(3), answer: refusal }]);
}

/// Goal: where nearly everything changes between two questions nothing is filed for nothing, and the answers
/// stay true. Method: every one of three thousand nodes changes; the next question looks at each, and the
/// one after it, asked in quiet, at each way to stand.
#[test]
fn a_busy_cluster_is_looked_at_node_by_node() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[4; 3_000]);
    bench.scheduler.prepare_to_explain();
    let any = ShapeSpec::default();
    let looks = |bench: &Bench| bench.scheduler.nodes.alike(std::iter::once(&any), Default::default()).len();
    assert_eq!(looks(&bench), 1);
    bench.hear(vec![bag(1, 6_000, CPU, 1)]);
    while !bench.attempts().is_empty() {
        bench.hear(Vec::new());
    }
    bench.scheduler.prepare_to_explain();
    assert_eq!(looks(&bench), 3_000);
    bench.scheduler.prepare_to_explain();
    assert_eq!(looks(&bench), 1);
}
