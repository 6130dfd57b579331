//! `retries` of a role: a number, or how often, after what and how soon.

use crate::document::{Cursor, FaultKind, Fields, Value};
use crate::settings::bounds;
use crate::spec::{FACTOR_MAX, RETRIES_MAX, Retries, RetryOn};
use crate::time::Span;

use super::jobs::read_each;

const ENDS: &str = "\"start_failure\", \"failure\", \"timeout\", \"lost\", \"preempted\" or an exit code";

/// The retries, if there are any; `None` when too much is wrong with them.
pub(super) fn read(fields: &Fields<'_>) -> Option<Option<Box<Retries>>> {
    let Some(cursor) = fields.get("retries") else { return Some(None) };
    let retries = match cursor.value() {
        Value::Table(_) => cursor.table(read_table)??,
        _ => Retries::new(read_most(cursor)?),
    };
    Some((retries.most > 0).then(|| Box::new(retries)))
}

fn read_most(cursor: Cursor<'_>) -> Option<u32> {
    cursor.whole(0..=u64::from(RETRIES_MAX)).map(|most| most as u32)
}

fn read_table(fields: &Fields<'_>) -> Option<Retries> {
    let most = fields.required("most", "how many retries at most").and_then(read_most);
    let on = fields.get("on").map_or(Some(RetryOn::default()), read_on);
    let spans = || Span::ZERO..=bounds::RUN.maximum;
    let usual = Retries::new(0);
    let backoff = fields.get("backoff").map_or(Some(usual.backoff), |cursor| cursor.span(spans()));
    let cap = fields.get("backoff_cap").map_or(Some(usual.cap), |cursor| cursor.span(spans()));
    let factor = fields
        .get("backoff_factor")
        .map_or(Some(2.0), |cursor| cursor.number(1.0..=f64::from(FACTOR_MAX / 1_000)));
    let factor = factor.map(|factor| (factor * 1_000.0).round() as u32);
    Some(Retries { most: most?, on: on?, backoff: backoff?, factor: factor?, cap: cap? })
}

fn read_on(list: Cursor<'_>) -> Option<RetryOn> {
    let mut on = RetryOn::nothing();
    read_each(list, |item| {
        let flag = match item.value() {
            Value::Integer(code) => {
                match i32::try_from(*code) {
                    Ok(code) => on.codes.push(code),
                    Err(_) => item.fault(FaultKind::OutOfRange, ENDS),
                }
                return Some(());
            }
            Value::Text(name) => match name.as_str() {
                "start_failure" => &mut on.start_failure,
                "failure" => &mut on.failure,
                "timeout" => &mut on.timeout,
                "lost" => &mut on.lost,
                "preempted" => &mut on.preempted,
                _ => {
                    item.fault(FaultKind::UnknownName, ENDS);
                    return None;
                }
            },
            _ => {
                item.fault(FaultKind::WrongType, ENDS);
                return None;
            }
        };
        *flag = true;
        Some(())
    })?;
    Some(on)
}
