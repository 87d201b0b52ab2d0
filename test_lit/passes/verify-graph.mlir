// RUN: batten-opt %s --verify-graph | FileCheck %s

#tokens = #batten.rows<tokens>

// A graph that is ready to be lowered passes unchanged; a weight that nothing reads need not be bound.
// CHECK-LABEL: batten.graph @ready
module attributes {batten.weights = "f32", batten.math = "f32"} {
  batten.stage @text [[32, 8, 0]]
  batten.weight @t from "t" stored f16 : tensor<20x8xf32>
  batten.weight @unused from "u" : tensor<20x8xf32>
  batten.graph @ready(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) attributes {stage = @text} {
    %t = batten.param @t : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    batten.return %x : tensor<?x8xf32, #tokens>
  }
}
