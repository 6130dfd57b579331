//! What a seed makes of the world: nodes, jobs, settings, and how executions go.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;

use crate::constraint::{Constraint, Key};
use crate::id::Attempt;
use crate::outcome::{Exit, FailureCause};
use crate::resources::{KindId, Kinds, Resources};
use crate::settings::{
    DeadlineSettings, FaultySettings, Limits, MonitorSettings, Retention, Settings, WindowSettings,
};
use crate::spec::{
    GroupSpec, Hops, HostPort, JobSpec, NodeChoice, NodePath, NodeSpec, OnUnsatisfiable, Platform, Retries,
    RetryOn, RoleSpec, Rules, ShapeSpec, Start, parts_of,
};
use crate::time::Span;

use super::claims;
use super::control;
use super::elastic;
use super::executor::{Behaviour, Course};
use super::{doors, filters, gate, pools, standings, units};

pub(super) const SLOT: KindId = KindId(0);
pub(super) const CPU: KindId = KindId(1);
pub(super) const MEMORY: KindId = KindId(2);
pub(super) const GPU: KindId = KindId(3);

pub(super) const CAPACITY_MAX: i64 = 8;
pub(super) const GPUS_MAX: i64 = 2_000;

pub(super) fn settings(rng: &mut Rng, version: u64) -> Settings {
    let gap = rng.choice([0, 0, 5, 50]).expect("not empty");
    let window = WindowSettings {
        gap: Span::from_millis(gap),
        cap: Span::from_millis(gap * rng.u64(1..20)),
        adaptive: rng.bool(),
    };
    let deadlines = DeadlineSettings {
        dispatch: Span::from_millis(rng.u64(500..3_000)),
        prepare: Span::from_millis(rng.u64(500..5_000)),
        run: Span::from_millis(rng.u64(1_000..20_000)),
        overhead: Span::from_millis(rng.u64(0..200)),
        stop: Span::from_millis(rng.u64(500..3_000)),
        heartbeat: heartbeat(rng),
        down: Span::from_millis(rng.u64(100..3_000)),
    };
    // A few tasks a turn in one world of three: what a turn leaves over is as good as what it does.
    let placements_per_turn = if rng.u32(0..3) == 0 { rng.u64(1..4) } else { 1_000 };
    let limits = Limits { placements_per_turn, ..Settings::default().limits };
    let (_, placement) = rng.choice(NodeChoice::NAMES).expect("not empty");
    let shares = standings::shares(rng);
    let monitor_interval = rng.choice([0, 5, 50, 500, 3_000]).expect("not empty");
    let retention = Retention {
        usage_entries: rng.choice([0, 8, 1_000, 1_000]).expect("not empty"),
        usage_entries_per_node: rng.u64(1..10),
        ..Retention::default()
    };
    Settings {
        version,
        window,
        placement,
        pool: pools::default(rng),
        on_unsatisfiable: if rng.u8(0..4) == 0 { OnUnsatisfiable::Fail } else { OnUnsatisfiable::Wait },
        deadlines,
        limits,
        retention,
        shares,
        faulty: faulty(rng),
        monitor: MonitorSettings { interval: Span::from_millis(monitor_interval) },
        elastic: elastic::settings(rng),
        rebalance: gate::rebalance(rng),
        claim_after: claims::after(rng),
        ..Settings::default()
    }
}

/// In one world of four nodes are to be heard now and then. Drawn aside, so that the rest of what a seed
/// decides does not depend on it.
fn heartbeat(rng: &Rng) -> Span {
    let mut aside = Rng::with_seed(rng.clone().u64(..));
    match aside.u8(0..4) {
        0 => Span::from_millis(aside.u64(100..5_000)),
        _ => Span::ZERO,
    }
}

/// Few failures are enough, so that nodes are flagged and break often.
fn faulty(rng: &mut Rng) -> FaultySettings {
    FaultySettings {
        failures: rng.choice([0, 1, 1, 2, 3]).expect("not empty"),
        within: Span::from_millis(rng.choice([100, 2_000, 20_000, 200_000]).expect("not empty")),
        broken_after: rng.choice([0, 1, 2, 3]).expect("not empty"),
        probe: Span::from_millis(rng.choice([0, 50, 2_000, 20_000]).expect("not empty")),
    }
}

/// What others use of a node: often little, sometimes more than it has.
pub(super) fn reserved(rng: &mut Rng) -> Resources {
    let mut reserved = Resources::of(CPU, rng.i64(0..=CAPACITY_MAX));
    reserved.set(MEMORY, rng.choice([0, 0, 1, CAPACITY_MAX]).expect("not empty"));
    reserved.set(GPU, rng.choice([0, 0, 0, 1_000]).expect("not empty"));
    reserved
}

pub(super) fn capacity(rng: &mut Rng) -> Resources {
    let mut capacity = Resources::of(CPU, rng.i64(1..=CAPACITY_MAX));
    capacity.set(MEMORY, rng.i64(0..=CAPACITY_MAX));
    capacity.set(GPU, rng.choice([0, 0, 1_000, GPUS_MAX]).expect("not empty"));
    capacity
}

pub(super) fn node(rng: &mut Rng, number: u64) -> NodeSpec {
    let mut node = NodeSpec::new(format!("n{number}"), capacity(rng));
    node.facts.labels = labels(rng);
    doors::settle(rng, &mut node);
    node.units = units::name(rng, &node.capacity);
    pools::settle(rng, &mut node);
    node.facts.path = if rng.u8(0..6) == 0 { None } else { path(rng, &format!("h{number}")) };
    node
}

/// A place in a small network, now and then less deep than others, or one that several nodes share.
pub(super) fn path(rng: &mut Rng, host: &str) -> Option<NodePath> {
    let (block, rack) = (rng.u8(0..2), rng.u8(0..2));
    let host = if rng.u8(0..8) == 0 { "shared" } else { host };
    NodePath::parse(&match rng.u8(0..6) {
        0 => format!("b{block}/{host}"),
        _ => format!("b{block}/r{rack}/{host}"),
    })
}

/// Most atomic groups do not mind; some want to be near each other, or as near as can be.
fn hops(rng: &mut Rng, start: Start) -> Option<Hops> {
    let asks = start == Start::Atomic && rng.u8(0..3) == 0;
    let choices = [Hops::Fewest, Hops::AtMost(0), Hops::AtMost(2), Hops::AtMost(3), Hops::AtMost(4)];
    if asks { rng.choice(choices) } else { None }
}

fn request(rng: &mut Rng) -> Resources {
    // Few distinct amounts, so that shapes meet; now and then nothing, or more than any node has.
    let cpu = rng.choice([0, 1, 1, 1, 2, 3, CAPACITY_MAX, CAPACITY_MAX + 1]).expect("not empty");
    let mut request = Resources::of(CPU, cpu);
    request.set(MEMORY, rng.choice([0, 0, 0, 1, 2]).expect("not empty"));
    request.set(GPU, rng.choice([0, 0, 0, 0, 0, 0, 0, 0, 1_000, 500]).expect("not empty"));
    request
}

/// Most tasks run anywhere; some want a zone, or anything but one, and a few are for one node.
fn rules(rng: &mut Rng) -> Rules {
    let constraint = |text: &str| Constraint::parse(text).expect("a constraint");
    match rng.u8(0..12) {
        0 | 1 => Rules { constraints: vec![constraint("node.labels.zone == a")], ..Rules::default() },
        2 => Rules { constraints: vec![constraint("not node.labels.zone in (a, b)")], ..Rules::default() },
        3 => Rules { node: Some(format!("n{}", rng.u8(0..4))), ..Rules::default() },
        5 => Rules { filters: filters::wanted(rng), ..Rules::default() },
        4 => Rules { platforms: Platform::parse("linux/").into_iter().collect(), ..Rules::default() },
        _ => Rules::default(),
    }
}

/// Some say how a node is chosen, and some start from a snapshot.
fn prefer_nodes(rng: &mut Rng, shape: &mut ShapeSpec) {
    let choices =
        [None, None, None, Some(NodeChoice::Pack), Some(NodeChoice::Spread), Some(NodeChoice::OwnFirst)];
    shape.placement = rng.choice(choices).expect("not empty");
    let snapshots = [None, None, None, Some("first"), Some("second")];
    shape.snapshot = rng.choice(snapshots).expect("not empty").map(Arc::from);
}

/// Some mind who else is there; services may be spread over zones.
fn mind_company(rng: &mut Rng, shape: &mut ShapeSpec) {
    if shape.service.is_some() {
        if rng.u8(0..4) == 0 {
            shape.max_per_node = rng.u32(1..3);
        }
        if rng.bool() {
            shape.spread = Key::parse("node.labels.zone").into_iter().collect();
        }
    }
    match rng.u8(0..16) {
        0 | 1 => shape.ports = HostPort::parse("80/tcp").into_iter().collect(),
        2 => shape.exclusive = true,
        _ => {}
    }
}

/// A zone, which may change while the node is there.
pub(super) fn labels(rng: &mut Rng) -> BTreeMap<String, String> {
    let zone = rng.choice(["a", "a", "b", "c"]).expect("not empty");
    BTreeMap::from([("zone".to_owned(), zone.to_owned())])
}

/// Some are tried again, after a wait or at once, and not after every end.
fn retries(rng: &mut Rng) -> Option<Box<Retries>> {
    if rng.bool() {
        return None;
    }
    let on = RetryOn {
        start_failure: rng.bool(),
        failure: rng.bool(),
        timeout: rng.bool(),
        lost: rng.u8(0..4) == 0,
        preempted: rng.u8(0..4) == 0,
        codes: vec![rng.i32(1..4)],
    };
    let backoff = Span::from_millis(rng.choice([0, 10, 300]).expect("not empty"));
    let (most, factor) = (rng.u32(1..4), rng.u32(1_000..3_000));
    Some(Box::new(Retries { most, on, backoff, factor, cap: Span::from_millis(1_000) }))
}

fn role(rng: &mut Rng, number: usize, start: Start) -> RoleSpec {
    let max = rng.u32(1..=4);
    let min = if start == Start::Atomic { max } else { 0 };
    let name = |rng: &mut Rng| rng.choice(["web", "batch"]).expect("not empty").to_owned();
    let service = rng.bool().then(|| Box::new((name(rng), rng.choice([1, 1, 2]).expect("not empty"))));
    let mut shape =
        ShapeSpec { service, request: request(rng), rules: rules(rng).into(), ..ShapeSpec::default() };
    shape.rules.parts = parts_of(&shape.request, &Kinds::default());
    mind_company(rng, &mut shape);
    prefer_nodes(rng, &mut shape);
    shape.hops = hops(rng, start).filter(|_| rng.bool());
    let shape = Arc::new(shape);
    let timeout = (rng.u8(0..3) == 0).then(|| Span::from_millis(rng.u64(1..2_500)));
    let retries = retries(rng);
    let duration = claims::duration(rng);
    RoleSpec {
        duration: duration.into(),
        shape,
        timeout: timeout.into(),
        retries,
        ..RoleSpec::new(format!("r{number}"), min, max, Resources::new())
    }
}

/// Now and then a role is there for the others, or its tasks are guests of those of the first.
fn keep_company(rng: &mut Rng, start: Start, roles: &mut [RoleSpec]) {
    let Some((host, others)) = roles.split_first_mut() else { return };
    for role in others {
        role.auxiliary = rng.u8(0..4) == 0;
        if start == Start::Atomic && rng.u8(0..3) == 0 {
            (role.min, role.max) = (host.min, host.max);
            role.shape = Arc::new(ShapeSpec { guest_of: Some(0), ..ShapeSpec::default() });
        }
    }
}

pub(super) fn job(rng: &mut Rng, number: u64) -> JobSpec {
    let groups = (0..rng.usize(1..=2)).map(|index| {
        let start = if rng.u8(0..3) == 0 { Start::Atomic } else { Start::Independent };
        let mut roles: Vec<RoleSpec> = (0..rng.usize(1..=3)).map(|index| role(rng, index, start)).collect();
        keep_company(rng, start, &mut roles);
        let on_unsatisfiable =
            rng.choice([None, None, Some(OnUnsatisfiable::Wait), Some(OnUnsatisfiable::Fail)]).flatten();
        let (name, hops, pool) = (format!("g{index}"), hops(rng, start), pools::rule(rng));
        let mut group =
            GroupSpec { name, start, hops, freeze: Default::default(), pool, on_unsatisfiable, roles };
        if start == Start::Atomic && rng.u8(0..5) < 3 {
            elastic::make(rng, &mut group);
        }
        group
    });
    let groups = groups.collect();
    let mut job =
        JobSpec { name: format!("j{number}"), pool: pools::rule(rng), groups, ..JobSpec::default() };
    standings::stand(rng, &mut job);
    control::relate(rng, number, &mut job);
    doors::confine(rng, &mut job);
    job
}

fn exit(rng: &mut Rng, failing: u8) -> Exit {
    match rng.u8(0..10) < failing {
        true if rng.bool() => Exit::Failed(FailureCause::Error),
        true => Exit::Failed(FailureCause::Code(rng.i32(1..4))),
        false => Exit::Completed,
    }
}

/// Executions of all lengths; most succeed, some fail, some have to be killed.
pub(super) struct Chance {
    rng: Rng,
    /// In ten executions so many fail.
    failing: u8,
    /// In a healed world everything ends by itself.
    pub(super) healed: bool,
}

impl Chance {
    pub(super) fn new(mut rng: Rng) -> Chance {
        let failing = rng.choice([1, 1, 4]).expect("not empty");
        Chance { rng, failing, healed: false }
    }
}

impl Behaviour for Chance {
    fn course(&mut self, _attempt: Attempt) -> Course {
        let rng = &mut self.rng;
        let mut seldom = |chances: u8| rng.u8(0..chances) == 0;
        let (endless, stuck) = (!self.healed && seldom(20), !self.healed && seldom(40));
        let unprepared = seldom(30);
        let run = Span::from_millis(rng.choice([0, 1, 20, 300, 2_000]).expect("not empty"));
        let prepare = Span::from_millis(rng.choice([0, 1, 10]).expect("not empty"));
        Course {
            prepare: (!stuck).then_some(prepare),
            unprepared,
            run: (!endless).then_some(run),
            exit: exit(rng, self.failing),
            dying: Span::from_millis(rng.choice([0, 5, 100]).expect("not empty")),
        }
    }
}
