// RUN: batten-opt %s --lower-to-plan --split-input-file | FileCheck %s

#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
!x = tensor<?x8xf32, #tokens>

// Weights are packed once per expression and layout, over both programs: a tensor keeps its name, an expression is named
// by the step that first wants it. Limits come from the tables: 20 ids, 4 types, 20 - 2 positions.
// CHECK-LABEL: module {
// CHECK: plan.packed @t.table @t : !plan.table<20x8xf32>
// CHECK: plan.packed @types.table @types : !plan.table<4x8xf32>
// CHECK: plan.packed @l0.qk.panels concat(@w, scale(@w, 5.000000e-01)) : !plan.panels<16x8xf32>
// CHECK: plan.packed @l0.qk.vector concat(@b, @b) : !plan.vector<16xf32>
// CHECK: plan.packed @w.panels @w : !plan.panels<8x8xf32>
// CHECK: plan.packed @transposed.panels transpose(@w) : !plan.panels<8x8xf32>
// CHECK-NOT: batten.graph
module {
  batten.stage @text [[32, 8, 0]]
  batten.weight @t from "t" : tensor<20x8xf32>
  batten.weight @types from "types" : tensor<4x8xf32>
  batten.weight @w from "w" : tensor<8x8xf32>
  batten.weight @b from "b" : tensor<8xf32>

  // CHECK: plan.program @embed stage(@text) attributes {id_count = 20 : i64, max_seq_tokens = 18 : i64, type_count = 4 : i64} {
  // CHECK: %[[T:.*]] = plan.weight @t.table
  // CHECK: %[[TT:.*]] = plan.weight @types.table
  // CHECK: %[[X:.*]] = plan.buffer : !plan.buf<tokens, 8 x f32>
  // CHECK: plan.step "embed_sum" {offset = 2 : i64, op = "embed", positions, types, width = 8 : i64, words} domain(rows) ins(%[[T]], %[[TT]], %[[T]] : {{.*}}) outs(%[[X]] : {{.*}}) {bytes_per_row = 128 : i64, flops_per_row = 16 : i64}
  // CHECK: %[[W:.*]] = plan.weight @l0.qk.panels
  // CHECK: %[[B:.*]] = plan.weight @l0.qk.vector
  // CHECK: %[[Q:.*]] = plan.buffer : !plan.buf<tokens, 16 x f32>
  // CHECK: plan.step "l0.qk" {act = "none", bias, k = 8 : i64, n = 16 : i64, op = "linear"} domain(panels) ins(%[[X]], %[[W]], %[[B]] : {{.*}}) outs(%[[Q]] : {{.*}}) {bytes_per_row = 96 : i64, flops_per_row = 272 : i64}
  // Two ops of one name get different labels.
  // CHECK: plan.step "l0.slice" {begin = 0 : i64, op = "slice", width = 8 : i64, width_in = 16 : i64}
  // CHECK: plan.step "l0.slice.2" {begin = 8 : i64, op = "slice", width = 8 : i64, width_in = 16 : i64}
  // What a kernel may overwrite comes last: the residual, b of add, x of layer_norm.
  // CHECK: plan.step "linear" {act = "none", k = 8 : i64, n = 8 : i64, op = "linear", residual} domain(panels) ins(%[[S0:.*]], %{{.*}}, %[[X]] : {{.*}}, {{.*}}, {{.*}}) outs(%[[L:.*]] : {{.*}}) {bytes_per_row = 96 : i64, flops_per_row = 136 : i64, overwrite}
  // CHECK: plan.step "add" {op = "add", width = 8 : i64} domain(rows) ins(%[[S1:.*]], %[[L]] : {{.*}}) outs(%[[A:.*]] : {{.*}}) {{{.*}}, overwrite}
  // CHECK: plan.step "layer_norm" {bias, eps = 9.99999996E-13 : f32, op = "layer_norm", width = 8 : i64} domain(rows) ins(%{{.*}}, %[[A]] : {{.*}}) outs(%[[N:.*]] : {{.*}}) {{{.*}}, overwrite}
  // CHECK: plan.output "hidden" %[[N]]
  batten.graph @embed(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (hidden: !x)
      attributes {stage = @text} {
    %t = batten.param @t : tensor<20x8xf32>
    %tt = batten.param @types : tensor<4x8xf32>
    %w = batten.param @w : tensor<8x8xf32>
    %b = batten.param @b : tensor<8xf32>
    %x = batten.embed_sum words(%ids, %t : tensor<20x8xf32>) types(%types, %tt : tensor<4x8xf32>)
        positions(%seg, %t : tensor<20x8xf32>) {offset = 2 : i64}
    %s = batten.scale %w by 0.5 : tensor<8x8xf32>
    %c = batten.concat %w, %s : tensor<8x8xf32>, tensor<8x8xf32>
    %cb = batten.concat %b, %b : tensor<8xf32>, tensor<8xf32>
    %q = batten.linear %x, %c bias(%cb : tensor<16xf32>) : !x, tensor<16x8xf32> loc("l0.qk")
    %s0 = batten.slice %q begin 0 width 8 : tensor<?x16xf32, #tokens> loc("l0.slice")
    %s1 = batten.slice %q begin 8 width 8 : tensor<?x16xf32, #tokens> loc("l0.slice")
    %l = batten.linear %s0, %w residual(%x : !x) : !x, tensor<8x8xf32>
    %a = batten.add %s1, %l : !x
    %n = batten.layer_norm %a bias(%b : tensor<8xf32>) eps 1.0e-12 : !x
    batten.return %n : !x
  }

  // CHECK: plan.program @pooled stage(@text) attributes {id_count = 20 : i64} {
  // CHECK: plan.weight @t.table
  // CHECK: plan.weight @w.panels
  // CHECK: plan.weight @transposed.panels
  // Attention works in tasks and counts pairs; the pool's rows are sequences.
  // CHECK: plan.step "attention" {head_width = 4 : i64, heads = 2 : i64, op = "attention", scale = 5.000000e-01 : f32} domain(tasks) {{.*}} {bytes_per_row = 128 : i64, flops_per_pair = 32 : i64, flops_per_row = 8 : i64}
  // Fewer heads of keys and values and a window are in the key; the pairs are those that the window leaves.
  // CHECK: plan.step "local" {head_width = 3 : i64, heads = 4 : i64, kv_heads = 2 : i64, op = "attention", scale = 5.000000e-01 : f32, window = 64 : i64} domain(tasks) {{.*}} {bytes_per_row = 144 : i64, flops_per_pair = 48 : i64, flops_per_row = 12 : i64}
  // CHECK: %[[P:.*]] = plan.buffer : !plan.buf<seqs, 8 x f32>
  // CHECK: plan.step "pool" {kind = "mean", op = "pool", width = 8 : i64} domain(rows) {{.*}} outs(%[[P]] : !plan.buf<seqs, 8 x f32>) {bytes_per_row = 64 : i64, flops_per_row = 8 : i64}
  // One value may be two outputs.
  // CHECK: plan.output "pooled" %[[P]]
  // CHECK: plan.output "again" %[[P]]
  batten.graph @pooled(%ids: !batten.ids, %seg: !batten.segments)
      -> (pooled: tensor<?x8xf32, #seqs>, again: tensor<?x8xf32, #seqs>) attributes {stage = @text} {
    %t = batten.param @t : tensor<20x8xf32>
    %w = batten.param @w : tensor<8x8xf32>
    %tr = batten.transpose %w : tensor<8x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.linear %x, %w : !x, tensor<8x8xf32>
    %1 = batten.linear %x, %tr : !x, tensor<8x8xf32> loc("transposed")
    %q = batten.concat_cols %x, %0, %1 : !x, !x, !x
    %a = batten.attention %q, %seg heads 2 head_width 4 scale 0.5 : tensor<?x24xf32, #tokens>
    %local = batten.attention %q, %seg heads 4 kv_heads 2 head_width 3 window 64 scale 0.5 : tensor<?x24xf32, #tokens> loc("local")
    %p = batten.pool mean %a, %seg : !x
    batten.return %p, %p : tensor<?x8xf32, #seqs>, tensor<?x8xf32, #seqs>
  }
}

// -----

// Names that are taken are left to their owners.
// CHECK: batten.stage @t.table
// CHECK: plan.packed @t.table.2 @t : !plan.table<20x8xf32>
#tokens = #batten.rows<tokens>
module {
  batten.stage @t.table [[32, 8, 0]]
  batten.weight @t from "t" : tensor<20x8xf32>
  batten.graph @embed(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) attributes {stage = @t.table} {
    %t = batten.param @t : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    batten.return %x : tensor<?x8xf32, #tokens>
  }
}

// -----

// One table of cosines and sines for each theta and head width, over all lanes, as long as the largest bucket of a lane that
// rotates: @wide's is no such lane. It goes in front of the rows.
// CHECK-LABEL: batten.stage @wide
// CHECK: plan.packed @rope.table rope(1.000000e+04) : !plan.table<64x2xf32>
// CHECK: plan.packed @rope.table.2 rope(3.000000e+02, 1.500000e+00) : !plan.table<64x2xf32>
// CHECK-NOT: plan.packed @rope
// CHECK: plan.program @a
// CHECK: %[[R:.*]] = plan.weight @rope.table : !plan.table<64x2xf32>
// CHECK: plan.step "rope" {head_width = 2 : i64, heads = 2 : i64, kv_heads = 1 : i64, op = "rope"} domain(rows) ins(%[[R]], %[[X:.*]] : !plan.table<64x2xf32>, !plan.buf<tokens, 8 x f32>) outs(%[[Y:.*]] : !plan.buf<tokens, 8 x f32>) {bytes_per_row = 64 : i64, flops_per_row = 18 : i64, overwrite}
// CHECK: %[[R2:.*]] = plan.weight @rope.table.2
// CHECK: plan.step "rope.2" {{.*}} ins(%[[R2]], %[[Y]] :
// A program reads a table once, however many steps do.
// CHECK-NOT: plan.weight @rope
// CHECK: plan.step "rope.3" {{.*}} ins(%[[R]], %{{.*}} :
// CHECK: plan.program @b
// CHECK: plan.weight @rope.table : !plan.table<64x2xf32>
#tokens = #batten.rows<tokens>
!x = tensor<?x8xf32, #tokens>
module {
  batten.stage @text [[32, 8, 0]]
  batten.stage @long [[16, 8, 0], [64, 8, 0]]
  batten.stage @wide [[4096, 8, 0]]
  batten.weight @t from "t" : tensor<20x8xf32>
  batten.graph @a(%ids: !batten.ids, %seg: !batten.segments) -> (x: !x) attributes {stage = @text} {
    %t = batten.param @t : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.rope %x, %seg heads 2 kv_heads 1 head_width 2 theta 10000.0 : !x
    %1 = batten.rope %0, %seg heads 2 kv_heads 1 head_width 2 theta 300.0 divisor 1.5 : !x
    %2 = batten.rope %1, %seg heads 2 kv_heads 1 head_width 2 theta 10000.0 : !x
    batten.return %2 : !x
  }
  batten.graph @b(%ids: !batten.ids, %seg: !batten.segments) -> (x: !x) attributes {stage = @long} {
    %t = batten.param @t : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.rope %x, %seg heads 2 kv_heads 1 head_width 2 theta 10000.0 : !x
    batten.return %0 : !x
  }
  batten.graph @c(%ids: !batten.ids) -> (x: !x) attributes {stage = @wide} {
    %t = batten.param @t : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    batten.return %x : !x
  }
}

// -----

// Reading markers and types of sequences is a program's limit; the decision lane has both, the other neither.
// CHECK: plan.packed @kinds.table @kinds : !plan.table<3x8xf32>
// CHECK: plan.program @decide stage(@text) attributes {id_count = 20 : i64, reads_markers, seq_type_count = 3 : i64} {
// CHECK: plan.step "rms_norm" {eps = 9.99999974E-6 : f32, op = "rms_norm", weight, width = 8 : i64} domain(rows) ins(%{{.*}}, %[[X0:.*]] : !plan.vector<8xf32>, {{.*}}) {{.*}} {bytes_per_row = 64 : i64, flops_per_row = 32 : i64, overwrite}
// CHECK: %[[K:.*]] = plan.weight @kinds.table
// CHECK: plan.step "add_type" {op = "add_type", width = 8 : i64} domain(rows) ins(%[[K]], %{{.*}} : !plan.table<3x8xf32>, {{.*}}) outs(%[[X:.*]] : {{.*}}) {bytes_per_row = 96 : i64, flops_per_row = 8 : i64, overwrite}
// CHECK: plan.step "gather_markers" {op = "gather_markers", width = 8 : i64} domain(rows) ins(%[[X]] : {{.*}}) outs(%[[M:.*]] : !plan.buf<markers, 8 x f32>) {bytes_per_row = 64 : i64}
// CHECK: plan.step "softmax" {op = "softmax", width = 8 : i64} domain(rows) ins(%[[M]] {{.*}}, overwrite}
// CHECK: plan.step "gated" {act = "silu", op = "gated", second, width = 4 : i64} domain(rows) {{.*}} outs(%{{.*}} : !plan.buf<markers, 4 x f32>) {bytes_per_row = 48 : i64, flops_per_row = 8 : i64}
// CHECK: plan.step "decision_features" {op = "decision_features", width = 8 : i64} domain(rows) ins(%[[X]], %{{.*}} : !plan.buf<tokens, 8 x f32>, !plan.buf<markers, 1 x f32>) outs(%{{.*}} : !plan.buf<seqs, 12 x f32>)
// CHECK: plan.program @encode stage(@text) attributes {id_count = 20 : i64} {
#tokens = #batten.rows<tokens>
#markers = #batten.rows<markers>
!x = tensor<?x8xf32, #tokens>
module {
  batten.stage @text [[32, 8, 0]]
  batten.weight @t from "t" : tensor<20x8xf32>
  batten.weight @kinds from "kinds" : tensor<3x8xf32>
  batten.weight @v from "v" : tensor<8xf32>
  batten.graph @decide(%ids: !batten.ids, %kinds: !batten.seq_types, %seg: !batten.segments)
      -> (features: tensor<?x12xf32, #batten.rows<seqs>>) attributes {stage = @text} {
    %t = batten.param @t : tensor<20x8xf32>
    %k = batten.param @kinds : tensor<3x8xf32>
    %v = batten.param @v : tensor<8xf32>
    %0 = batten.embed %ids, %t : tensor<20x8xf32>
    %1 = batten.rms_norm %0 weight(%v : tensor<8xf32>) eps 1.0e-5 : !x
    %x = batten.add_type %1, %kinds, %k : !x, tensor<3x8xf32>
    %m = batten.gather_markers %x, %seg : !x
    %s = batten.softmax %m : tensor<?x8xf32, #markers>
    %g = batten.gated silu second %s : tensor<?x8xf32, #markers>
    %l = batten.slice %g begin 0 width 1 : tensor<?x4xf32, #markers>
    %f = batten.decision_features %x, %l, %seg : !x, tensor<?x1xf32, #markers>
    batten.return %f : tensor<?x12xf32, #batten.rows<seqs>>
  }
  batten.graph @encode(%ids: !batten.ids) -> (x: !x) attributes {stage = @text} {
    %t = batten.param @t : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    batten.return %x : !x
  }
}

// -----

// Where a graph is right for shorter sequences only, that bounds them, or a table that is shorter still.
module {
  batten.stage @text [[32, 8, 0]]
  batten.weight @t from "t" : tensor<20x8xf32>
  // CHECK-LABEL: plan.program @rotary stage(@text) attributes {id_count = 20 : i64, max_seq_tokens = 64 : i64} {
  batten.graph @rotary(%ids: !batten.ids) -> (hidden: tensor<?x8xf32, #batten.rows<tokens>>)
      attributes {batten.max_seq_tokens = 64 : i64, stage = @text} {
    %t = batten.param @t : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    batten.return %x : tensor<?x8xf32, #batten.rows<tokens>>
  }
  // CHECK-LABEL: plan.program @table stage(@text) attributes {max_seq_tokens = 20 : i64} {
  batten.graph @table(%seg: !batten.segments) -> (hidden: tensor<?x8xf32, #batten.rows<tokens>>)
      attributes {batten.max_seq_tokens = 64 : i64, stage = @text} {
    %t = batten.param @t : tensor<20x8xf32>
    %x = batten.embed_positions %seg, %t : tensor<20x8xf32>
    batten.return %x : tensor<?x8xf32, #batten.rows<tokens>>
  }
}
