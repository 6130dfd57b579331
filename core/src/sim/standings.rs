//! Classes, queues, bands and limits of the worlds, and how their jobs stand.

use std::collections::BTreeMap;

use fastrand::Rng;

use crate::document::FaultLog;
use crate::id::JobId;
use crate::messages::Addressed;
use crate::resources::Kinds;
use crate::settings::{
    JobKey, RawClass, RawQueue, RawRate, RawRates, RawShares, ShareKey, ShareSettings, ShareUnit,
};
use crate::shares::classes::{ClassPercent, Percents};
use crate::shares::ratio::Weight;
use crate::spec::{JobSpec, Standing, StandingChange};
use crate::time::{Span, Time};

const QUEUES: [&str; 4] = ["", "q0", "q1", "q2"];
const JOB_SETS: [&str; 4] = ["", "", "s0", "s1"];
const BANDS: [&str; 3] = ["", "high", "low"];
const REQUESTORS: [&str; 4] = ["ann", "bob", "cid", ""];

/// One world of three shares nothing; the others draw every key and limit. Limits are wide enough for
/// each group alone: what a limit keeps for ever could not end.
pub(super) fn shares(rng: &mut Rng) -> ShareSettings {
    if rng.u8(0..3) == 0 {
        return ShareSettings::default();
    }
    let log = FaultLog::new();
    let raw = raw_shares(rng);
    let settings = raw.validate(&Kinds::default(), &log);
    log.into_result(Some(settings)).expect("the world draws settings that are valid")
}

fn raw_shares(rng: &mut Rng) -> RawShares {
    let keys = [ShareKey::Fifo, ShareKey::Flow, ShareKey::Dominant, ShareKey::RunTime];
    let any_key = |rng: &mut Rng| rng.choice(keys).expect("not empty");
    let classes = (rng.u8(0..3) > 0).then(|| classes(rng));
    let entitled = classes.is_some() && rng.bool();
    let bands = BTreeMap::from([("high".to_owned(), 100), ("normal".to_owned(), 10), ("low".to_owned(), 1)]);
    let rate = |rng: &mut Rng| {
        let narrow = rng.u8(0..4) == 0;
        narrow.then(|| RawRate { per_second: rng.u32(50..500).into(), burst: rng.u64(64..100) })
    };
    RawShares {
        share_key: Some(if entitled { ShareKey::Entitlement } else { any_key(rng) }),
        queue_key: Some(any_key(rng)),
        job_key: rng.choice([None, Some(JobKey::LeastRunning), Some(JobKey::RunTime)]).expect("not empty"),
        share_unit: rng.choice([ShareUnit::Slot, ShareUnit::Weighted, ShareUnit::Dominant]),
        queues: rng.bool().then(|| queues(rng)),
        half_time: Some(f64::from(rng.u32(1..20))),
        non_preemptible_factor: rng.bool().then_some(10_000.0),
        excess_budget: rng.bool().then_some(1e9),
        bands: rng.bool().then_some(bands),
        ageing: rng.choice([None, Some(0.02), Some(0.3), Some(5.0)]).expect("not empty"),
        rates: Some(RawRates { scheduling: rate(rng), queue_scheduling: rate(rng) }),
        classes,
        ..RawShares::default()
    }
    .with_strict_bands(rng)
}

/// The same shares, weighed and compared otherwise.
pub(super) fn weigh(rng: &mut Rng, shares: &ShareSettings) -> ShareSettings {
    let mut shares = shares.clone();
    let keys = [ShareKey::Fifo, ShareKey::Flow, ShareKey::Dominant, ShareKey::RunTime];
    if let Some(classes) = &mut shares.classes {
        let of_class = |class: &ClassPercent| {
            let percent = if class.percent == 0 { 0 } else { rng.i64(1..60) };
            (class.name.clone(), percent)
        };
        let percents: Vec<(String, i64)> = classes.percents.classes().iter().map(of_class).collect();
        classes.percents = Percents::new(&percents).expect("somebody has some");
        let keys = [&keys[..], &[ShareKey::Entitlement]].concat();
        shares.share_key = rng.choice(keys).expect("not empty");
    }
    for queue in &mut shares.queues {
        queue.weight = Weight::from_number(rng.u32(1..5).into()).expect("a weight");
    }
    shares.queue_key = rng.choice(keys).expect("not empty");
    shares.half_time = Span::from_whole_seconds(rng.u64(1..20));
    let unit = rng.choice([ShareUnit::Slot, ShareUnit::Weighted, ShareUnit::Dominant]);
    shares.unit = unit.expect("not empty");
    shares
}

impl RawShares {
    fn with_strict_bands(mut self, rng: &mut Rng) -> RawShares {
        if self.bands.is_some() {
            let names = ["high", "normal", "low"];
            let strict = names.into_iter().filter(|_| rng.bool()).map(str::to_owned);
            self.strict_bands = Some(strict.collect());
        }
        self
    }
}

fn classes(rng: &mut Rng) -> Vec<RawClass> {
    let class = |name: &str, pattern: &str, percent| RawClass {
        name: name.into(),
        percent,
        requestors: vec![pattern.into()],
        cap: (percent > 50).then(|| BTreeMap::from([("cpu".to_owned(), "1000".to_owned())])),
    };
    let zero = i64::from(rng.bool()) * 10;
    vec![class("a", "^a", rng.i64(1..60)), class("b", "^b", rng.i64(1..60)), class("c", "c", zero)]
}

pub(super) fn queues(rng: &mut Rng) -> Vec<RawQueue> {
    let queue = |name: &str, weight: u32, quota: bool| RawQueue {
        name: name.into(),
        weight: weight.into(),
        class: None,
        quota: quota.then(|| BTreeMap::from([("cpu".to_owned(), "0.1".to_owned())])),
    };
    let mut names = vec!["q0", "q1", "q2"];
    names.truncate(rng.usize(1..=3));
    names.into_iter().map(|name| queue(name, rng.u32(1..5), rng.bool())).collect()
}

/// Where a job queues and how urgent it is. Names may mean nothing by the time they are heard: settings
/// change on the way.
pub(super) fn stand(rng: &mut Rng, job: &mut JobSpec) {
    job.relations.job_set = rng.choice(JOB_SETS).expect("not empty").into();
    job.requestor = rng.choice(REQUESTORS).expect("not empty").into();
    let lifetime = rng.choice([None, Some(0), Some(1), Some(1_000)]).expect("not empty");
    job.standing = Standing {
        queue: rng.choice(QUEUES).expect("not empty").into(),
        band: rng.choice(BANDS).expect("not empty").into(),
        priority: rng.i32(-1..=1),
        lifetime: lifetime.map(Span::from_millis).into(),
        firm: rng.u8(0..8) == 0,
        finish_by: rng.bool().then(|| Time(rng.u64(0..30_000_000))).into(),
    };
}

/// Somebody wants a job, or all jobs of a set, to stand elsewhere.
pub(super) fn change(rng: &mut Rng) -> (Addressed, StandingChange) {
    let jobs = match rng.u8(0..4) {
        0 => Addressed::Set(rng.choice(JOB_SETS).expect("not empty").into()),
        _ => Addressed::Job(JobId(rng.u64(1..=20))),
    };
    let change = StandingChange {
        queue: rng.bool().then(|| rng.choice(QUEUES).expect("not empty").into()),
        band: rng.bool().then(|| rng.choice(BANDS).expect("not empty").into()),
        priority: rng.bool().then(|| rng.i32(-1..=1)),
    };
    (jobs, change)
}
