// RUN: batten-opt %s --resolve-weights --split-input-file | FileCheck %s

// Weights are bound by directory and name; element types may differ; what nothing wants is listed in the checkpoint's order.
// CHECK: module attributes {batten.unused = ["position_ids", "2_Dense/extra"]}
// CHECK-NOT: batten.stored
// CHECK: batten.weight @a from "a" stored f16 : tensor<8x4xf32>
// CHECK: batten.weight @d from "a" in "2_Dense" stored f32 : tensor<3xf32>
module {
  batten.stored "position_ids" in "" file "model.safetensors" : tensor<1x512xi64>
  batten.stored "a" in "" file "model.safetensors" : tensor<8x4xf16>
  batten.stored "extra" in "2_Dense" file "model.safetensors" : tensor<0xf32>
  batten.stored "a" in "2_Dense" file "model.safetensors" : tensor<3xf32>
  batten.weight @a from "a" : tensor<8x4xf32>
  batten.weight @d from "a" in "2_Dense" : tensor<3xf32>
}

// -----

// Two weights may name one tensor; a weight that is bound already stays as it is, and its tensor counts as used.
// CHECK-LABEL: module {
// CHECK-NOT: batten.unused
// CHECK: batten.weight @a from "a" stored bf16
// CHECK: batten.weight @b from "a" stored bf16
// CHECK: batten.weight @c from "c" stored f16
module {
  batten.stored "a" in "" file "model.safetensors" : tensor<4xbf16>
  batten.stored "c" in "" file "model.safetensors" : tensor<4xf32>
  batten.weight @a from "a" : tensor<4xf32>
  batten.weight @b from "a" : tensor<4xf32>
  batten.weight @c from "c" stored f16 : tensor<4xf32>
}
