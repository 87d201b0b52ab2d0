// RUN: batten-translate --plan-to-bytes %s -o %t.plan
// RUN: batten-translate --bytes-to-plan %t.plan -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --match-full-lines --strict-whitespace
// RUN: batten-translate --plan-to-bytes %t.mlir | cmp - %t.plan
// RUN: batten-opt %t.mlir --serialize

// A plan's text comes back from its bytes word for word, and gives the same bytes again. Every kind of operand, access,
// layout of weights and work domain but `one` is in it.
//CHECK:module {
//CHECK-NEXT:  plan.packed @word.table : !plan.table<100x32xf32> {bytes = 12800 : i64, offset = 4096 : i64}
//CHECK-NEXT:  plan.packed @qkv.panels : !plan.panels<96x32xf32> {bytes = 12288 : i64, offset = 4096 : i64}
//CHECK-NEXT:  plan.packed @qkv.vector : !plan.vector<96xf32> {bytes = 384 : i64, offset = 16896 : i64}
//CHECK-NEXT:  plan.kernel @embed_32_f32_w embed {offset = 0 : i64, width = 32 : i64, words} {entry = 4096 : i64, entry_bytes = 320 : i64}
//CHECK-NEXT:  plan.kernel @"layer_norm_32_f32_e1e-12" layer_norm {eps = 9.99999996E-13 : f32, width = 32 : i64} overwrite {entry = 4416 : i64, entry_bytes = 640 : i64}
//CHECK-NEXT:  plan.kernel @linear_32x96_f32_bias linear {act = "none", bias, k = 32 : i64, n = 96 : i64} {entry = 5056 : i64, entry_bytes = 2048 : i64, slab_rows = 672 : i64}
//CHECK-NEXT:  plan.kernel @attention_2x16_f32_w64_s0.25 attention {head_width = 16 : i64, heads = 2 : i64, scale = 2.500000e-01 : f32, window = 64 : i64} {entry = 7104 : i64, entry_bytes = 4096 : i64}
//CHECK-NEXT:  plan.kernel @pool_mean_32_f32 pool {kind = "mean", width = 32 : i64} {entry = 11200 : i64, entry_bytes = 256 : i64}
//CHECK-NEXT:  plan.kernel @concat_cols_32_32_f32 concat_cols {widths = array<i64: 32, 32>} {entry = 11456 : i64, entry_bytes = 128 : i64}
//CHECK-NEXT:  plan.program @embed attributes {common_digest = "2222222222222222222222222222222222222222222222222222222222222222", image_digest = "1111111111111111111111111111111111111111111111111111111111111111", panels_digest = "3333333333333333333333333333333333333333333333333333333333333333", target = "x86-64-v3"} {
//CHECK-NEXT:    %0 = plan.buffer : !plan.buf<tokens, 32 x f32>
//CHECK-NEXT:    %1 = plan.buffer : !plan.buf<tokens, 96 x f32>
//CHECK-NEXT:    %2 = plan.buffer : !plan.buf<tokens, 32 x f32>
//CHECK-NEXT:    %3 = plan.buffer : !plan.buf<seqs, 32 x f32>
//CHECK-NEXT:    %4 = plan.buffer : !plan.buf<seqs, 64 x f32>
//CHECK-NEXT:    %5 = plan.weight @word.table : !plan.table<100x32xf32>
//CHECK-NEXT:    %6 = plan.weight @qkv.panels : !plan.panels<96x32xf32>
//CHECK-NEXT:    %7 = plan.weight @qkv.vector : !plan.vector<96xf32>
//CHECK-NEXT:    plan.step "embed" @embed_32_f32_w domain(rows) ins(%5 : !plan.table<100x32xf32>) outs(%0 : !plan.buf<tokens, 32 x f32>) {bytes_per_row = 128 : i64}
//CHECK-NEXT:    plan.step "norm" @"layer_norm_32_f32_e1e-12" domain(rows) inout(%0 : !plan.buf<tokens, 32 x f32>) {bytes_per_row = 256 : i64, flops_per_row = 256 : i64}
//CHECK-NEXT:    plan.step "l0.qkv" @linear_32x96_f32_bias domain(panels) ins(%0, %6, %7 : !plan.buf<tokens, 32 x f32>, !plan.panels<96x32xf32>, !plan.vector<96xf32>) outs(%1 : !plan.buf<tokens, 96 x f32>) {bytes_per_row = 512 : i64, flops_per_row = 6144 : i64}
//CHECK-NEXT:    plan.step "l0.attention" @attention_2x16_f32_w64_s0.25 domain(tasks) ins(%1 : !plan.buf<tokens, 96 x f32>) outs(%2 : !plan.buf<tokens, 32 x f32>) {bytes_per_row = 512 : i64, flops_per_pair = 128 : i64}
//CHECK-NEXT:    plan.step "pool" @pool_mean_32_f32 domain(rows) ins(%2 : !plan.buf<tokens, 32 x f32>) outs(%3 : !plan.buf<seqs, 32 x f32>) {bytes_per_row = 256 : i64, flops_per_row = 32 : i64}
//CHECK-NEXT:    plan.step "twice" @concat_cols_32_32_f32 domain(rows) ins(%3, %3 : !plan.buf<seqs, 32 x f32>, !plan.buf<seqs, 32 x f32>) outs(%4 : !plan.buf<seqs, 64 x f32>) {bytes_per_row = 512 : i64}
//CHECK-NEXT:    plan.output "embedding" %4 : !plan.buf<seqs, 64 x f32>
//CHECK-NEXT:    plan.layout @b32x8x0 bucket [32, 8, 0] offsets [12288, 0, 12288, 0, 1024] {arena = 16384 : i64, lower_bound = 16384 : i64, scratch = 4096 : i64}
//CHECK-NEXT:  }
//CHECK-NEXT:}

module {
  plan.packed @word.table : !plan.table<100x32xf32> {bytes = 12800 : i64, offset = 4096 : i64}
  plan.packed @qkv.panels : !plan.panels<96x32xf32> {bytes = 12288 : i64, offset = 4096 : i64}
  plan.packed @qkv.vector : !plan.vector<96xf32> {bytes = 384 : i64, offset = 16896 : i64}
  plan.kernel @embed_32_f32_w embed {offset = 0 : i64, width = 32 : i64, words} {entry = 4096 : i64, entry_bytes = 320 : i64}
  plan.kernel @"layer_norm_32_f32_e1e-12" layer_norm {eps = 9.99999996E-13 : f32, width = 32 : i64} overwrite {entry = 4416 : i64, entry_bytes = 640 : i64}
  plan.kernel @linear_32x96_f32_bias linear {act = "none", bias, k = 32 : i64, n = 96 : i64} {entry = 5056 : i64, entry_bytes = 2048 : i64, slab_rows = 672 : i64}
  plan.kernel @attention_2x16_f32_w64_s0.25 attention {head_width = 16 : i64, heads = 2 : i64, scale = 2.500000e-01 : f32, window = 64 : i64} {entry = 7104 : i64, entry_bytes = 4096 : i64}
  plan.kernel @pool_mean_32_f32 pool {kind = "mean", width = 32 : i64} {entry = 11200 : i64, entry_bytes = 256 : i64}
  plan.kernel @concat_cols_32_32_f32 concat_cols {widths = array<i64: 32, 32>} {entry = 11456 : i64, entry_bytes = 128 : i64}
  plan.program @embed attributes {common_digest = "2222222222222222222222222222222222222222222222222222222222222222", image_digest = "1111111111111111111111111111111111111111111111111111111111111111", panels_digest = "3333333333333333333333333333333333333333333333333333333333333333", target = "x86-64-v3"} {
    %0 = plan.buffer : !plan.buf<tokens, 32 x f32>
    %1 = plan.buffer : !plan.buf<tokens, 96 x f32>
    %2 = plan.buffer : !plan.buf<tokens, 32 x f32>
    %3 = plan.buffer : !plan.buf<seqs, 32 x f32>
    %4 = plan.buffer : !plan.buf<seqs, 64 x f32>
    %5 = plan.weight @word.table : !plan.table<100x32xf32>
    %6 = plan.weight @qkv.panels : !plan.panels<96x32xf32>
    %7 = plan.weight @qkv.vector : !plan.vector<96xf32>
    plan.step "embed" @embed_32_f32_w domain(rows) ins(%5 : !plan.table<100x32xf32>) outs(%0 : !plan.buf<tokens, 32 x f32>) {bytes_per_row = 128 : i64}
    plan.step "norm" @"layer_norm_32_f32_e1e-12" domain(rows) inout(%0 : !plan.buf<tokens, 32 x f32>) {bytes_per_row = 256 : i64, flops_per_row = 256 : i64}
    plan.step "l0.qkv" @linear_32x96_f32_bias domain(panels) ins(%0, %6, %7 : !plan.buf<tokens, 32 x f32>, !plan.panels<96x32xf32>, !plan.vector<96xf32>) outs(%1 : !plan.buf<tokens, 96 x f32>) {bytes_per_row = 512 : i64, flops_per_row = 6144 : i64}
    plan.step "l0.attention" @attention_2x16_f32_w64_s0.25 domain(tasks) ins(%1 : !plan.buf<tokens, 96 x f32>) outs(%2 : !plan.buf<tokens, 32 x f32>) {bytes_per_row = 512 : i64, flops_per_pair = 128 : i64}
    plan.step "pool" @pool_mean_32_f32 domain(rows) ins(%2 : !plan.buf<tokens, 32 x f32>) outs(%3 : !plan.buf<seqs, 32 x f32>) {bytes_per_row = 256 : i64, flops_per_row = 32 : i64}
    plan.step "twice" @concat_cols_32_32_f32 domain(rows) ins(%3, %3 : !plan.buf<seqs, 32 x f32>, !plan.buf<seqs, 32 x f32>) outs(%4 : !plan.buf<seqs, 64 x f32>) {bytes_per_row = 512 : i64}
    plan.output "embedding" %4 : !plan.buf<seqs, 64 x f32>
    plan.layout @b32x8x0 bucket [32, 8, 0] offsets [12288, 0, 12288, 0, 1024] {arena = 16384 : i64, lower_bound = 16384 : i64, scratch = 4096 : i64}
  }
}
