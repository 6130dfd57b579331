//! The report as one page: charts drawn as SVG, figures as tables, light and dark, nothing from elsewhere.

use std::fmt::Write;

use super::figures::{Figures, QUANTILES, grouped, span};
use super::memory;
use super::progress::{Sample, rate};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 34.0;
/// No chart shows more points than these.
const POINTS_MAX: usize = 400;

const STYLE: &str = "
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1d2733; --faint: #66717f; --line: #d9dee5;
  --one: #0b63c5; --two: #c2570c; --good: #1a7f37; --bad: #c62828; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161c; --ink: #e6eaf0; --faint: #98a3b1; --line: #2c3440;
  --one: #6aaefc; --two: #f2a25c; --good: #56c271; --bad: #ff7b72; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 920px; padding: 28px 16px 48px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 24px; margin: 0; } h2 { font-size: 17px; margin: 34px 0 8px; }
p { margin: 4px 0; color: var(--faint); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px; margin: 20px 0; }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; }
.tile b { display: block; font-size: 24px; font-variant-numeric: tabular-nums; }
.tile span { color: var(--faint); font-size: 13px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 5px 8px; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; } th { color: var(--faint); font-weight: 500; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--faint); font-size: 12px; }
.grid { stroke: var(--line); stroke-width: 1; } .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
.one { stroke: var(--one); } .two { stroke: var(--two); }
.bar { fill: var(--one); } .bar-label { fill: var(--ink); }
.key { font-size: 13px; color: var(--faint); } .key i { display: inline-block; width: 18px; height: 3px;
  margin: 0 6px 3px 14px; vertical-align: middle; }
.kept { color: var(--good); } .broken { color: var(--bad); font-weight: 600; }
";

/// The whole page.
pub(super) fn render(figures: &Figures) -> String {
    let mut page = String::new();
    let title = escape(&figures.title);
    page.push_str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    push(
        &mut page,
        format_args!("<title>Plimsoll load: {title}</title>\n<style>{STYLE}</style></head>\n<body>\n"),
    );
    push(&mut page, format_args!("<h1>Plimsoll load</h1>\n<p>{title}</p>\n"));
    page.push_str(&tiles(figures));
    let clock = if figures.simulated { "virtual seconds" } else { "seconds" };
    let looks = thin_out(&figures.samples);
    let rates = |figure: fn(&Sample) -> u64| -> Vec<(f64, f64)> {
        let pair = |pair: &[Sample]| (pair[1].seconds, rate(pair[0], pair[1], figure));
        looks.windows(2).map(pair).collect()
    };
    page.push_str("<h2>Throughput over time</h2>\n<div class=\"key\">");
    page.push_str("<i style=\"background: var(--one)\"></i>task lives per second");
    page.push_str("<i style=\"background: var(--two)\"></i>events in per second</div>\n");
    let (lives, events) = (rates(|sample| sample.lives), rates(|sample| sample.events_in));
    page.push_str(&chart(&[("one", lives), ("two", events)], clock, |value| grouped(value as u64)));
    page.push_str("<h2>Latency</h2>\n");
    page.push_str(&latency_bars(figures));
    page.push_str("<h2>Memory over time</h2>\n");
    let held = looks.iter().map(|sample| (sample.seconds, memory::mebibytes(sample.memory))).collect();
    page.push_str(&chart(&[("one", held)], clock, |value| format!("{} MiB", grouped(value as u64))));
    page.push_str("<h2>Figures</h2>\n<table>");
    for (name, value) in figures.rows() {
        push(&mut page, format_args!("<tr><td>{}</td><td>{}</td></tr>\n", escape(&name), escape(&value)));
    }
    page.push_str("</table>\n<h2>Promises</h2>\n<table>");
    for verdict in &figures.promises {
        let (class, found) = match &verdict.broken {
            None => ("kept", "kept".to_owned()),
            Some(broken) => ("broken", escape(broken)),
        };
        let promise = verdict.promise;
        push(&mut page, format_args!("<tr><td>{promise}</td><td class=\"{class}\">{found}</td></tr>\n"));
    }
    page.push_str("</table>\n</body></html>\n");
    page
}

fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("a string takes everything");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn tiles(figures: &Figures) -> String {
    let p99 = |name: &str| {
        let latency = figures.latencies.iter().find(|latency| latency.name == name);
        latency.map_or_else(|| "–".to_owned(), |latency| span(latency.micros.value_at_quantile(0.99)))
    };
    let kept = if figures.is_kept() { "all kept" } else { "broken" };
    let tiles = [
        (grouped(figures.per_second(figures.lives).round() as u64), "task lives per second"),
        (grouped(figures.per_second(figures.events_in).round() as u64), "events in per second"),
        (p99("submit to assigned"), "submit to assigned, p99"),
        (kept.to_owned(), "promises"),
    ];
    let mut html = String::from("<div class=\"tiles\">");
    for (value, name) in tiles {
        push(&mut html, format_args!("<div class=\"tile\"><b>{value}</b><span>{name}</span></div>\n"));
    }
    html + "</div>\n"
}

/// Fewer looks at a long run.
fn thin_out(samples: &[Sample]) -> Vec<Sample> {
    let step = samples.len().div_ceil(POINTS_MAX).max(1);
    samples.iter().copied().step_by(step).collect()
}

/// Curves over time, from zero up.
fn chart(curves: &[(&str, Vec<(f64, f64)>)], clock: &str, label: impl Fn(f64) -> String) -> String {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let last = points().map(|(x, _)| *x).fold(1e-9, f64::max);
    let top = round_up(points().map(|(_, y)| *y).fold(0.0, f64::max));
    let x = |value: f64| LEFT + value / last * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">");
    const LINES: u32 = 4;
    for line in 0..=LINES {
        let value = top * f64::from(line) / f64::from(LINES);
        let (height, end) = (y(value), WIDTH - RIGHT);
        push(
            &mut svg,
            format_args!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{height:.1}\" y2=\"{height:.1}\"/>"
            ),
        );
        let (place, text) = (LEFT - 8.0, label(value));
        let middle = height + 4.0;
        push(
            &mut svg,
            format_args!("<text x=\"{place}\" y=\"{middle:.1}\" text-anchor=\"end\">{text}</text>"),
        );
        let moment = last * f64::from(line) / f64::from(LINES);
        let anchor = if line == 0 {
            "start"
        } else if line == LINES {
            "end"
        } else {
            "middle"
        };
        let digits = usize::from(last < 20.0);
        let unit = if line == LINES { format!(" {clock}") } else { String::new() };
        let foot = HEIGHT - BOTTOM + 20.0;
        push(
            &mut svg,
            format_args!(
                "<text x=\"{:.1}\" y=\"{foot}\" text-anchor=\"{anchor}\">{moment:.digits$}{unit}</text>",
                x(moment),
            ),
        );
    }
    for (class, points) in curves {
        let place = |(at, value): &(f64, f64)| format!("{:.1},{:.1}", x(*at), y(*value));
        let path: Vec<String> = points.iter().map(place).collect();
        push(&mut svg, format_args!("<polyline class=\"curve {class}\" points=\"{}\"/>", path.join(" ")));
    }
    svg + "</svg>\n"
}

/// A number with one digit that is at least this.
fn round_up(value: f64) -> f64 {
    let value = value.max(1e-9);
    let magnitude = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 4.0, 5.0, 8.0, 10.0]
        .map(|digit| digit * magnitude)
        .into_iter()
        .find(|top| *top >= value)
        .unwrap_or(value)
}

/// A bar for each percentile; the scale is logarithmic, as latencies are far apart.
fn latency_bars(figures: &Figures) -> String {
    const ROW: f64 = 22.0;
    const NAMES: f64 = 220.0;
    let rows = figures.latencies.len() * (QUANTILES.len() + 1);
    let height = rows as f64 * ROW + 8.0;
    let most = figures.latencies.iter().map(|latency| latency.micros.value_at_quantile(0.999)).max();
    let decades = (most.unwrap_or(1).max(10) as f64).log10().max(1.0);
    let length = |micros: u64| (micros.max(1) as f64).log10() / decades * (WIDTH - NAMES - 110.0);
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">");
    let mut top = 0.0;
    for latency in &figures.latencies {
        let (middle, measured) = (top + 15.0, grouped(latency.micros.len()));
        let name = latency.name;
        push(&mut svg, format_args!("<text class=\"bar-label\" x=\"0\" y=\"{middle}\">{name}</text>"));
        push(&mut svg, format_args!("<text x=\"{NAMES}\" y=\"{middle}\">{measured} measured</text>"));
        top += ROW;
        for (name, quantile) in QUANTILES {
            let micros = latency.micros.value_at_quantile(quantile);
            let (bar, height) = (length(micros).max(2.0), ROW - 8.0);
            let (place, middle, behind) = (NAMES - 10.0, top + 12.0, NAMES + bar + 8.0);
            push(
                &mut svg,
                format_args!("<text x=\"{place}\" y=\"{middle}\" text-anchor=\"end\">{name}</text>"),
            );
            push(
                &mut svg,
                format_args!(
                    "<rect class=\"bar\" x=\"{NAMES}\" y=\"{top}\" width=\"{bar:.1}\" height=\"{height}\" rx=\"2\"/>"
                ),
            );
            push(&mut svg, format_args!("<text x=\"{behind:.1}\" y=\"{middle}\">{}</text>", span(micros)));
            top += ROW;
        }
    }
    svg + "</svg>\n<p>The scale is logarithmic.</p>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers() {
        assert_eq!([0.7, 1.0, 3.1, 41_000.0, 950.0].map(round_up), [0.8, 1.0, 4.0, 50_000.0, 1_000.0]);
    }

    #[test]
    fn text_cannot_break_the_page() {
        assert_eq!(escape("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }
}
