//! Filters of a service, as the worlds have them: one that looks at a fact which changes, and one that looks at
//! names.

use std::sync::Arc;

use fastrand::Rng;

use crate::spec::{Filters, NodeFacts, NodeFilter, NodeTest, Rules, WantedFilter};

/// The zone is one of the letters that are wanted.
struct Zones;

/// The name ends in an even number, or in an odd one if that is wanted.
struct Evenness;

impl NodeFilter for Zones {
    fn name(&self) -> &str {
        "zones"
    }

    fn prepare(&self, wanted: &str) -> Result<Box<dyn NodeTest>, String> {
        let wanted = wanted.to_owned();
        Ok(Box::new(move |node: &NodeFacts| match node.labels.get("zone") {
            Some(zone) if wanted.contains(zone.as_str()) => Ok(()),
            zone => Err(format!("has the zone {}", zone.map_or("of nobody", String::as_str))),
        }))
    }

    fn looks_at_names(&self) -> bool {
        false
    }
}

impl NodeFilter for Evenness {
    fn name(&self) -> &str {
        "evenness"
    }

    fn prepare(&self, wanted: &str) -> Result<Box<dyn NodeTest>, String> {
        let rest = match wanted {
            "even" => 0,
            "odd" => 1,
            _ => return Err("`even` or `odd`".to_owned()),
        };
        Ok(Box::new(move |node: &NodeFacts| {
            let last = node.name.bytes().last().unwrap_or_default();
            if last % 2 == rest { Ok(()) } else { Err("has another number".to_owned()) }
        }))
    }
}

/// The filters that every world has.
pub(super) fn filters() -> Filters {
    let all: [Arc<dyn NodeFilter>; 2] = [Arc::new(Zones), Arc::new(Evenness)];
    Filters::new(all).expect("their names are two")
}

/// What a role wants of them, ready to judge as behind the edge, or as after a restore.
pub(super) fn wanted(rng: &mut Rng) -> Vec<WantedFilter> {
    let wanted = match rng.u8(0..4) {
        0 | 1 => WantedFilter::new("zones", rng.choice(["a", "ab", "c"]).expect("not empty")),
        _ => WantedFilter::new("evenness", rng.choice(["even", "odd"]).expect("not empty")),
    };
    let mut rules = Rules { filters: vec![wanted], ..Rules::default() };
    if rng.bool() {
        rules.prepare_filters(&filters());
    }
    rules.filters
}
