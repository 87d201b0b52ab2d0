//! Runs a decision checkpoint with the reference's crates: batches in, outputs out, both as safetensors, and with
//! `--bench` its times and memory as JSON lines. Lane `decide` gives logits and act, lane `embed` gives pooled.
//! It only calls the crates' public interface; it tokenizes nothing and applies no temperature, as Batten doesn't.

mod bench;
mod cases;
mod model;
mod options;

use std::process::ExitCode;

use cases::{Case, Tensor};
use kime_tensor::Outputs;
use model::{Engine, Lane};
use options::Options;

/// An error is its text, lower case, with the file and the name that it is about.
type Result<T> = std::result::Result<T, String>;

/// The tensors that a lane answers for a case, named as the goldens name them.
fn tensors(lane: Lane, case: &Case, outputs: &Outputs, hidden: usize) -> Vec<(String, Tensor)> {
    let seqs = case.types.len();
    let named = |name: &str, shape, values| (format!("{}/{name}", case.name), Tensor { shape, values });
    match lane {
        Lane::Decide => vec![
            named("logits", vec![case.markers.len(), 1], outputs.logits.clone()),
            named("act", vec![seqs, 2], outputs.act.concat()),
        ],
        Lane::Embed => vec![named("pooled", vec![seqs, hidden], outputs.pooled.clone())],
    }
}

fn run(options: &Options) -> Result<()> {
    let cases = cases::read(&options.batches, &options.cases)?;
    let mut engine = Engine::open(options)?;
    let mut answers = Vec::new();
    let mut outputs = Outputs::default();
    for case in &cases {
        for &lane in &options.lanes {
            engine.run(lane, case, &mut outputs)?;
            if let Some(seconds) = options.bench {
                println!("{}", bench::measure(&mut engine, lane, case, seconds, &mut outputs)?);
            }
            answers.extend(tensors(lane, case, &outputs, engine.hidden));
        }
    }
    match &options.output {
        Some(path) => cases::write(path, &answers),
        None => Ok(()),
    }
}

fn main() -> ExitCode {
    let options = match options::parse() {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("batten-peer-kime: error: {message}; --help tells what there is");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("batten-peer-kime: error: {message}");
            ExitCode::FAILURE
        }
    }
}
