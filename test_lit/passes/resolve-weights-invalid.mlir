// RUN: batten-opt %s --resolve-weights --split-input-file --verify-diagnostics
// RUN: not batten-opt %s --resolve-weights --split-input-file 2>&1 | FileCheck %s

// All problems are in one report, and its last line repeats the first cause.
// CHECK: error: 4 of 5 weights don't fit the checkpoint; the first: tensor "gone" of 2_Dense is missing from the checkpoint: [4] wanted
module {
  batten.stored "gone" in "" file "model.safetensors" : tensor<4xf32>
  batten.stored "word" in "" file "a.safetensors" : tensor<20x16xf32>
  batten.stored "rank" in "" file "a.safetensors" : tensor<4x1xf32>
  batten.stored "int" in "" file "a.safetensors" : tensor<4xi64>
  batten.stored "fine" in "" file "a.safetensors" : tensor<4xf32>
  // expected-error @+3 {{tensors that no weight names: "gone"}}
  // expected-error @+2 {{4 of 5 weights don't fit the checkpoint; the first: tensor "gone" of 2_Dense is missing from the checkpoint: [4] wanted}}
  // expected-error @+1 {{tensor "gone" of 2_Dense is missing from the checkpoint: [4] wanted}}
  batten.weight @gone from "gone" in "2_Dense" : tensor<4xf32>
  // expected-error @+1 {{tensor "word" in a.safetensors: [24, 16] wanted, [20, 16] found (vocab_size = 24, hidden_size = 16)}}
  batten.weight @word from "word" dims ["vocab_size", "hidden_size"] : tensor<24x16xf32>
  // expected-error @+1 {{tensor "rank" in a.safetensors: [4] wanted, [4, 1] found}}
  batten.weight @rank from "rank" : tensor<4xf32>
  // expected-error @+1 {{tensor "int" in a.safetensors: elements of F32, F16 or BF16 wanted, I64 found}}
  batten.weight @int from "int" : tensor<4xf32>
  batten.weight @fine from "fine" : tensor<4xf32>
}

// -----

// One problem needs no summary.
module {
  // expected-error @+1 {{tensor "a" is missing from the checkpoint: [4] wanted}}
  batten.weight @a from "a" : tensor<4xf32>
}

// -----

// Tensors that nothing asks for come first, so that the last line stays the first cause: a renaming shows both its names.
module {
  batten.stored "old" in "" file "a.safetensors" : tensor<4xf32>
  batten.stored "w" in "2_Dense" file "a.safetensors" : tensor<4xf32>
  // expected-error @+2 {{tensors that no weight names: "old", "2_Dense/w"}}
  // expected-error @+1 {{tensor "new" is missing from the checkpoint: [4] wanted}}
  batten.weight @a from "new" : tensor<4xf32>
}

// -----

// A tensor that is stored twice would make the choice ours.
module {
  batten.stored "a" in "" file "model-1.safetensors" : tensor<4xf32>
  // expected-error @+1 {{tensor "a" is stored twice}}
  batten.stored "a" in "" file "model-2.safetensors" : tensor<4xf32>
}

// -----

// A name may hold any byte, and is told as it is written.
module {
  // expected-error @+1 {{tensor "a\0A\00\FF" is missing from the checkpoint: [4] wanted}}
  batten.weight @bytes from "a\0A\00\FF" : tensor<4xf32>
}

// -----

// Types are spelled as checkpoints spell them: the last cause is the summary's first.
module {
  batten.stored "mask" in "" file "a.safetensors" : tensor<4xi1>
  batten.stored "quant" in "" file "a.safetensors" : tensor<4xui8>
  // expected-error @+2 {{2 of 2 weights don't fit the checkpoint; the first: tensor "mask" in a.safetensors: elements of F32, F16 or BF16 wanted, BOOL found}}
  // expected-error @+1 {{tensor "mask" in a.safetensors: elements of F32, F16 or BF16 wanted, BOOL found}}
  batten.weight @mask from "mask" : tensor<4xf32>
  // expected-error @+1 {{tensor "quant" in a.safetensors: elements of F32, F16 or BF16 wanted, U8 found}}
  batten.weight @quant from "quant" : tensor<4xf32>
}
