//! The command line.

use std::path::PathBuf;

use lexopt::prelude::*;

use crate::Result;
use crate::model::Lane;

const HELP: &str = "\
Run batches through a decision checkpoint with the reference's crates
Usage: batten-peer-kime MODEL_DIR --batches IN.safetensors [-o OUT.safetensors] [--bench]

  MODEL_DIR            config.json, or encoder/config.json and rl_agent_config.json; and model.safetensors
  --batches FILE       <case>/token_ids, cu_seqlens, markers, cu_markers, seq_types, all I32; others are not read
  -o FILE              where <case>/logits, act, pooled go
  --lane L             decide or embed; may be repeated; both otherwise
  --case NAME          run this case only; may be repeated
  --buckets FILE       a table of `stage tokens seqs markers`; the crates' own otherwise
  --decide-stage NAME  the stage of lane decide, otherwise compat
  --embed-stage NAME   the stage of lane embed, otherwise state
  --threads N          1 otherwise
  --bench              measure, and print a JSON line for each case and lane
  --seconds T          time for each measurement, 1 otherwise";

/// What was asked for.
pub struct Options {
    pub model: PathBuf,
    pub batches: PathBuf,
    pub output: Option<PathBuf>,
    pub lanes: Vec<Lane>,
    /// Names of the cases to run; all if empty.
    pub cases: Vec<String>,
    pub buckets: Option<PathBuf>,
    pub decide_stage: String,
    pub embed_stage: String,
    pub threads: usize,
    /// Seconds for each measurement, if measurements are wanted.
    pub bench: Option<f64>,
}

/// Reads the command line; None if it asked for help, which is printed.
pub fn parse() -> Result<Option<Options>> {
    parse_from(lexopt::Parser::from_env()).map_err(|e| e.to_string())
}

fn parse_from(mut parser: lexopt::Parser) -> std::result::Result<Option<Options>, lexopt::Error> {
    let (mut model, mut batches, mut output, mut buckets) = (None, None, None, None);
    let (mut lanes, mut cases) = (Vec::new(), Vec::new());
    let (mut decide_stage, mut embed_stage) = ("compat".to_string(), "state".to_string());
    let (mut threads, mut bench, mut seconds) = (1, false, 1.0);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => {
                println!("{HELP}");
                return Ok(None);
            }
            Value(value) if model.is_none() => model = Some(PathBuf::from(value)),
            Long("batches") => batches = Some(PathBuf::from(parser.value()?)),
            Short('o') => output = Some(PathBuf::from(parser.value()?)),
            Long("buckets") => buckets = Some(PathBuf::from(parser.value()?)),
            Long("lane") => lanes.push(parser.value()?.parse()?),
            Long("case") => cases.push(parser.value()?.string()?),
            Long("decide-stage") => decide_stage = parser.value()?.string()?,
            Long("embed-stage") => embed_stage = parser.value()?.string()?,
            Long("threads") => threads = parser.value()?.parse()?,
            Long("bench") => bench = true,
            Long("seconds") => seconds = parser.value()?.parse()?,
            _ => return Err(argument.unexpected()),
        }
    }
    let model = model.ok_or("MODEL_DIR is missing")?;
    let batches = batches.ok_or("--batches is missing")?;
    if output.is_none() && !bench {
        return Err("one of -o and --bench is needed".into());
    }
    if !(1..=1024).contains(&threads) {
        return Err(format!("--threads: 1 to 1024 wanted, found {threads}").into());
    }
    if !(seconds > 0.0 && seconds <= 3600.0) {
        return Err(format!("--seconds: more than 0 and at most 3600 wanted, found {seconds}").into());
    }
    if lanes.is_empty() {
        lanes = vec![Lane::Decide, Lane::Embed];
    }
    let bench = bench.then_some(seconds);
    Ok(Some(Options { model, batches, output, lanes, cases, buckets, decide_stage, embed_stage, threads, bench }))
}
