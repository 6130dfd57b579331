//! What is shown and kept while a run goes on: how fast it goes, and how much memory it holds.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use super::follow::Counts;
use super::memory;

/// One look at a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) seconds: f64,
    pub(super) events_in: u64,
    pub(super) lives: u64,
    pub(super) memory: u64,
}

/// Looks in regular intervals, and says so where somebody reads it.
pub(super) struct Progress {
    began: Instant,
    end: Duration,
    shown: Shown,
    next_line: Duration,
    pub(super) samples: Vec<Sample>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Bar,
    Lines,
    Nothing,
}

pub(super) const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A run of any length is kept in so many looks at most.
const SAMPLES_MAX: usize = 2_000;

impl Progress {
    pub(super) fn new(seconds: u64, quiet: bool) -> Progress {
        let shown = match (quiet, io::stderr().is_terminal()) {
            (true, _) => Shown::Nothing,
            (false, true) => Shown::Bar,
            (false, false) => Shown::Lines,
        };
        let samples = vec![Sample { memory: memory::resident().unwrap_or(0), ..Sample::default() }];
        let end = Duration::from_secs(seconds);
        Progress { began: Instant::now(), end, shown, next_line: Duration::ZERO, samples }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn is_over(&self) -> bool {
        self.elapsed() >= self.end
    }

    /// How long until the next look.
    pub(super) fn pause(&self) -> Duration {
        LOOK_EVERY.min(self.end.saturating_sub(self.elapsed()))
    }

    pub(super) fn look(&mut self, counts: &Counts) {
        let sample = Sample {
            seconds: self.elapsed().as_secs_f64(),
            events_in: Counts::get(&counts.events_in),
            lives: Counts::get(&counts.ended),
            memory: memory::resident().unwrap_or(0),
        };
        self.note(sample);
    }

    /// Keeps a look, and shows it. One that follows at once stands for the one before it.
    pub(super) fn note(&mut self, sample: Sample) {
        const APART_MIN: f64 = 0.1;
        if self.samples.len() > 1
            && self.samples.last().is_some_and(|last| sample.seconds < last.seconds + APART_MIN)
        {
            self.samples.pop();
        }
        let before = self.samples.last().copied().unwrap_or_default();
        let rate = rate(before, sample, |sample| sample.lives);
        if self.samples.len() == SAMPLES_MAX {
            let mut place = 0;
            self.samples.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
        self.samples.push(sample);
        self.show(sample, rate);
    }

    fn show(&mut self, sample: Sample, rate: f64) {
        let Sample { seconds, lives, .. } = sample;
        let held = memory::text(sample.memory);
        let (now, end) = (seconds, self.end.as_secs_f64());
        // Nobody who reads the progress is told about it when it cannot be written.
        let mut stderr = io::stderr().lock();
        match self.shown {
            Shown::Nothing => {}
            Shown::Bar => {
                const WIDTH: usize = 24;
                let filled = ((now / end) * WIDTH as f64) as usize;
                let place = |place| if place < filled { '█' } else { '░' };
                let bar: String = (0..WIDTH).map(place).collect();
                let line =
                    format!("{bar} {now:>4.0} of {end:.0} s  {lives} task lives, {rate:.0}/s now, {held}");
                let _ = write!(stderr, "\r\x1b[K{line}");
            }
            Shown::Lines if Duration::from_secs_f64(seconds) >= self.next_line => {
                let every = if self.end > Duration::from_secs(60) { 5 } else { 1 };
                self.next_line = Duration::from_secs(seconds as u64 / every * every + every);
                let _ = writeln!(stderr, "{now:>5.0} s  {lives} task lives, {rate:.0}/s now, {held}");
            }
            Shown::Lines => {}
        }
    }

    /// Takes the bar away.
    pub(super) fn clear(&self) {
        if self.shown == Shown::Bar {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// How much something grew a second between two looks.
pub(super) fn rate(before: Sample, after: Sample, figure: impl Fn(&Sample) -> u64) -> f64 {
    let seconds = (after.seconds - before.seconds).max(1e-6);
    figure(&after).saturating_sub(figure(&before)) as f64 / seconds
}
