//! How much of the cluster each class holds against what it should, as it moves.

use std::fmt::Write as _;
use std::time::Duration;

use plimsoll::{Handle, ShareStatus};
use serde_json::{Value, json};

pub(super) const HEADER: [&str; 6] = ["class", "percent", "target", "held", "running", "waiting"];

/// The last look at the classes, and one look a second.
#[derive(Default)]
pub(super) struct ClassTable {
    last: Vec<ShareStatus>,
    /// By second: what each class held, in the order of the classes.
    seconds: Vec<(u64, Vec<ShareStatus>)>,
    told: u64,
    lines: usize,
}

/// Names that belong to each class: a job is drawn from these. A class whose patterns say nothing plain
/// gets a name that nobody else has.
pub(super) fn requestors(handle: &Handle) -> Vec<String> {
    let plain = |pattern: &String| {
        let name: String = pattern.chars().filter(|letter| letter.is_alphanumeric()).collect();
        if name.is_empty() { None } else { Some(format!("{name}-demo")) }
    };
    let name = |(class, patterns): (String, Vec<String>)| {
        patterns.iter().find_map(plain).unwrap_or_else(|| format!("{class}-demo"))
    };
    handle.requestor_map().into_iter().map(name).collect()
}

impl ClassTable {
    pub(super) fn look(&mut self, handle: &Handle, elapsed: Duration) {
        let classes = handle.shares().into_iter().filter(|share| {
            let name = &share.name;
            name.queue.is_none() && !name.class.is_empty()
        });
        self.last = classes.collect();
        if self.seconds.last().is_none_or(|(second, _)| *second < elapsed.as_secs()) && !self.is_empty() {
            self.seconds.push((elapsed.as_secs(), self.last.clone()));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let row = |class: &ShareStatus| {
            let percent = class.percent.unwrap_or(0).to_string();
            let amounts = [class.target, class.held].map(|amount| class.unit.describe(amount));
            let counts = [class.running, class.waiting].map(|count| count.to_string());
            [vec![class.name.class.to_string(), percent], amounts.to_vec(), counts.to_vec()].concat()
        };
        self.last.iter().map(row).collect()
    }

    /// Everything anew, over what was drawn before.
    pub(super) fn redraw(&mut self) -> String {
        let mut text = self.wipe();
        for class in &self.last {
            let _ = writeln!(text, "{}", bar(class));
        }
        self.lines = self.last.len();
        text
    }

    /// Takes what was drawn off the screen.
    pub(super) fn wipe(&mut self) -> String {
        let up = std::mem::take(&mut self.lines);
        let mut text = "\r\x1b[K".to_owned();
        (0..up).for_each(|_| text.push_str("\x1b[A\x1b[K"));
        text
    }

    /// Where nothing can be drawn over: one line a second.
    pub(super) fn line_of_a_second(&mut self) -> String {
        let Some((second, classes)) = self.seconds.last().filter(|(second, _)| *second >= self.told) else {
            return String::new();
        };
        self.told = second + 1;
        let class = |class: &ShareStatus| {
            let (held, target) = (class.unit.describe(class.held), class.unit.describe(class.target));
            format!("{} {held}/{target} ({} wait)", class.name.class, class.waiting)
        };
        let classes: Vec<String> = classes.iter().map(class).collect();
        format!("{second:>3} s  {}\n", classes.join(", "))
    }

    /// Each second, for programs.
    pub(super) fn document(&self) -> Value {
        let seconds =
            self.seconds.iter().map(|(second, classes)| json!({"second": second, "classes": classes}));
        seconds.collect()
    }
}

fn bar(class: &ShareStatus) -> String {
    const WIDTH: u64 = 30;
    let most = class.held.max(class.target).max(1);
    let length = |amount: u64| (u128::from(amount) * u128::from(WIDTH) / u128::from(most)) as u64;
    let (held, target) = (length(class.held), length(class.target));
    let place = |at: u64| match (at < held, at < target) {
        (true, true) => '█',
        (true, false) => '▓',
        (false, true) => '░',
        (false, false) => ' ',
    };
    let bar: String = (0..WIDTH).map(place).collect();
    let name = &class.name.class;
    let (held, target) = (class.unit.describe(class.held), class.unit.describe(class.target));
    format!("{name:>12} {bar} {held:>5} of {target:<5} {:>6} wait", class.waiting)
}
