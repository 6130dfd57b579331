//! What one message costs without anything of ours: through actix to another thread, alone and 64 to a
//! batch, and through a bare crossbeam channel.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use actix::{Actor, Arbiter, Context, Handler, Message, System};
use cpu_time::ProcessTime;

use crate::support::{Options, Table, Value};

#[derive(Clone, Copy, Debug)]
struct Cost {
    messages: u64,
    wall: Duration,
    cpu: Duration,
}

#[derive(Debug)]
pub struct Baseline {
    actix: Vec<(u32, Cost)>,
    batched: Cost,
    crossbeam: Vec<(u32, Cost)>,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Numbers(Vec<u64>);

#[derive(Message)]
#[rtype(result = "()")]
struct Number(u64);

/// Counts until it has heard as many as it was told of, then says so.
struct Counter {
    expected: u64,
    heard: u64,
    done: mpsc::Sender<()>,
}

impl Counter {
    fn hear(&mut self, numbers: u64) {
        self.heard += numbers;
        if self.heard == self.expected {
            let _ = self.done.send(());
        }
    }
}

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Number> for Counter {
    type Result = ();

    fn handle(&mut self, number: Number, _: &mut Context<Self>) {
        std::hint::black_box(number.0);
        self.hear(1);
    }
}

impl Handler<Numbers> for Counter {
    type Result = ();

    fn handle(&mut self, numbers: Numbers, _: &mut Context<Self>) {
        self.hear(numbers.0.len() as u64);
    }
}

/// Measures what happens until everything that was sent is heard.
fn cost(messages: u64, act: impl FnOnce()) -> Cost {
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    act();
    Cost { messages, wall: wall.elapsed(), cpu: cpu.elapsed() }
}

fn through_actix(producers: u32, messages: u64, batch: u64) -> Cost {
    let system = System::new();
    let arbiter = Arbiter::new();
    let (done, heard) = mpsc::channel();
    let counter = Counter { expected: messages, heard: 0, done };
    let address = Counter::start_in_arbiter(&arbiter.handle(), |_| counter);
    let each = messages / u64::from(producers);
    let measured = cost(messages, || {
        std::thread::scope(|scope| {
            for _ in 0..producers {
                let address = address.clone();
                scope.spawn(move || match batch {
                    1 => (0..each).for_each(|number| address.do_send(Number(number))),
                    _ => (0..each / batch).for_each(|_| address.do_send(Numbers((0..batch).collect()))),
                });
            }
        });
        heard.recv().expect("the counter hears everything");
    });
    arbiter.stop();
    arbiter.join().expect("the arbiter ends");
    drop(system);
    measured
}

fn through_crossbeam(producers: u32, messages: u64) -> Cost {
    let (sender, receiver) = crossbeam_channel::bounded::<u64>(4_096);
    let each = messages / u64::from(producers);
    cost(messages, || {
        std::thread::scope(|scope| {
            for _ in 0..producers {
                let sender = sender.clone();
                scope.spawn(move || (0..each).for_each(|number| sender.send(number).expect("it is read")));
            }
            for _ in 0..messages {
                std::hint::black_box(receiver.recv().expect("everything comes"));
            }
        });
    })
}

impl Baseline {
    pub fn measure(options: Options) -> Baseline {
        let messages = if options.quick { 64 * 4 * 1_000 } else { 64 * 4 * 10_000 };
        Baseline {
            actix: [1, 2, 4].map(|producers| (producers, through_actix(producers, messages, 1))).to_vec(),
            batched: through_actix(1, messages, 64),
            crossbeam: [1, 2, 4]
                .map(|producers| (producers, through_crossbeam(producers, messages)))
                .to_vec(),
        }
    }

    /// Nanoseconds of CPU, on both sides together, of one message from one thread to another.
    pub fn actix_cpu_nanos(&self) -> f64 {
        let one = self.actix[0].1;
        one.cpu.as_nanos() as f64 / one.messages as f64
    }

    pub fn crossbeam_per_second(&self, producers: u32) -> f64 {
        let known = self.crossbeam.iter().find(|(with, _)| *with == producers);
        known.map_or(f64::NAN, |(_, cost)| cost.messages as f64 / cost.wall.as_secs_f64())
    }

    pub fn table(&self) -> Table {
        let columns = ["baseline", "producers", "messages", "per s", "wall ns each", "CPU ns each"];
        let mut table = Table::new("One message to another thread, without anything of ours", &columns);
        let mut row = |what: &str, producers: u32, cost: Cost| {
            let (messages, wall) = (cost.messages as f64, cost.wall.as_nanos() as f64);
            table.row(vec![
                what.into(),
                Value::count(producers),
                Value::count(cost.messages),
                Value::Number(messages / wall * 1e9, 0),
                Value::Number(wall / messages, 1),
                Value::Number(cost.cpu.as_nanos() as f64 / messages, 1),
            ]);
        };
        self.actix.iter().for_each(|(producers, cost)| row("actix do_send", *producers, *cost));
        row("actix do_send, 64 to a batch", 1, self.batched);
        self.crossbeam.iter().for_each(|(producers, cost)| row("crossbeam, bounded", *producers, *cost));
        table
    }
}
