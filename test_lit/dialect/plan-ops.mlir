// RUN: batten-opt %s | batten-opt | FileCheck %s
// Every op, type and attribute of the plan dialect prints and parses.

// CHECK-LABEL: module @steps
module @steps {
  batten.stage @text [[32, 8, 0]]
  batten.weight @q from "q" : tensor<384x384xf32>
  batten.weight @b from "b" : tensor<384xf32>

  // A key's attributes print in alphabetic order, flags without a value.
  // CHECK: plan.kernel @linear linear {act = "none", bias, k = 384 : i64, n = 384 : i64} overwrite {slab_rows = 336 : i64}
  // CHECK: plan.kernel @concat concat_cols {widths = array<i64: 8, 8>} {entry = 4096 : i64, entry_bytes = 200 : i64}
  // CHECK: plan.kernel @norm layer_norm {eps = 9.99999996E-13 : f32, width = 384 : i64}
  plan.kernel @linear linear {k = 384, n = 384, bias, act = "none"} overwrite {slab_rows = 336 : i64}
  plan.kernel @concat concat_cols {widths = array<i64: 8, 8>} {entry = 4096 : i64, entry_bytes = 200 : i64}
  plan.kernel @norm layer_norm {eps = 1.0e-12 : f32, width = 384}

  // Weight expressions: a tensor, nested ones, a table without tensors, none (as read back from bytes).
  // CHECK: plan.packed @q.panels @q : !plan.panels<384x384xf32>
  // CHECK: plan.packed @sum concat(@q, scale(@q, 5.000000e-01), cast(transpose(@q), f32)) : !plan.panels<1152x384xf32>
  // CHECK: plan.packed @b.vector @b : !plan.vector<384xf32> {bytes = 1536 : i64, offset = 4096 : i64}
  // CHECK: plan.packed @rope rope(1.000000e+04) : !plan.table<128x64xf32>
  // CHECK: plan.packed @divided rope(1.000000e+04, 2.000000e+00) : !plan.table<128x64xf32>
  // CHECK: plan.packed @t : !plan.table<100x384xf16>
  // CHECK: plan.packed @pairs cast(@q, bf16) : !plan.dot_panels<384x384xbf16>
  // CHECK: plan.packed @quads cast(@q, i8) : !plan.dot_panels<384x384xi8>
  plan.packed @q.panels @q : !plan.panels<384x384xf32>
  plan.packed @sum concat(@q, scale(@q, 0.5), cast(transpose(@q), f32)) : !plan.panels<1152x384xf32>
  plan.packed @b.vector @b : !plan.vector<384xf32> {bytes = 1536 : i64, offset = 4096 : i64}
  plan.packed @rope rope(10000.0) : !plan.table<128x64xf32>
  plan.packed @divided rope(10000.0, 2.0) : !plan.table<128x64xf32>
  plan.packed @t : !plan.table<100x384xf16>
  plan.packed @pairs cast(@q, bf16) : !plan.dot_panels<384x384xbf16>
  plan.packed @quads cast(@q, i8) : !plan.dot_panels<384x384xi8>

  // CHECK: plan.program @embed stage(@text) attributes {id_count = 100 : i64, max_seq_tokens = 64 : i64, reads_markers, seq_type_count = 3 : i64, type_count = 2 : i64} {
  plan.program @embed stage(@text) attributes {id_count = 100 : i64, type_count = 2 : i64, max_seq_tokens = 64 : i64,
      seq_type_count = 3 : i64, reads_markers} {
    // CHECK: %[[X:.*]] = plan.buffer : !plan.buf<tokens, 384 x f32>
    // CHECK: %[[Y:.*]] = plan.buffer : !plan.buf<tokens, 384 x f32>
    // CHECK: plan.buffer : !plan.buf<seqs, 8 x f32>
    // CHECK: plan.buffer : !plan.buf<markers, 8 x f32>
    %x = plan.buffer : !plan.buf<tokens, 384 x f32>
    %y = plan.buffer : !plan.buf<tokens, 384 x f32>
    %s = plan.buffer : !plan.buf<seqs, 8 x f32>
    %m = plan.buffer : !plan.buf<markers, 8 x f32>
    // CHECK: %[[W:.*]] = plan.weight @q.panels : !plan.panels<384x384xf32>
    // CHECK: %[[B:.*]] = plan.weight @b.vector : !plan.vector<384xf32>
    // CHECK: %[[T:.*]] = plan.weight @t : !plan.table<100x384xf16>
    %w = plan.weight @q.panels : !plan.panels<384x384xf32>
    %b = plan.weight @b.vector : !plan.vector<384xf32>
    %t = plan.weight @t : !plan.table<100x384xf16>

    // Before select-kernels a step has a key and says whether the kernel may overwrite.
    // CHECK: plan.step "embed" {op = "embed", width = 384 : i64, words} domain(rows) ins(%[[T]] : !plan.table<100x384xf16>) outs(%[[X]] : !plan.buf<tokens, 384 x f32>)
    plan.step "embed" {op = "embed", width = 384, words} domain(rows) ins(%t : !plan.table<100x384xf16>)
        outs(%x : !plan.buf<tokens, 384 x f32>)
    // CHECK: plan.step "norm" {{.*}} inout(%[[X]] : !plan.buf<tokens, 384 x f32>) {overwrite}
    plan.step "norm" {op = "layer_norm", width = 384, eps = 1.0e-12 : f32} domain(rows)
        inout(%x : !plan.buf<tokens, 384 x f32>) {overwrite}
    // Costs of 0 are not printed.
    // CHECK: plan.step "linear" @linear domain(panels) ins(%[[X]], %[[W]], %[[B]] : !plan.buf<tokens, 384 x f32>, !plan.panels<384x384xf32>, !plan.vector<384xf32>) outs(%[[Y]] : !plan.buf<tokens, 384 x f32>) {bytes_per_row = 3072 : i64, flops_per_row = 294912 : i64}
    plan.step "linear" @linear domain(panels)
        ins(%x, %w, %b : !plan.buf<tokens, 384 x f32>, !plan.panels<384x384xf32>, !plan.vector<384xf32>)
        outs(%y : !plan.buf<tokens, 384 x f32>)
        {flops_per_row = 294912 : i64, flops_per_pair = 0 : i64, bytes_per_row = 3072 : i64}
    // CHECK: plan.output "hidden" %[[Y]] : !plan.buf<tokens, 384 x f32>
    plan.output "hidden" %y : !plan.buf<tokens, 384 x f32>
    // CHECK: plan.layout @b32x8x0 bucket [32, 8, 0] offsets [0, 49152, 98304, 98816] {arena = 98816 : i64, lower_bound = 98304 : i64, scratch = 0 : i64}
    plan.layout @b32x8x0 bucket [32, 8, 0] offsets [0, 49152, 98304, 98816]
        {arena = 98816 : i64, lower_bound = 98304 : i64, scratch = 0 : i64}
  }
}

// A weight expression is an attribute too.
// CHECK-LABEL: module @attribute
// CHECK-SAME: plan.test = #plan.expr<scale(@w, 2.000000e+00)>
module @attribute attributes {plan.test = #plan.expr<scale(@w, 2.0)>} {
}
