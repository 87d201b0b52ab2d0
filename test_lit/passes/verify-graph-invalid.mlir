// RUN: batten-opt %s --verify-graph --split-input-file --verify-diagnostics

// Each pass of the graph phase leaves something that is missed when it has not run.
// expected-error @+1 {{batten.weights is not set: assign-precision has not run}}
module {
}

// -----

module attributes {batten.weights = "f32", batten.math = "f32"} {
  // expected-error @+1 {{is left: resolve-weights has not run}}
  batten.stored "a" in "" file "model.safetensors" : tensor<4xf32>
}

// -----

#tokens = #batten.rows<tokens>
module attributes {batten.weights = "f32", batten.math = "f32"} {
  batten.weight @t from "t" stored f16 : tensor<20x8xf32>
  // expected-error @+1 {{has no stage}}
  batten.graph @no_stage(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @t : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    batten.return %x : tensor<?x8xf32, #tokens>
  }
}

// -----

#tokens = #batten.rows<tokens>
module attributes {batten.weights = "f32", batten.math = "f32"} {
  batten.stage @text [[32, 8, 0]]
  batten.weight @t from "t" : tensor<20x8xf32>
  batten.graph @not_bound(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) attributes {stage = @text} {
    // expected-error @+1 {{reads @t, which is not bound to a stored tensor}}
    %t = batten.param @t : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    batten.return %x : tensor<?x8xf32, #tokens>
  }
}

// -----

#tokens = #batten.rows<tokens>
module attributes {batten.weights = "f32", batten.math = "f32"} {
  batten.stage @text [[32, 8, 0]]
  batten.weight @t from "t" stored f16 : tensor<20x8xf32>
  // expected-error @+1 {{has no output that depends on the token ids: a lane needs a batten.embed that is used}}
  batten.graph @no_ids(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) attributes {stage = @text} {
    %t = batten.param @t : tensor<20x8xf32>
    %x = batten.embed_positions %seg, %t : tensor<20x8xf32>
    batten.return %x : tensor<?x8xf32, #tokens>
  }
}
