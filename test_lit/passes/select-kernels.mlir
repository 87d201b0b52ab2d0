// RUN: batten-opt %s --select-kernels | FileCheck %s

!x = !plan.buf<tokens, 384 x f32>
// Equal keys share a kernel, over programs too; kernels come in the order of first use, with what selection knows of them.
// CHECK: plan.kernel @add_384_f32 add {width = 384 : i64} overwrite
// CHECK: plan.kernel @linear_384x384_f32 linear {act = "none", k = 384 : i64, n = 384 : i64} {slab_rows = 336 : i64}
// CHECK: plan.kernel @"layer_norm_384_f32_e1e-12" layer_norm {eps = 9.99999996E-13 : f32, width = 384 : i64} overwrite
// CHECK: plan.kernel @"layer_norm_384_f32_e1e-05" layer_norm {eps = 9.99999974E-6 : f32, width = 384 : i64} overwrite
// CHECK: plan.kernel @attention_4x32_f32_kv2_w64_s0.25 attention {head_width = 32 : i64, heads = 4 : i64, kv_heads = 2 : i64, scale = 2.500000e-01 : f32, window = 64 : i64}
// CHECK: plan.kernel @attention_4x32_f32_s0.25 attention {head_width = 32 : i64, heads = 4 : i64, scale = 2.500000e-01 : f32}
// CHECK: plan.kernel @rope_4x64_f32_kv2 rope {head_width = 64 : i64, heads = 4 : i64, kv_heads = 2 : i64} overwrite
// CHECK: plan.kernel @"rms_norm_384_f32_w_e1e-06" rms_norm {eps = 9.99999997E-7 : f32, weight, width = 384 : i64} overwrite
// CHECK: plan.kernel @gated_192_f32_gelu_erf gated {act = "gelu_erf", width = 192 : i64}{{$}}
// CHECK: plan.kernel @gated_192_f32_gelu_erf_second gated {act = "gelu_erf", second, width = 192 : i64}{{$}}
// CHECK: plan.kernel @add_type_384_f32 add_type {width = 384 : i64} overwrite
// CHECK: plan.kernel @softmax_384_f32 softmax {width = 384 : i64} overwrite
// CHECK: plan.kernel @gather_markers_384_f32 gather_markers {width = 384 : i64}{{$}}
// CHECK: plan.kernel @decision_features_384_f32 decision_features {width = 384 : i64}{{$}}
// CHECK-NOT: plan.kernel
module {
  plan.packed @w : !plan.panels<384x384xf32>
  // CHECK-LABEL: plan.program @first
  plan.program @first {
    %x = plan.buffer : !x
    %y = plan.buffer : !x
    %w = plan.weight @w : !plan.panels<384x384xf32>
    // CHECK: plan.step "a" @add_384_f32 domain(rows) {{.*}} outs(%{{.*}} : !plan.buf<tokens, 384 x f32>){{$}}
    plan.step "a" {op = "add", width = 384} domain(rows) ins(%x, %x : !x, !x) outs(%y : !x) {overwrite}
    // CHECK: plan.step "b" @add_384_f32
    plan.step "b" {op = "add", width = 384} domain(rows) ins(%x, %x : !x, !x) outs(%y : !x)
    // CHECK: plan.step "c" @linear_384x384_f32 domain(panels)
    plan.step "c" {op = "linear", k = 384, n = 384, act = "none"} domain(panels)
      ins(%x, %w : !x, !plan.panels<384x384xf32>) outs(%y : !x)
  }
  // CHECK-LABEL: plan.program @second
  plan.program @second {
    %x = plan.buffer : !x
    // Kernels that differ in eps alone are two, and the names say which is which.
    // CHECK: plan.step "a" @"layer_norm_384_f32_e1e-12"
    plan.step "a" {op = "layer_norm", width = 384, eps = 1.0e-12 : f32} domain(rows) inout(%x : !x) {overwrite}
    // CHECK: plan.step "b" @"layer_norm_384_f32_e1e-05"
    plan.step "b" {op = "layer_norm", width = 384, eps = 1.0e-5 : f32} domain(rows) inout(%x : !x) {overwrite}
    // A step in place has as many pointers: its operand counts twice.
    // CHECK: plan.step "c" @add_384_f32 domain(rows) ins(%{{.*}}) inout(%
    %y = plan.buffer : !x
    plan.step "c" {op = "add", width = 384} domain(rows) ins(%y : !x) inout(%x : !x) {overwrite}
    // Windows and fewer heads of keys and values make other kernels.
    %few = plan.buffer : !plan.buf<tokens, 256 x f32>
    %inner = plan.buffer : !plan.buf<tokens, 128 x f32>
    // CHECK: plan.step "d" @attention_4x32_f32_kv2_w64_s0.25 domain(tasks)
    plan.step "d" {op = "attention", heads = 4, kv_heads = 2, head_width = 32, window = 64, scale = 0.25 : f32} domain(tasks)
      ins(%few : !plan.buf<tokens, 256 x f32>) outs(%inner : !plan.buf<tokens, 128 x f32>)
    // CHECK: plan.step "e" @attention_4x32_f32_s0.25 domain(tasks)
    plan.step "e" {op = "attention", heads = 4, head_width = 32, scale = 0.25 : f32} domain(tasks)
      ins(%x : !x) outs(%inner : !plan.buf<tokens, 128 x f32>)
  }
  // CHECK-LABEL: plan.program @third
  plan.packed @angles rope(10000.0) : !plan.table<128x64xf32>
  plan.packed @gamma : !plan.vector<384xf32>
  plan.packed @kinds : !plan.table<3x384xf32>
  plan.program @third {
    %x = plan.buffer : !plan.buf<tokens, 512 x f32>
    %y = plan.buffer : !x
    %h = plan.buffer : !plan.buf<tokens, 192 x f32>
    %m = plan.buffer : !plan.buf<markers, 384 x f32>
    %l = plan.buffer : !plan.buf<markers, 1 x f32>
    %f = plan.buffer : !plan.buf<seqs, 388 x f32>
    %angles = plan.weight @angles : !plan.table<128x64xf32>
    %gamma = plan.weight @gamma : !plan.vector<384xf32>
    %kinds = plan.weight @kinds : !plan.table<3x384xf32>
    // CHECK: plan.step "rope" @rope_4x64_f32_kv2 domain(rows) ins(%{{.*}} : !plan.table<128x64xf32>) inout(
    plan.step "rope" {op = "rope", heads = 4, kv_heads = 2, head_width = 64} domain(rows)
      ins(%angles : !plan.table<128x64xf32>) inout(%x : !plan.buf<tokens, 512 x f32>) {overwrite}
    plan.step "norm" {op = "rms_norm", width = 384, eps = 1.0e-6 : f32, weight} domain(rows)
      ins(%gamma : !plan.vector<384xf32>) inout(%y : !x) {overwrite}
    plan.step "first" {op = "gated", width = 192, act = "gelu_erf"} domain(rows) ins(%y : !x)
      outs(%h : !plan.buf<tokens, 192 x f32>)
    plan.step "second" {op = "gated", width = 192, act = "gelu_erf", second} domain(rows) ins(%y : !x)
      outs(%h : !plan.buf<tokens, 192 x f32>)
    plan.step "type" {op = "add_type", width = 384} domain(rows) ins(%kinds : !plan.table<3x384xf32>) inout(%y : !x)
      {overwrite}
    plan.step "softmax" {op = "softmax", width = 384} domain(rows) inout(%y : !x) {overwrite}
    plan.step "gather" {op = "gather_markers", width = 384} domain(rows) ins(%y : !x)
      outs(%m : !plan.buf<markers, 384 x f32>)
    plan.step "features" {op = "decision_features", width = 384} domain(rows)
      ins(%y, %l : !x, !plan.buf<markers, 1 x f32>) outs(%f : !plan.buf<seqs, 388 x f32>)
  }
}
