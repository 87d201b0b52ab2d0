//! Batches and outputs as safetensors: a tensor is named `<case>/<what>`, as in the goldens.

use std::collections::BTreeSet;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize_to_file};

use crate::Result;

/// A packed batch, in the types that the crates take.
pub struct Case {
    pub name: String,
    pub ids: Vec<u32>,
    pub cu: Vec<u32>,
    pub markers: Vec<u32>,
    pub mcu: Vec<u32>,
    pub types: Vec<u8>,
}

/// An output: row-major f32.
pub struct Tensor {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// Reads one tensor of rank 1 whose values fit `T`.
fn integers<T: TryFrom<i32>>(file: &SafeTensors<'_>, name: &str) -> Result<Vec<T>> {
    let tensor = file.tensor(name).map_err(|_| format!("tensor {name} is missing"))?;
    if tensor.dtype() != Dtype::I32 || tensor.shape().len() != 1 {
        return Err(format!("tensor {name} is {:?} {:?}, I32 of rank 1 wanted", tensor.dtype(), tensor.shape()));
    }
    let values = tensor.data().chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    values
        .enumerate()
        .map(|(i, value)| {
            T::try_from(value).map_err(|_| format!("tensor {name}: value {value} at {i} is out of range"))
        })
        .collect()
}

fn read_case(file: &SafeTensors<'_>, name: &str) -> Result<Case> {
    let case = Case {
        name: name.to_string(),
        ids: integers(file, &format!("{name}/token_ids"))?,
        cu: integers(file, &format!("{name}/cu_seqlens"))?,
        markers: integers(file, &format!("{name}/markers"))?,
        mcu: integers(file, &format!("{name}/cu_markers"))?,
        types: integers(file, &format!("{name}/seq_types"))?,
    };
    // The crates check the rest themselves; on these they slice before they check.
    let last = case.mcu.last().copied().unwrap_or(0) as usize;
    if !case.mcu.is_sorted() || last > case.markers.len() {
        return Err(format!("tensor {name}/cu_markers falls, or passes the {} markers", case.markers.len()));
    }
    Ok(case)
}

/// Reads the cases of those names, or all, in the order of their names.
pub fn read(path: &Path, wanted: &[String]) -> Result<Vec<Case>> {
    let told = |message: String| format!("{}: {message}", path.display());
    let bytes = std::fs::read(path).map_err(|e| told(e.to_string()))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|e| told(e.to_string()))?;
    let tensors = file.names();
    let known: BTreeSet<&str> = tensors.iter().filter_map(|t| t.strip_suffix("/token_ids")).collect();
    if known.is_empty() {
        return Err(told("no tensor <case>/token_ids".into()));
    }
    if let Some(name) = wanted.iter().find(|name| !known.contains(name.as_str())) {
        return Err(told(format!("no case {name}")));
    }
    let asked = |name: &&&str| wanted.is_empty() || wanted.iter().any(|w| w == **name);
    known.iter().filter(asked).map(|name| read_case(&file, name).map_err(told)).collect()
}

/// Writes the outputs.
pub fn write(path: &Path, tensors: &[(String, Tensor)]) -> Result<()> {
    let told = |e: safetensors::SafeTensorError| format!("{}: {e}", path.display());
    let bytes: Vec<Vec<u8>> =
        tensors.iter().map(|(_, t)| t.values.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
    let mut views = Vec::new();
    for ((name, tensor), bytes) in tensors.iter().zip(&bytes) {
        views.push((name, TensorView::new(Dtype::F32, tensor.shape.clone(), bytes).map_err(told)?));
    }
    serialize_to_file(views, None, path).map_err(told)
}
