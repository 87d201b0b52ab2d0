// RUN: batten-opt %s --split-input-file --verify-diagnostics
// What rope, gated, rms_norm, add_type and the ops on markers refuse: one case per diagnostic, named by its constraint.

// rope_c1.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @rope_c1(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{attribute 'heads' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 1}}
  %y = batten.rope %x, %seg heads 0 head_width 2 theta 100.0 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// rope_c1: heads that share keys and values evenly.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @rope_c1(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{3 heads are no multiple of 2 kv_heads}}
  %y = batten.rope %x, %seg heads 3 kv_heads 2 head_width 2 theta 100.0 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// rope_c2.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @rope_c2(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{rows are 8 wide, 2 heads of 2 with 2 for keys and values need 12}}
  %y = batten.rope %x, %seg heads 2 head_width 2 theta 100.0 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// rope_c3.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @rope_c3(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %y = batten.slice %x begin 0 width 3 : tensor<?x8xf32, #tokens>
  // expected-error @+1 {{head_width is 1, rotated pairs need an even one}}
  %z = batten.rope %y, %seg heads 1 head_width 1 theta 100.0 : tensor<?x3xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// rope_c4: zero.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @rope_c4(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{theta must be finite and above 0, found 0}}
  %y = batten.rope %x, %seg heads 2 kv_heads 1 head_width 2 theta 0.0 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// rope_c4: negative.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @rope_c4(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{theta must be finite and above 0, found -1.0}}
  %y = batten.rope %x, %seg heads 2 kv_heads 1 head_width 2 theta -10000.0 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// rope_c4: infinite.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @rope_c4(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{theta must be finite and above 0, found INF}}
  %y = batten.rope %x, %seg heads 2 kv_heads 1 head_width 2 theta 0x7F800000 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// rope_c4: no number.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @rope_c4(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{theta must be finite and above 0, found nan}}
  %y = batten.rope %x, %seg heads 2 kv_heads 1 head_width 2 theta 0x7FC00000 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// rope_c4: divisor.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @rope_c4(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{divisor must be finite and above 0, found 0}}
  %y = batten.rope %x, %seg heads 2 kv_heads 1 head_width 2 theta 2.0 divisor 0.0 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// gated_c1.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @gated_c1(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %y = batten.slice %x begin 0 width 7 : tensor<?x8xf32, #tokens>
  // expected-error @+1 {{'batten.gated' op takes rows of two halves, found a width of 7}}
  %z = batten.gated silu first %y : tensor<?x7xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// gated_c2.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @gated_c2(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{has no function: 'none'}}
  %y = batten.gated none first %x : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// rms_norm_c1: not f32.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @v from "v" : tensor<8xf16>
batten.graph @rms_norm_c1(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %v = batten.param @v : tensor<8xf16>
  // expected-error @+1 {{weight must be f32, found 'tensor<8xf16>'}}
  %y = batten.rms_norm %x weight(%v : tensor<8xf16>) eps 1.0e-5 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// rms_norm_c1: another width.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @v from "v" : tensor<9xf32>
batten.graph @rms_norm_c1(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %v = batten.param @v : tensor<9xf32>
  // expected-error @+1 {{weight has 9 elements, rows are 8 wide}}
  %y = batten.rms_norm %x weight(%v : tensor<9xf32>) eps 1.0e-5 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// rms_norm_c2.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @rms_norm_c2(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{eps must be finite and above 0, found 0}}
  %y = batten.rms_norm %x eps 0.0 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// add_type_c1.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @h from "h" : tensor<3x8xf16>
batten.graph @add_type_c1(%ids: !batten.ids, %kinds: !batten.seq_types) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %h = batten.param @h : tensor<3x8xf16>
  // expected-error @+1 {{table must be f32, found 'tensor<3x8xf16>'}}
  %y = batten.add_type %x, %kinds, %h : tensor<?x8xf32, #tokens>, tensor<3x8xf16>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// add_type_c2.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @h from "h" : tensor<3x9xf32>
batten.graph @add_type_c2(%ids: !batten.ids, %kinds: !batten.seq_types) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %h = batten.param @h : tensor<3x9xf32>
  // expected-error @+1 {{table is 9 wide, rows are 8}}
  %y = batten.add_type %x, %kinds, %h : tensor<?x8xf32, #tokens>, tensor<3x9xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// Markers are token rows.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @gather_markers(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %y = batten.pool cls %x, %seg : tensor<?x8xf32, #tokens>
  // expected-error @+1 {{operand #0 must be rows of f32, one per token}}
  %z = batten.gather_markers %y, %seg : tensor<?x8xf32, #batten.rows<seqs>>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// decision_features_c1.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @decision_features_c1(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %m = batten.gather_markers %x, %seg : tensor<?x8xf32, #tokens>
  // expected-error @+1 {{logits are 8 wide, one a marker wanted}}
  %y = batten.decision_features %x, %m, %seg : tensor<?x8xf32, #tokens>, tensor<?x8xf32, #batten.rows<markers>>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// Logits are per marker.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.graph @decision_features(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %l = batten.slice %x begin 0 width 1 : tensor<?x8xf32, #tokens>
  // expected-error @+1 {{operand #1 must be rows of f32, one per marker}}
  %y = batten.decision_features %x, %l, %seg : tensor<?x8xf32, #tokens>, tensor<?x1xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}
