//! A checkpoint on the reference's executor, with both lanes on one set of weights.

use std::fmt::Display;
use std::path::Path;

use kime_cpu::CpuBackend;
use kime_model::laya::{LayaGraph, LayaSpec};
use kime_model::safetensors;
use kime_tensor::{Batch, Blob, Buckets, Executor, HostTensor, Outputs};
use serde_json::Value;

use crate::Result;
use crate::cases::Case;
use crate::options::Options;

/// The two graphs of a decision checkpoint; a lane's number is its value here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Decide = 0,
    Embed = 1,
}

impl Lane {
    pub fn name(self) -> &'static str {
        match self {
            Lane::Decide => "decide",
            Lane::Embed => "embed",
        }
    }
}

impl std::str::FromStr for Lane {
    type Err = String;
    fn from_str(text: &str) -> Result<Self> {
        [Lane::Decide, Lane::Embed]
            .into_iter()
            .find(|lane| lane.name() == text)
            .ok_or_else(|| format!("no lane '{text}', only decide and embed"))
    }
}

fn at<E: Display>(path: &Path) -> impl Fn(E) -> String + '_ {
    move |error| format!("{}: {error}", path.display())
}

fn json(path: &Path) -> Result<Value> {
    let text = std::fs::read(path).map_err(at(path))?;
    serde_json::from_slice(&text).map_err(at(path))
}

/// Reads the configuration in either layout: one file, or one for the encoder and one for the head.
fn spec(dir: &Path) -> Result<LayaSpec> {
    let (head, encoder, whole) =
        (dir.join("rl_agent_config.json"), dir.join("encoder/config.json"), dir.join("config.json"));
    let (head, encoder) = if head.exists() || encoder.exists() {
        (json(&head)?, json(&encoder)?)
    } else if whole.exists() {
        let both = json(&whole)?;
        (both.clone(), both)
    } else {
        return Err(format!("{}: neither config.json nor encoder/config.json is there", dir.display()));
    };
    LayaSpec::from_json(&head, &encoder).map_err(at(dir))
}

fn buckets(path: Option<&Path>) -> Result<Buckets> {
    match path {
        None => Ok(Buckets::default()),
        Some(path) => Buckets::parse(&std::fs::read_to_string(path).map_err(at(path))?).map_err(at(path)),
    }
}

/// The executor, ready to run either lane.
pub struct Engine {
    executor: Executor<CpuBackend>,
    pub threads: usize,
    /// Values in a row of `pooled`.
    pub hidden: usize,
}

impl Engine {
    /// Opens the checkpoint and converts its weights. Plans are made on first use of a bucket.
    pub fn open(options: &Options) -> Result<Self> {
        let table = buckets(options.buckets.as_deref())?;
        for stage in [&options.decide_stage, &options.embed_stage] {
            if table.stage(stage).is_empty() {
                return Err(format!("the bucket table has no stage '{stage}'"));
            }
        }
        let spec = spec(&options.model)?;
        let path = options.model.join("model.safetensors");
        let (tensors, _) = safetensors::load(Blob::map(&path).map_err(at(&path))?).map_err(at(&path))?;
        let graph = LayaGraph::bind(&spec, &tensors).map_err(at(&path))?;
        let views: Vec<_> = (0..tensors.entries().len()).map(|i| tensors.view(i)).collect();
        let host: Vec<_> =
            views.iter().map(|v| HostTensor { dtype: v.dtype, shape: v.shape, bytes: v.bytes }).collect();
        let backend = CpuBackend::new(options.threads);
        let (decide, types) = (graph.plan(&spec), 3);
        let mut executor =
            Executor::new(backend, &host, decide, &table, &options.decide_stage, spec.encoder.vocab, types)
                .map_err(at(&path))?;
        executor.add_graph(graph.embed_plan(&spec), &table, &options.embed_stage);
        Ok(Self { threads: executor.backend().threads(), hidden: spec.encoder.d, executor })
    }

    /// Runs a case. The embedding lane reads no markers, so none count against its buckets.
    pub fn run(&mut self, lane: Lane, case: &Case, outputs: &mut Outputs) -> Result<()> {
        let none = vec![0; case.mcu.len()];
        let (markers, mcu) = if lane == Lane::Embed { (&[][..], &none) } else { (&case.markers[..], &case.mcu) };
        let batch = Batch { ids: &case.ids, cu: &case.cu, markers, mcu, qtype: &case.types };
        self.executor
            .run_lane(lane as usize, &batch, outputs)
            .map(|_| ())
            .map_err(|e| format!("case {}: lane {}: {e}", case.name, lane.name()))
    }

    /// Bytes of the weights, and of all plans made so far, by the executor's own account.
    pub fn memory(&self) -> (usize, usize) {
        self.executor.memory()
    }
}
