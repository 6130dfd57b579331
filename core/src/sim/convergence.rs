//! On a cluster that is always full, shares come to what they should have within one turnover, by every key,
//! from any start, and however what happens is cut into turns. First come, first served shares nothing, so it
//! has nothing to come to. What is listed as next is what starts next.

use std::sync::Arc;

use fastrand::Rng;

use crate::id::{Attempt, GroupId, Ticket};
use crate::messages::{ClusterMessage, HostMessage, JobEvent, JobMessage, SchedulerMessage};
use crate::resources::{KindId, Resources};
use crate::settings::{JobKey, Limits, RawClass, RawQueue, RawSettings, RawShares, Settings, ShareKey};
use crate::spec::{JobSpec, NodeSpec};
use crate::time::{Span, Time};

use super::executor::{Behaviour, Course};
use super::faults::tell_cluster;
use super::links::{Batch, Party};
use super::world::World;

const SLOT: KindId = KindId(0);
const CPU: KindId = KindId(1);
const WORKERS: u64 = 16;
/// Nothing runs longer, so after this time every worker was handed out anew.
const TURNOVER: Span = Span::from_whole_seconds(10);

/// What compares shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shared {
    Classes(ShareKey),
    Queues(ShareKey),
}

const ALL: [Shared; 7] = [
    Shared::Classes(ShareKey::Entitlement),
    Shared::Classes(ShareKey::Flow),
    Shared::Classes(ShareKey::Dominant),
    Shared::Classes(ShareKey::RunTime),
    Shared::Queues(ShareKey::Flow),
    Shared::Queues(ShareKey::Dominant),
    Shared::Queues(ShareKey::RunTime),
];

/// Executions that take any time within these bounds.
struct Lengths {
    rng: Rng,
    least: Span,
}

impl Behaviour for Lengths {
    fn course(&mut self, _: Attempt) -> Course {
        Course::plain(Some(Span(self.rng.u64(self.least.0..=TURNOVER.0))))
    }
}

struct Cluster {
    rng: Rng,
    world: World,
    lengths: Lengths,
    /// Of each job by its number.
    share_of: Vec<usize>,
    /// By share: tasks times time.
    ran: Vec<u128>,
    /// One batch at a time, in any order of those who wait.
    sliced: bool,
}

fn raw_shares(shared: Shared, weights: &[u64]) -> RawShares {
    let name = |share: usize| format!("s{share}");
    let classes = weights.iter().enumerate().map(|(share, weight)| RawClass {
        name: name(share),
        percent: *weight as i64,
        requestors: vec![format!("^s{share}$")],
        cap: None,
    });
    let queues = weights.iter().enumerate();
    let queues = queues.map(|(share, weight)| RawQueue {
        name: name(share),
        weight: *weight as f64,
        ..RawQueue::default()
    });
    match shared {
        Shared::Classes(key) => {
            RawShares { classes: Some(classes.collect()), share_key: Some(key), ..RawShares::default() }
        }
        Shared::Queues(key) => {
            RawShares { queues: Some(queues.collect()), queue_key: Some(key), ..RawShares::default() }
        }
    }
}

impl Cluster {
    fn new(mut rng: Rng, shares: RawShares, count: usize, sliced: bool) -> Cluster {
        let raw = RawSettings { window: Some(0.0), shares, ..RawSettings::default() };
        let settings = raw.validate().expect("good settings");
        let placements_per_turn = rng.choice([1, 3, 1_000]).expect("not empty");
        let limits = Limits { placements_per_turn, ..settings.limits };
        let mut world = World::new(Arc::new(Settings { limits, ..settings }));
        // Others check the promises after every turn.
        world.lenient = true;
        let mut left = WORKERS as i64;
        while left > 0 {
            let slots = rng.i64(1..=left.min(4));
            let node = NodeSpec::new(format!("n{left}"), need(slots));
            tell_cluster(&mut world, ClusterMessage::AddNode { ticket: Ticket(0), node: Box::new(node) });
            left -= slots;
        }
        let lengths = Lengths { rng: rng.fork(), least: Span(1) };
        Cluster { rng, world, lengths, share_of: Vec::new(), ran: vec![0; count], sliced }
    }

    fn submit(&mut self, share: usize, tasks: u64) {
        let mut job = JobSpec::bag(format!("j{}", self.share_of.len()), tasks as u32, need(1));
        job.requestor = format!("s{share}").into();
        // Where there are no queues of these names, that of the class is meant.
        job.standing.queue = format!("s{share}").into();
        job.standing.priority = self.rng.i32(-1..=1);
        self.share_of.push(share);
        let submit = JobMessage::Submit { ticket: Ticket(0), job: Arc::new(job), adopted: Vec::new() };
        self.world.tell(Party::Jobs, Batch::Jobs(vec![submit]));
    }

    /// Everything that happens at this moment happens.
    fn settle(&mut self) {
        if !self.sliced {
            return self.world.settle(&mut self.lengths).expect("the promises hold");
        }
        loop {
            self.world.run_executors();
            let (links, due) = (self.world.open_links(), self.world.due());
            if links.is_empty() && due.is_empty() {
                return;
            }
            let choice = self.rng.usize(0..links.len() + due.len());
            let delivered = match links.get(choice) {
                Some(link) => self.world.deliver(link.to, &[*link], &mut self.lengths),
                None => self.world.deliver(due[choice - links.len()], &[], &mut self.lengths),
            };
            delivered.expect("the promises hold");
        }
    }

    /// How many tasks run, by share.
    fn held(&self) -> Vec<u64> {
        let mut held = vec![0; self.ran.len()];
        for live in self.world.cluster.live() {
            held[self.share_of[live.attempt.task.job().0 as usize - 1]] += 1;
        }
        held
    }

    /// Lets time pass, and sees to it that no worker is idle.
    fn pass(&mut self, until: Time) {
        loop {
            self.settle();
            let held = self.held();
            assert_eq!(held.iter().sum::<u64>(), WORKERS, "a worker is idle at {}", self.world.now);
            let next = self.world.next_event().unwrap_or(Time::NEVER).min(until);
            let elapsed = next.since(self.world.now);
            for (ran, held) in self.ran.iter_mut().zip(held) {
                *ran += u128::from(held) * u128::from(elapsed.0);
            }
            self.world.now = next;
            if next == until {
                return self.settle();
            }
        }
    }

    /// One share, or any of them, has all workers; then every share wants more than there are.
    fn fill_and_saturate(&mut self) {
        let count = self.ran.len();
        let first = self.rng.choice([None, Some(0), Some(count - 1)]).expect("not empty");
        for _ in 0..WORKERS {
            let share = first.unwrap_or_else(|| self.rng.usize(0..count));
            self.submit(share, 1);
        }
        self.settle();
        assert_eq!(self.held().iter().sum::<u64>(), WORKERS, "all of them run");
        for share in 0..count {
            self.submit(share, 10 * WORKERS);
        }
        self.lengths.least = Span(TURNOVER.0 / 2);
    }
}

fn slots(count: i64) -> Resources {
    Resources::of(SLOT, count * 1_000)
}

/// What a task asks for, as often as stated: workers have as much of both.
fn need(count: i64) -> Resources {
    let mut need = slots(count);
    need.set(CPU, count * 1_000);
    need
}

fn weights(rng: &mut Rng) -> Vec<u64> {
    (0..rng.usize(2..=4)).map(|_| rng.u64(1..=5)).collect()
}

/// The weights in force: of classes their percents, which add up to 100.
fn weights_in_force(world: &World, stated: Vec<u64>) -> Vec<u64> {
    match &world.scheduler.settings().shares.classes {
        Some(classes) => classes.percents.classes().iter().map(|class| class.percent).collect(),
        None => stated,
    }
}

/// Goal: after one turnover every share holds what it should, whoever had what before. Method: many
/// clusters from random starts, each once in whole turns and once in slices. By entitlement that is the
/// target, exactly; by flow and dominant share nobody stands higher than somebody else would with two tasks
/// more (three by flow, which remembers what has just ended); by run time, which makes up for what was, the
/// part of everybody is off by a quarter at the most, and soon what has run is as the weights are.
#[test]
fn shares_converge_within_one_turnover_from_any_start_by_every_key_in_any_slices() {
    for shared in ALL {
        for seed in 0..12 {
            let mut rng = Rng::with_seed(seed);
            let stated = weights(&mut rng);
            let mut shares = raw_shares(shared, &stated);
            shares.half_time = Some(TURNOVER.as_seconds() / 1_000.0);
            let mut cluster = Cluster::new(rng, shares, stated.len(), seed % 2 == 1);
            let weights = weights_in_force(&cluster.world, stated);
            cluster.fill_and_saturate();
            let start = cluster.world.now;
            cluster.pass(start + TURNOVER);
            let case = format!("{shared:?}, seed {seed}, {weights:?}");
            check_held(shared, &cluster.held(), &weights, &case);
            if matches!(shared, Shared::Classes(ShareKey::RunTime) | Shared::Queues(ShareKey::RunTime)) {
                cluster.pass(start + Span(6 * TURNOVER.0));
                check_part(&cluster.ran, &weights, 0.06, &case);
                let held: Vec<u128> = cluster.held().into_iter().map(u128::from).collect();
                check_part(&held, &weights, 0.13, &case);
            }
        }
    }
}

fn check_held(shared: Shared, held: &[u64], weights: &[u64], case: &str) {
    let (Shared::Classes(key) | Shared::Queues(key)) = shared;
    match key {
        ShareKey::Entitlement => {
            let mut targets: Vec<u64> = weights.iter().map(|percent| WORKERS * percent / 100).collect();
            let first = (0..weights.len()).min_by_key(|share| (std::cmp::Reverse(weights[*share]), *share));
            targets[first.expect("not empty")] += WORKERS - targets.iter().sum::<u64>();
            assert_eq!(held, targets, "{case}");
        }
        ShareKey::RunTime => {
            let held: Vec<u128> = held.iter().copied().map(u128::from).collect();
            check_part(&held, weights, 0.25, case);
        }
        _ => {
            // One that somebody would be given next, one that a third was given since, and one just ended.
            let slack = if key == ShareKey::Flow { 3 } else { 2 };
            for (one, weight) in held.iter().zip(weights) {
                for (other, other_weight) in held.iter().zip(weights) {
                    let fair = one * other_weight <= (other + slack) * weight;
                    assert!(fair, "{case}: {held:?}");
                }
            }
        }
    }
}

/// Everybody has the part that the weights say, give or take so much of the whole.
fn check_part(amounts: &[u128], weights: &[u64], tolerance: f64, case: &str) {
    let (all, weight_of_all) = (amounts.iter().sum::<u128>() as f64, weights.iter().sum::<u64>() as f64);
    for (amount, weight) in amounts.iter().zip(weights) {
        let off = (*amount as f64 / all - *weight as f64 / weight_of_all).abs();
        assert!(off <= tolerance, "{case}: {amounts:?}");
    }
}

/// Goal: what is idle and of no use to those who wait gives nobody an advantage. Method: beside the workers
/// stands a large node with slots and no processor. The counts grant its slots every time a worker becomes
/// free, to all classes; everybody still comes to what its percent is of what can be used.
#[test]
fn what_nobody_can_use_is_nobodys_gain() {
    for seed in 0..12 {
        let mut rng = Rng::with_seed(seed);
        let stated = weights(&mut rng);
        let shares = raw_shares(Shared::Classes(ShareKey::Entitlement), &stated);
        let mut cluster = Cluster::new(rng, shares, stated.len(), seed % 2 == 1);
        let useless = NodeSpec::new("useless".to_owned(), slots(10 * WORKERS as i64));
        let add = ClusterMessage::AddNode { ticket: Ticket(0), node: Box::new(useless) };
        tell_cluster(&mut cluster.world, add);
        let weights = weights_in_force(&cluster.world, stated);
        cluster.fill_and_saturate();
        let start = cluster.world.now;
        cluster.pass(start + Span(2 * TURNOVER.0));
        let held: Vec<u128> = cluster.held().into_iter().map(u128::from).collect();
        check_part(&held, &weights, 0.07, &format!("seed {seed}, {weights:?}"));
    }
}

/// Goal: what is listed as next is what starts next, by every key. Method: shares with a history, random
/// jobs of one task each, and a host that takes nothing until the list was made.
#[test]
fn what_is_listed_first_starts_first() {
    for shared in
        [ALL.as_slice(), &[Shared::Classes(ShareKey::Fifo), Shared::Queues(ShareKey::Fifo)]].concat()
    {
        for seed in 0..12 {
            let mut rng = Rng::with_seed(1_000 + seed);
            let stated = weights(&mut rng);
            let mut shares = raw_shares(shared, &stated);
            shares.job_key = rng.choice([None, Some(JobKey::LeastRunning)]).expect("not empty");
            let mut cluster = Cluster::new(rng, shares, stated.len(), false);
            for _ in 0..cluster.rng.u64(0..WORKERS / 2) {
                let share = cluster.rng.usize(0..stated.len());
                cluster.submit(share, 1);
            }
            cluster.settle();
            cluster.world.now = Time::ZERO + Span(TURNOVER.0 / 2);
            cluster.settle();
            let credit = |window| Batch::Scheduler(vec![SchedulerMessage::NewCredit { window }]);
            cluster.world.tell(Party::Scheduler, credit(Some(0)));
            cluster.settle();
            for _ in 0..WORKERS {
                let share = cluster.rng.usize(0..stated.len());
                cluster.submit(share, 1);
            }
            cluster.settle();
            let free = WORKERS as usize - cluster.held().iter().sum::<u64>() as usize;
            let listed = cluster.world.scheduler.first_waiting(free);
            let listed: Vec<GroupId> = listed.into_iter().map(|entry| entry.group).collect();
            cluster.world.take_host_messages();
            cluster.world.tell(Party::Scheduler, credit(None));
            cluster.settle();
            let started =
                cluster.world.take_host_messages().into_iter().filter_map(|message| match message {
                    HostMessage::Job(JobEvent::Bound { attempt, .. }) => Some(attempt.task.group),
                    _ => None,
                });
            let started: Vec<GroupId> = started.collect();
            assert_eq!(started, listed, "{shared:?}, seed {seed}");
            assert!(free > 0, "something can start");
        }
    }
}
