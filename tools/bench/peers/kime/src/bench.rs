//! Times of a case: warm up for a fifth of the time asked for, at least one run, then runs until that time has passed and
//! there are 100 of them, unless ten times that time passes first.

use std::time::Instant;

use kime_tensor::Outputs;
use serde_json::{Value, json};

use crate::Result;
use crate::cases::Case;
use crate::model::{Engine, Lane};

/// The process's largest resident memory until now, in bytes.
fn peak_resident() -> Result<u64> {
    let path = "/proc/self/status";
    let status = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.map(|k: u64| k * 1024).ok_or_else(|| format!("{path}: no VmHWM in kB"))
}

/// The smallest of the sorted times that a share of the runs don't exceed.
fn percentile(sorted: &[u64], share: f64) -> u64 {
    sorted[((share * sorted.len() as f64) as usize).min(sorted.len() - 1)]
}

/// Measures a case; the outputs are those of the last run.
pub fn measure(engine: &mut Engine, lane: Lane, case: &Case, seconds: f64, outputs: &mut Outputs) -> Result<Value> {
    let begin = Instant::now();
    let mut warm = 0;
    while warm == 0 || (warm < 1000 && begin.elapsed().as_secs_f64() < seconds / 5.0) {
        engine.run(lane, case, outputs)?;
        warm += 1;
    }
    let mut times = Vec::new();
    let begin = Instant::now();
    loop {
        let start = Instant::now();
        engine.run(lane, case, outputs)?;
        times.push(start.elapsed().as_nanos() as u64);
        let passed = begin.elapsed().as_secs_f64();
        if passed >= seconds && (times.len() >= 100 || passed >= 10.0 * seconds) {
            break;
        }
    }
    times.sort_unstable();
    let (weights, plans) = engine.memory();
    Ok(json!({
        "case": case.name, "lane": lane.name(), "threads": engine.threads,
        "tokens": case.ids.len(), "seqs": case.types.len(), "markers": case.markers.len(),
        "runs": times.len(), "p50_ns": percentile(&times, 0.5), "p95_ns": percentile(&times, 0.95),
        "p99_ns": percentile(&times, 0.99), "peak_rss_bytes": peak_resident()?,
        "weights_bytes": weights, "plans_bytes": plans,
    }))
}
