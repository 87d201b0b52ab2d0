// RUN: batten-opt %s --batten-pipeline | FileCheck %s
// RUN: batten-opt %s --batten-graph --mlir-print-debuginfo | batten-opt --batten-plan | FileCheck %s
// RUN: batten-opt %s --batten-pipeline > %t.1 && batten-opt %s --batten-pipeline > %t.2 && cmp %t.1 %t.2

// A one-layer BERT as imported, all the way to its plan: 24 ops become 10 steps on 5 buffers, 6 of them in place.

// What the checkpoint has and nothing wants is named, weights are bound.
// CHECK: module attributes {batten.math = "f32", batten.unused = ["position_ids"], batten.version = 1 : i32, batten.weights = "f32"}
// CHECK-NOT: batten.stored
// CHECK: batten.weight @word from "word" dims ["vocab_size", "hidden_size"] stored f16 : tensor<100x32xf32>

// q, k and v are one weight.
// CHECK: plan.packed @l0.qkv.panels concat(@q.w, @k.w, @v.w) : !plan.panels<96x32xf32>
// CHECK: plan.packed @l0.qkv.vector concat(@q.b, @k.b, @v.b) : !plan.vector<96xf32>

// CHECK: plan.kernel @embed_32_f32_wtp embed {offset = 0 : i64, positions, types, width = 32 : i64, words}
// CHECK: plan.kernel @"layer_norm_32_f32_wb_e1e-12" layer_norm {{.*}} overwrite
// CHECK: plan.kernel @linear_32x96_f32_bias linear
// CHECK: plan.kernel @attention_2x16_f32_s0.25 attention
// CHECK: plan.kernel @linear_32x32_f32_bias_res linear {{.*}} overwrite
// CHECK: plan.kernel @linear_32x128_f32_bias_gelu_erf linear
// CHECK: plan.kernel @linear_128x32_f32_bias_res linear {{.*}} overwrite
// CHECK: plan.kernel @pool_mean_32_f32 pool
// CHECK: plan.kernel @"l2_normalize_32_f32_e1e-12" l2_normalize {{.*}} overwrite
// CHECK-NOT: plan.kernel

// CHECK: plan.program @embed stage(@text) attributes {id_count = 100 : i64, max_seq_tokens = 64 : i64, type_count = 2 : i64} {
// CHECK: %[[X:.*]] = plan.buffer : !plan.buf<tokens, 32 x f32>
// CHECK: plan.step "embed" @embed_32_f32_wtp domain(rows) {{.*}} outs(%[[X]] :
// CHECK: plan.step "embed.norm" @"layer_norm_32_f32_wb_e1e-12" domain(rows) {{.*}} inout(%[[X]] :
// CHECK: %[[QKV:.*]] = plan.buffer : !plan.buf<tokens, 96 x f32>
// CHECK: plan.step "l0.qkv" @linear_32x96_f32_bias domain(panels) ins(%[[X]], {{.*}}) outs(%[[QKV]] :
// CHECK: %[[A:.*]] = plan.buffer : !plan.buf<tokens, 32 x f32>
// CHECK: plan.step "l0.attention" @attention_2x16_f32_s0.25 domain(tasks) ins(%[[QKV]] : {{.*}}) outs(%[[A]] :
// The residual stream stays where it is.
// CHECK: plan.step "l0.o" @linear_32x32_f32_bias_res domain(panels) ins(%[[A]], {{.*}}) inout(%[[X]] :
// CHECK: plan.step "l0.attention.norm" {{.*}} inout(%[[X]] :
// CHECK: %[[U:.*]] = plan.buffer : !plan.buf<tokens, 128 x f32>
// CHECK: plan.step "l0.up" @linear_32x128_f32_bias_gelu_erf domain(panels) ins(%[[X]], {{.*}}) outs(%[[U]] :
// CHECK: plan.step "l0.down" @linear_128x32_f32_bias_res domain(panels) ins(%[[U]], {{.*}}) inout(%[[X]] :
// CHECK: plan.step "layer_norm" {{.*}} inout(%[[X]] :
// CHECK: %[[P:.*]] = plan.buffer : !plan.buf<seqs, 32 x f32>
// CHECK: plan.step "pool" @pool_mean_32_f32 domain(rows) ins(%[[X]] : {{.*}}) outs(%[[P]] :
// CHECK: plan.step "l2_normalize" {{.*}} inout(%[[P]] :
// CHECK: plan.output "embedding" %[[P]]
// x 4096 and u 16384 bytes are what is live at l0.up: the bound is met in both buckets.
// CHECK: plan.layout @b32x8x0 bucket [32, 8, 0] offsets [16384, 0, 12288, 0, 0] {arena = 20480 : i64, lower_bound = 20480 : i64, scratch = {{[0-9]+}} : i64}
// CHECK: plan.layout @b512x128x0 bucket [512, 128, 0] offsets [262144, 0, 196608, 0, 0] {arena = 327680 : i64, lower_bound = 327680 : i64, scratch = {{[0-9]+}} : i64}

#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
!h = tensor<?x32xf32, #tokens>
module attributes {batten.version = 1 : i32} {
  batten.stage @text [[32, 8, 0], [512, 128, 0]]
  batten.stored "word" in "" file "model.safetensors" : tensor<100x32xf16>
  batten.stored "type" in "" file "model.safetensors" : tensor<2x32xf32>
  batten.stored "pos" in "" file "model.safetensors" : tensor<64x32xf32>
  batten.stored "position_ids" in "" file "model.safetensors" : tensor<1x64xi64>
  batten.stored "sq" in "" file "model.safetensors" : tensor<32x32xf32>
  batten.stored "v" in "" file "model.safetensors" : tensor<32xf32>
  batten.stored "up" in "" file "model.safetensors" : tensor<128x32xf32>
  batten.stored "upb" in "" file "model.safetensors" : tensor<128xf32>
  batten.stored "down" in "" file "model.safetensors" : tensor<32x128xf32>
  batten.weight @word from "word" dims ["vocab_size", "hidden_size"] : tensor<100x32xf32>
  batten.weight @type from "type" : tensor<2x32xf32>
  batten.weight @pos from "pos" : tensor<64x32xf32>
  batten.weight @q.w from "sq" : tensor<32x32xf32>
  batten.weight @k.w from "sq" : tensor<32x32xf32>
  batten.weight @v.w from "sq" : tensor<32x32xf32>
  batten.weight @q.b from "v" : tensor<32xf32>
  batten.weight @k.b from "v" : tensor<32xf32>
  batten.weight @v.b from "v" : tensor<32xf32>
  batten.weight @o.w from "sq" : tensor<32x32xf32>
  batten.weight @o.b from "v" : tensor<32xf32>
  batten.weight @up.w from "up" : tensor<128x32xf32>
  batten.weight @up.b from "upb" : tensor<128xf32>
  batten.weight @down.w from "down" : tensor<32x128xf32>
  batten.graph @embed(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (embedding: tensor<?x32xf32, #seqs>) attributes {stage = @text} {
    %t0 = batten.param @word : tensor<100x32xf32>
    %t1 = batten.param @type : tensor<2x32xf32>
    %t2 = batten.param @pos : tensor<64x32xf32>
    %qw = batten.param @q.w : tensor<32x32xf32>
    %kw = batten.param @k.w : tensor<32x32xf32>
    %vw = batten.param @v.w : tensor<32x32xf32>
    %qb = batten.param @q.b : tensor<32xf32>
    %kb = batten.param @k.b : tensor<32xf32>
    %vb = batten.param @v.b : tensor<32xf32>
    %ow = batten.param @o.w : tensor<32x32xf32>
    %ob = batten.param @o.b : tensor<32xf32>
    %uw = batten.param @up.w : tensor<128x32xf32>
    %ub = batten.param @up.b : tensor<128xf32>
    %dw = batten.param @down.w : tensor<32x128xf32>
    %e0 = batten.embed %ids, %t0 : tensor<100x32xf32>
    %e1 = batten.embed_types %types, %t1 : tensor<2x32xf32>
    %e2 = batten.embed_positions %seg, %t2 : tensor<64x32xf32>
    %e3 = batten.add %e0, %e1 : !h
    %e4 = batten.add %e3, %e2 : !h loc("embed")
    %x = batten.layer_norm %e4 weight(%ob : tensor<32xf32>) bias(%qb : tensor<32xf32>) eps 1.0e-12 : !h loc("embed.norm")
    %q = batten.linear %x, %qw bias(%qb : tensor<32xf32>) : !h, tensor<32x32xf32>
    %k = batten.linear %x, %kw bias(%kb : tensor<32xf32>) : !h, tensor<32x32xf32>
    %v = batten.linear %x, %vw bias(%vb : tensor<32xf32>) : !h, tensor<32x32xf32>
    %qkv = batten.concat_cols %q, %k, %v : !h, !h, !h loc("l0.qkv")
    %a = batten.attention %qkv, %seg heads 2 head_width 16 scale 0.25 : tensor<?x96xf32, #tokens> loc("l0.attention")
    %o = batten.linear %a, %ow bias(%ob : tensor<32xf32>) : !h, tensor<32x32xf32> loc("l0.o")
    %r = batten.add %o, %x : !h
    %n = batten.layer_norm %r weight(%ob : tensor<32xf32>) bias(%qb : tensor<32xf32>) eps 1.0e-12 : !h loc("l0.attention.norm")
    %u = batten.linear %n, %uw bias(%ub : tensor<128xf32>) : !h, tensor<128x32xf32> loc("l0.up")
    %g = batten.activation gelu_erf %u : tensor<?x128xf32, #tokens>
    %d = batten.linear %g, %dw bias(%ob : tensor<32xf32>) : tensor<?x128xf32, #tokens>, tensor<32x128xf32> loc("l0.down")
    %r2 = batten.add %d, %n : !h
    %n2 = batten.layer_norm %r2 weight(%ob : tensor<32xf32>) bias(%qb : tensor<32xf32>) eps 1.0e-12 : !h
    %p = batten.pool mean %n2, %seg : !h
    %l = batten.l2_normalize %p eps 1.0e-12 : tensor<?x32xf32, #seqs>
    batten.return %l : tensor<?x32xf32, #seqs>
  }
}
