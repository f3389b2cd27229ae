//! The line a fetch prints, in the form all measured programs use.

use std::{fs, time::Duration};

use serde::Serialize;

#[derive(Debug, Serialize)]
pub(crate) struct Rate {
    items: u64,
    seconds: f64,
    items_per_second: f64,
    /// None where there is no `/proc`.
    peak_rss_mb: Option<f64>,
}

pub(crate) fn rate(items: u64, duration: Duration) -> anyhow::Result<Rate> {
    let seconds = duration.as_secs_f64();
    Ok(Rate { items, seconds, items_per_second: items as f64 / seconds, peak_rss_mb: peak_rss_mb() })
}

fn peak_rss_mb() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?;
    Some(kilobytes.parse::<f64>().ok()? / 1024.0)
}
