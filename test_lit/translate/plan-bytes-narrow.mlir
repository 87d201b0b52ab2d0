// RUN: batten-translate --plan-to-bytes %s -o %t.plan
// RUN: batten-translate --bytes-to-plan %t.plan -o %t.mlir
// RUN: sed -n '/^module/,$p' %s | diff - %t.mlir
// RUN: batten-translate --plan-to-bytes %t.mlir | cmp - %t.plan

// Tables of 16 bits and dot panels of bf16 and i8 come back from their bytes word for word.
module {
  plan.packed @word.table : !plan.table<100x32xbf16> {bytes = 6400 : i64, offset = 4096 : i64}
  plan.packed @up.panels : !plan.dot_panels<32x32xi8> {bytes = 1280 : i64, offset = 4096 : i64}
  plan.packed @down.panels : !plan.dot_panels<32x32xbf16> {bytes = 2048 : i64, offset = 5376 : i64}
  plan.kernel @embed_32_bf16_w embed {offset = 0 : i64, storage = "bf16", width = 32 : i64, words} {entry = 4096 : i64, entry_bytes = 320 : i64}
  plan.kernel @linear_32x32_i8 linear {act = "none", k = 32 : i64, math = "i8", n = 32 : i64, storage = "i8"} {entry = 4416 : i64, entry_bytes = 640 : i64, slab_rows = 672 : i64}
  plan.kernel @linear_32x32_bf16 linear {act = "none", k = 32 : i64, math = "bf16", n = 32 : i64, storage = "bf16"} {entry = 5056 : i64, entry_bytes = 640 : i64, slab_rows = 672 : i64}
  plan.program @embed attributes {common_digest = "2222222222222222222222222222222222222222222222222222222222222222", image_digest = "1111111111111111111111111111111111111111111111111111111111111111", panels_digest = "3333333333333333333333333333333333333333333333333333333333333333", target = "x86-64-v4+avx512_bf16"} {
    %0 = plan.buffer : !plan.buf<tokens, 32 x f32>
    %1 = plan.buffer : !plan.buf<tokens, 32 x f32>
    %2 = plan.buffer : !plan.buf<tokens, 32 x f32>
    %3 = plan.weight @word.table : !plan.table<100x32xbf16>
    %4 = plan.weight @up.panels : !plan.dot_panels<32x32xi8>
    %5 = plan.weight @down.panels : !plan.dot_panels<32x32xbf16>
    plan.step "embed" @embed_32_bf16_w domain(rows) ins(%3 : !plan.table<100x32xbf16>) outs(%0 : !plan.buf<tokens, 32 x f32>) {bytes_per_row = 192 : i64}
    plan.step "up" @linear_32x32_i8 domain(panels) ins(%0, %4 : !plan.buf<tokens, 32 x f32>, !plan.dot_panels<32x32xi8>) outs(%1 : !plan.buf<tokens, 32 x f32>) {bytes_per_row = 256 : i64, flops_per_row = 2048 : i64}
    plan.step "down" @linear_32x32_bf16 domain(panels) ins(%1, %5 : !plan.buf<tokens, 32 x f32>, !plan.dot_panels<32x32xbf16>) outs(%2 : !plan.buf<tokens, 32 x f32>) {bytes_per_row = 256 : i64, flops_per_row = 2048 : i64}
    plan.output "hidden" %2 : !plan.buf<tokens, 32 x f32>
    plan.layout @b32x8x0 bucket [32, 8, 0] offsets [0, 4096, 0] {arena = 8192 : i64, lower_bound = 8192 : i64, scratch = 200000 : i64}
  }
}
