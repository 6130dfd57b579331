//! `access`: who may use a node.

use std::sync::Arc;

use crate::document::{Cursor, Value};
use crate::spec::Access;

use super::nodes::read_names;

/// `"everybody"`, or a table of those who may.
pub(super) fn read(cursor: Cursor<'_>) -> Option<Option<Arc<Access>>> {
    if let Value::Text(_) = cursor.value() {
        return cursor.one_of(&[("everybody", ())]).map(|()| None);
    }
    cursor.table(|fields| {
        let name = |field| fields.get(field).and_then(|cursor| cursor.name()).map(str::to_owned);
        let names = |field| fields.get(field).and_then(read_names).unwrap_or_default();
        let (owner, loan) = (name("owner"), name("loan"));
        let access = Access {
            owner,
            requestors: names("requestors"),
            queues: names("queues"),
            except: names("except"),
            loan,
        };
        Some(Arc::new(access))
    })
}
