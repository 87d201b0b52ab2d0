// RUN: rm -rf %t && mkdir %t && batten-opt %s --serialize=dir=%t | FileCheck %s
// RUN: batten-translate --bytes-to-plan %t/p-10x1x0.plan | FileCheck %s

// Every layout becomes a file named by lane and bucket, and the module stays as it is.
// CHECK: plan.program @p attributes
// CHECK: plan.step "a" @k domain(rows)
// CHECK: plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 640 : i64, scratch = 0 : i64}
module {
  plan.packed @t : !plan.table<4x16xf32> {offset = 4096 : i64, bytes = 256 : i64}
  plan.kernel @k embed {width = 16, words, offset = 0} {entry = 4096 : i64, entry_bytes = 64 : i64}
  plan.program @p attributes {target = "x86-64-v3", image_digest = "1111111111111111111111111111111111111111111111111111111111111111", common_digest = "2222222222222222222222222222222222222222222222222222222222222222", panels_digest = "3333333333333333333333333333333333333333333333333333333333333333"} {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %x = plan.buffer : !plan.buf<tokens, 16 x f32>
    %y = plan.buffer : !plan.buf<tokens, 16 x f32>
    plan.step "a" @k domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
    plan.output "x" %x : !plan.buf<tokens, 16 x f32>
    plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 640 : i64, scratch = 0 : i64}
  }
}
