// RUN: batten-opt %s --select-kernels | FileCheck %s

!x = !plan.buf<tokens, 384 x f32>
// Equal keys share a kernel, over programs too; kernels come in the order of first use, with what selection knows of them.
// CHECK: plan.kernel @add_384_f32 add {width = 384 : i64} overwrite
// CHECK: plan.kernel @linear_384x384_f32 linear {act = "none", k = 384 : i64, n = 384 : i64} {slab_rows = 336 : i64}
// CHECK: plan.kernel @"layer_norm_384_f32_e1e-12" layer_norm {eps = 9.99999996E-13 : f32, width = 384 : i64} overwrite
// CHECK: plan.kernel @"layer_norm_384_f32_e1e-05" layer_norm {eps = 9.99999974E-6 : f32, width = 384 : i64} overwrite
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
  }
}
