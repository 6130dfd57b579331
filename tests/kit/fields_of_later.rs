//! What belongs to the formats and has no effect yet, for every test that must not pass it over.

/// Settings that belong to the format and that nothing acts on yet.
pub const SETTINGS_OF_LATER: [&str; 21] = [
    "classes",
    "queues",
    "share_key",
    "queue_key",
    "resource_weights",
    "half_time",
    "non_preemptible_factor",
    "excess_budget",
    "rebalance",
    "bands",
    "placement",
    "faulty",
    "default_class",
    "share_unit",
    "rates",
    "protected_fraction",
    "claim_after",
    "gpu_cpu_ratio",
    "resize_interval",
    "freeze",
    "headroom",
];
