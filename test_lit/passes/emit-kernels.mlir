// RUN: batten-opt %s --emit-kernels="target=x86-64-v3 image=%t.img" | FileCheck %s
// RUN: batten-opt %s --emit-kernels=target=x86-64-v4 | FileCheck %s --check-prefix=V4

// Every kernel gets its place in one image, in module order, from the end of the first page on; programs name the target
// and the image's digest. What the code does is tests/kernels' matter.
// CHECK: plan.kernel @add_32_f32 add {width = 32 : i64} overwrite {entry = 4096 : i64, entry_bytes = [[BYTES:[0-9]+]] : i64}
// CHECK: plan.kernel @slice_64_0_16_f32 slice {{.*}} {entry = {{[0-9]+}} : i64, entry_bytes = {{[0-9]+}} : i64}
// CHECK: plan.program @p attributes {image_digest = "{{[0-9a-f]+}}", target = "x86-64-v3"}
// V4: plan.program @p attributes {image_digest = "{{[0-9a-f]+}}", target = "x86-64-v4"}
module {
  plan.kernel @add_32_f32 add {width = 32} overwrite
  plan.kernel @slice_64_0_16_f32 slice {width_in = 64, begin = 0, width = 16}
  plan.program @p {
  }
}
