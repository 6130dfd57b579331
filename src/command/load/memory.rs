//! How much memory this process holds.

/// Bytes of memory in use, as far as the system tells.
pub(super) fn resident() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let page = rustix::param::page_size() as u64;
        let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
        let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(pages * page)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

pub(super) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

/// Bytes as people write them.
pub(super) fn text(bytes: u64) -> String {
    format!("{:.1} MiB", mebibytes(bytes))
}
