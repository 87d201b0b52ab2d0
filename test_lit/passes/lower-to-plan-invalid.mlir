// RUN: batten-opt %s --lower-to-plan --split-input-file --verify-diagnostics --allow-unregistered-dialect

#tokens = #batten.rows<tokens>
batten.weight @t from "t" : tensor<20x8xf32>
// A program needs its stage.
// expected-error @+1 {{has no stage: the program could not be placed}}
batten.graph @no_stage(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @t : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

#tokens = #batten.rows<tokens>
batten.stage @text [[32, 8, 0]]
// An op that is no kernel is an error where it stands.
batten.graph @leftover(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) attributes {stage = @text} {
  // expected-error @+1 {{'test.rope' op has no kernel and no place in a program}}
  %x = "test.rope"(%ids) : (!batten.ids) -> tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}
