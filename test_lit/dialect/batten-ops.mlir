// RUN: batten-opt %s | batten-opt | FileCheck %s
// Every op of the batten dialect prints and parses: one graph per op, in the order of the .td files.

#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
#markers = #batten.rows<markers>

// CHECK-DAG: #tokens = #batten.rows<tokens>
// CHECK-DAG: #seqs = #batten.rows<seqs>
// CHECK-DAG: #markers = #batten.rows<markers>
// CHECK: module attributes {batten.version = 1 : i32}
module attributes {batten.version = 1 : i32} {
  // A stage is a list of buckets.
  // CHECK: batten.stage @text {{\[\[}}32, 8, 0], [128, 32, 4]]
  batten.stage @text [[32, 8, 0], [128, 32, 4]]

  // A weight may say its directory, its dimensions' config keys and what it is stored as.
  // CHECK: batten.weight @w from "w" : tensor<8x8xf32>
  // CHECK: batten.weight @table from "t" in "2_Dense" dims ["vocab_size", "hidden_size"] stored f16 : tensor<20x8xf32>
  // CHECK: batten.weight @v from "v" : tensor<8xf32>
  // CHECK: batten.weight @half from "half" : tensor<8x8xbf16>
  batten.weight @w from "w" : tensor<8x8xf32>
  batten.weight @table from "t" in "2_Dense" dims ["vocab_size", "hidden_size"] stored f16 : tensor<20x8xf32>
  batten.weight @v from "v" : tensor<8xf32>
  batten.weight @half from "half" : tensor<8x8xbf16>

  // A stored tensor has any element type and any constant shape.
  // CHECK: batten.stored "position_ids" in "" file "model.safetensors" : tensor<1x512xi64>
  // CHECK: batten.stored "scalar" in "1_Dense" file "model.safetensors" : tensor<f64>
  batten.stored "position_ids" in "" file "model.safetensors" : tensor<1x512xi64>
  batten.stored "scalar" in "1_Dense" file "model.safetensors" : tensor<f64>

  // A graph has named results, and a stage when its lane is known; names that are no identifiers are quoted.
  // CHECK-LABEL: batten.graph @graph
  // CHECK-SAME: (%{{.*}}: !batten.ids, %[[SEG:.*]]: !batten.segments) -> (hidden: tensor<?x8xf32, #tokens>, "a b": tensor<?x8xf32, #tokens>) attributes {stage = @text} {
  // CHECK: batten.return %{{.*}}, %{{.*}} : tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>
  batten.graph @graph(%ids: !batten.ids, %seg: !batten.segments)
      -> (hidden: tensor<?x8xf32, #tokens>, "a b": tensor<?x8xf32, #tokens>) attributes {stage = @text} {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    batten.return %x, %x : tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>
  }

  // CHECK-LABEL: batten.graph @param
  // CHECK: batten.param @table : tensor<20x8xf32>
  batten.graph @param(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    batten.return %x : tensor<?x8xf32, #tokens>
  }

  // Weight expressions: concat of matrices and of vectors, scale, transpose, cast.
  // CHECK-LABEL: batten.graph @weight_expressions
  // CHECK: %[[W:.*]] = batten.param @w
  // CHECK: batten.concat %[[W]], %[[W]] : tensor<8x8xf32>, tensor<8x8xf32>
  // CHECK: batten.concat %[[V:.*]], %[[V]] : tensor<8xf32>, tensor<8xf32>
  // CHECK: batten.scale %{{.*}} by 5.000000e-01 : tensor<16x8xf32>
  // CHECK: batten.transpose %[[W]] : tensor<8x8xf32>
  // CHECK: batten.cast %{{.*}} : tensor<8x8xbf16> to tensor<8x8xf32>
  batten.graph @weight_expressions(%ids: !batten.ids) -> (x: tensor<?x16xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %w = batten.param @w : tensor<8x8xf32>
    %v = batten.param @v : tensor<8xf32>
    %c = batten.concat %w, %w : tensor<8x8xf32>, tensor<8x8xf32>
    %b = batten.concat %v, %v : tensor<8xf32>, tensor<8xf32>
    %s = batten.scale %c by 0.5 : tensor<16x8xf32>
    %tr = batten.transpose %w : tensor<8x8xf32>
    %half = batten.param @half : tensor<8x8xbf16>
    %cast = batten.cast %half : tensor<8x8xbf16> to tensor<8x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %y = batten.linear %x, %s bias(%b : tensor<16xf32>) : tensor<?x8xf32, #tokens>, tensor<16x8xf32>
    batten.return %y : tensor<?x16xf32, #tokens>
  }

  // CHECK-LABEL: batten.graph @embed
  // CHECK: batten.embed %{{.*}}, %{{.*}} : tensor<20x8xf32>
  batten.graph @embed(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    batten.return %x : tensor<?x8xf32, #tokens>
  }

  // CHECK-LABEL: batten.graph @embed_types
  // CHECK: batten.embed_types %{{.*}}, %{{.*}} : tensor<20x8xf32>
  batten.graph @embed_types(%types: !batten.types) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed_types %types, %t : tensor<20x8xf32>
    batten.return %x : tensor<?x8xf32, #tokens>
  }

  // An offset of 0 is not printed.
  // CHECK-LABEL: batten.graph @embed_positions
  // CHECK: batten.embed_positions %[[SEG:.*]], %[[T:.*]] : tensor<20x8xf32>
  // CHECK: batten.embed_positions %[[SEG]], %[[T]] {offset = 2 : i64} : tensor<20x8xf32>
  batten.graph @embed_positions(%seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed_positions %seg, %t {offset = 0 : i64} : tensor<20x8xf32>
    %y = batten.embed_positions %seg, %t {offset = 2 : i64} : tensor<20x8xf32>
    batten.return %y : tensor<?x8xf32, #tokens>
  }

  // CHECK-LABEL: batten.graph @embed_sum
  // CHECK: batten.embed_sum words(%{{.*}}, %[[T:.*]] : tensor<20x8xf32>) types(%{{.*}}, %[[T]] : tensor<20x8xf32>) positions(%{{.*}}, %[[T]] : tensor<20x8xf32>) {offset = 2 : i64}
  batten.graph @embed_sum(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments)
      -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed_sum words(%ids, %t : tensor<20x8xf32>) types(%types, %t : tensor<20x8xf32>)
        positions(%seg, %t : tensor<20x8xf32>) {offset = 2 : i64}
    batten.return %x : tensor<?x8xf32, #tokens>
  }

  // CHECK-LABEL: batten.graph @add_type
  // CHECK: batten.add_type %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x8xf32, #tokens>, tensor<20x8xf32>
  batten.graph @add_type(%ids: !batten.ids, %kinds: !batten.seq_types) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.add_type %x, %kinds, %t : tensor<?x8xf32, #tokens>, tensor<20x8xf32>
    batten.return %0 : tensor<?x8xf32, #tokens>
  }

  // Weight and bias are optional, each alone too.
  // CHECK-LABEL: batten.graph @layer_norm
  // CHECK: batten.layer_norm %{{.*}} weight(%[[V:.*]] : tensor<8xf32>) bias(%[[V]] : tensor<8xf32>) eps 9.99999996E-13 : tensor<?x8xf32, #tokens>
  // CHECK: batten.layer_norm %{{.*}} bias(%[[V]] : tensor<8xf32>) eps
  // CHECK: batten.layer_norm %{{.*}} eps
  batten.graph @layer_norm(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %v = batten.param @v : tensor<8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.layer_norm %x weight(%v : tensor<8xf32>) bias(%v : tensor<8xf32>) eps 1.0e-12 : tensor<?x8xf32, #tokens>
    %1 = batten.layer_norm %0 bias(%v : tensor<8xf32>) eps 1.0e-12 : tensor<?x8xf32, #tokens>
    %2 = batten.layer_norm %1 eps 1.0e-12 : tensor<?x8xf32, #tokens>
    batten.return %2 : tensor<?x8xf32, #tokens>
  }

  // The weight is optional.
  // CHECK-LABEL: batten.graph @rms_norm
  // CHECK: batten.rms_norm %{{.*}} weight(%{{.*}} : tensor<8xf32>) eps 9.99999997E-7 : tensor<?x8xf32, #tokens>
  // CHECK: batten.rms_norm %{{[^ ]*}} eps
  batten.graph @rms_norm(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %v = batten.param @v : tensor<8xf32>
    %0 = batten.rms_norm %x weight(%v : tensor<8xf32>) eps 1.0e-6 : tensor<?x8xf32, #tokens>
    %1 = batten.rms_norm %0 eps 1.0e-6 : tensor<?x8xf32, #tokens>
    batten.return %1 : tensor<?x8xf32, #tokens>
  }

  // Activation none is not printed.
  // CHECK-LABEL: batten.graph @linear
  // CHECK: %[[A:.*]] = batten.linear %[[X:.*]], %[[W:.*]] : tensor<?x8xf32, #tokens>, tensor<8x8xf32>
  // CHECK: batten.linear %[[A]], %[[W]] bias(%{{.*}} : tensor<8xf32>) act gelu_tanh residual(%[[X]] : tensor<?x8xf32, #tokens>) : tensor<?x8xf32, #tokens>, tensor<8x8xf32>
  batten.graph @linear(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %w = batten.param @w : tensor<8x8xf32>
    %v = batten.param @v : tensor<8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.linear %x, %w act none : tensor<?x8xf32, #tokens>, tensor<8x8xf32>
    %1 = batten.linear %0, %w bias(%v : tensor<8xf32>) act gelu_tanh residual(%x : tensor<?x8xf32, #tokens>)
        : tensor<?x8xf32, #tokens>, tensor<8x8xf32>
    batten.return %1 : tensor<?x8xf32, #tokens>
  }

  // CHECK-LABEL: batten.graph @attention
  // CHECK: batten.attention %{{.*}}, %{{.*}} heads 2 head_width 4 scale 5.000000e-01 : tensor<?x24xf32, #tokens>
  // CHECK: batten.attention %{{.*}}, %{{.*}} heads 2 head_width 4 window 0 scale 5.000000e-01 : tensor<?x24xf32, #tokens>
  // CHECK: batten.attention %{{.*}}, %{{.*}} heads 4 kv_heads 2 head_width 3 window 64 scale 5.000000e-01 : tensor<?x24xf32, #tokens>
  batten.graph @attention(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %qkv = batten.concat_cols %x, %x, %x : tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>
    %a = batten.attention %qkv, %seg heads 2 head_width 4 scale 0.5 : tensor<?x24xf32, #tokens>
    %b = batten.attention %qkv, %seg heads 2 head_width 4 window 0 scale 0.5 : tensor<?x24xf32, #tokens>
    %c = batten.attention %qkv, %seg heads 4 kv_heads 2 head_width 3 window 64 scale 0.5 : tensor<?x24xf32, #tokens>
    batten.return %a : tensor<?x8xf32, #tokens>
  }

  // As many heads of keys and values as of queries, or fewer.
  // CHECK-LABEL: batten.graph @rope
  // CHECK: batten.rope %{{.*}}, %{{.*}} heads 1 head_width 2 theta 1.600000e+05 : tensor<?x6xf32, #tokens>
  // CHECK: batten.rope %{{.*}}, %{{.*}} heads 2 kv_heads 1 head_width 2 theta 3.000000e+02 divisor 1.500000e+00 : tensor<?x8xf32, #tokens>
  batten.graph @rope(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.slice %x begin 0 width 6 : tensor<?x8xf32, #tokens>
    %1 = batten.rope %0, %seg heads 1 head_width 2 theta 160000.0 : tensor<?x6xf32, #tokens>
    %2 = batten.rope %x, %seg heads 2 kv_heads 1 head_width 2 theta 300.0 divisor 1.5 : tensor<?x8xf32, #tokens>
    batten.return %2 : tensor<?x8xf32, #tokens>
  }

  // The word after the function says which half goes through it.
  // CHECK-LABEL: batten.graph @gated
  // CHECK: batten.gated gelu_erf first %{{.*}} : tensor<?x8xf32, #tokens>
  // CHECK: batten.gated silu second %{{.*}} : tensor<?x8xf32, #tokens>
  batten.graph @gated(%ids: !batten.ids) -> (x: tensor<?x4xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.gated gelu_erf first %x : tensor<?x8xf32, #tokens>
    %1 = batten.gated silu second %x : tensor<?x8xf32, #tokens>
    batten.return %1 : tensor<?x4xf32, #tokens>
  }

  // CHECK-LABEL: batten.graph @activation
  // CHECK: batten.activation gelu_erf
  // CHECK: batten.activation gelu_tanh
  // CHECK: batten.activation relu
  // CHECK: batten.activation silu
  // CHECK: batten.activation tanh
  // CHECK: batten.activation sigmoid %{{.*}} : tensor<?x8xf32, #tokens>
  batten.graph @activation(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.activation gelu_erf %x : tensor<?x8xf32, #tokens>
    %1 = batten.activation gelu_tanh %0 : tensor<?x8xf32, #tokens>
    %2 = batten.activation relu %1 : tensor<?x8xf32, #tokens>
    %3 = batten.activation silu %2 : tensor<?x8xf32, #tokens>
    %4 = batten.activation tanh %3 : tensor<?x8xf32, #tokens>
    %5 = batten.activation sigmoid %4 : tensor<?x8xf32, #tokens>
    batten.return %5 : tensor<?x8xf32, #tokens>
  }

  // CHECK-LABEL: batten.graph @add
  // CHECK: batten.add %[[X:.*]], %[[X]] : tensor<?x8xf32, #tokens>
  batten.graph @add(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.add %x, %x : tensor<?x8xf32, #tokens>
    batten.return %0 : tensor<?x8xf32, #tokens>
  }

  // A pool makes rows per sequence of rows per token.
  // CHECK-LABEL: batten.graph @pool
  // CHECK: batten.pool cls
  // CHECK: batten.pool last
  // CHECK: batten.pool mean
  // CHECK: batten.pool mean_sqrt_len
  // CHECK: batten.pool max %{{.*}}, %{{.*}} : tensor<?x8xf32, #tokens>
  batten.graph @pool(%ids: !batten.ids, %seg: !batten.segments) -> (x: tensor<?x8xf32, #seqs>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.pool cls %x, %seg : tensor<?x8xf32, #tokens>
    %1 = batten.pool last %x, %seg : tensor<?x8xf32, #tokens>
    %2 = batten.pool mean %x, %seg : tensor<?x8xf32, #tokens>
    %3 = batten.pool mean_sqrt_len %x, %seg : tensor<?x8xf32, #tokens>
    %4 = batten.pool max %x, %seg : tensor<?x8xf32, #tokens>
    batten.return %4 : tensor<?x8xf32, #seqs>
  }

  // CHECK-LABEL: batten.graph @l2_normalize
  // CHECK: batten.l2_normalize %{{.*}} eps 9.99999996E-13 : tensor<?x8xf32, #tokens>
  batten.graph @l2_normalize(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.l2_normalize %x eps 1.0e-12 : tensor<?x8xf32, #tokens>
    batten.return %0 : tensor<?x8xf32, #tokens>
  }

  // CHECK-LABEL: batten.graph @slice
  // CHECK: batten.slice %{{.*}} begin 2 width 6 : tensor<?x8xf32, #tokens>
  batten.graph @slice(%ids: !batten.ids) -> (x: tensor<?x6xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.slice %x begin 2 width 6 : tensor<?x8xf32, #tokens>
    batten.return %0 : tensor<?x6xf32, #tokens>
  }

  // CHECK-LABEL: batten.graph @concat_cols
  // CHECK: batten.concat_cols %{{.*}}, %{{.*}} : tensor<?x8xf32, #tokens>, tensor<?x6xf32, #tokens>
  batten.graph @concat_cols(%ids: !batten.ids) -> (x: tensor<?x14xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.slice %x begin 2 width 6 : tensor<?x8xf32, #tokens>
    %1 = batten.concat_cols %x, %0 : tensor<?x8xf32, #tokens>, tensor<?x6xf32, #tokens>
    batten.return %1 : tensor<?x14xf32, #tokens>
  }

  // CHECK-LABEL: batten.graph @softmax
  // CHECK: batten.softmax %{{.*}} : tensor<?x8xf32, #tokens>
  batten.graph @softmax(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.softmax %x : tensor<?x8xf32, #tokens>
    batten.return %0 : tensor<?x8xf32, #tokens>
  }

  // Rows per marker, and of them rows per sequence, 4 wider than those per token.
  // CHECK-LABEL: batten.graph @markers
  // CHECK: batten.gather_markers %[[X:.*]], %[[SEG:.*]] : tensor<?x8xf32, #tokens>
  // CHECK: batten.slice %{{.*}} begin 0 width 1 : tensor<?x8xf32, #markers>
  // CHECK: batten.decision_features %[[X]], %{{.*}}, %[[SEG]] : tensor<?x8xf32, #tokens>, tensor<?x1xf32, #markers>
  // CHECK: batten.return %{{.*}}, %{{.*}} : tensor<?x1xf32, #markers>, tensor<?x12xf32, #seqs>
  batten.graph @markers(%ids: !batten.ids, %seg: !batten.segments)
      -> (logits: tensor<?x1xf32, #markers>, features: tensor<?x12xf32, #seqs>) {
    %t = batten.param @table : tensor<20x8xf32>
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %m = batten.gather_markers %x, %seg : tensor<?x8xf32, #tokens>
    %l = batten.slice %m begin 0 width 1 : tensor<?x8xf32, #markers>
    %f = batten.decision_features %x, %l, %seg : tensor<?x8xf32, #tokens>, tensor<?x1xf32, #markers>
    batten.return %l, %f : tensor<?x1xf32, #markers>, tensor<?x12xf32, #seqs>
  }
}
