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

// -----

#tokens = #batten.rows<tokens>
batten.stage @text [[32, 8, 0]]
batten.weight @t from "t" : tensor<20x16777217xf32>
// Rows are no wider than a plan can say.
batten.graph @wide(%ids: !batten.ids) -> (x: tensor<?x16777217xf32, #tokens>) attributes {stage = @text} {
  %t = batten.param @t : tensor<20x16777217xf32>
  // expected-error @+1 {{a buffer's width must be from 1 to 16777216, found 16777217}}
  %x = batten.embed %ids, %t : tensor<20x16777217xf32>
  batten.return %x : tensor<?x16777217xf32, #tokens>
}

// -----

#tokens = #batten.rows<tokens>
batten.stage @text [[32, 8, 0]]
batten.weight @t from "t" : tensor<3000000000x8xf32>
// So it is with weights.
batten.graph @long(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) attributes {stage = @text} {
  %t = batten.param @t : tensor<3000000000x8xf32>
  // expected-error @+1 {{a weight's sizes must be from 1 to 2147483647, found 3000000000 x 8}}
  %x = batten.embed %ids, %t : tensor<3000000000x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}
