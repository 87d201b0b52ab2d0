// RUN: batten-opt %s --assign-precision="weights=f32 math=f32" | FileCheck %s --check-prefix=F32
// RUN: batten-opt %s --assign-precision | FileCheck %s --check-prefix=F32
// RUN: batten-opt %s --assign-precision="weights=f16" | FileCheck %s --check-prefix=F16
// RUN: batten-opt %s --assign-precision="weights=bf16 math=bf16" | FileCheck %s --check-prefix=BF16
// RUN: batten-opt %s --assign-precision="weights=i8 math=i8" | FileCheck %s --check-prefix=I8
// RUN: not batten-opt %s --assign-precision="weights=f16 math=bf16" 2>&1 | FileCheck %s --check-prefix=MIXED

// The precision is written on the module; f32 is the default and changes nothing else.
// F32: module attributes {batten.math = "f32", {{.*}}batten.weights = "f32"}
// F32-NOT: batten.cast
// F32-NOT: math
// F16: module attributes {batten.math = "f32", {{.*}}batten.weights = "f16"}
// BF16: module attributes {batten.math = "bf16", {{.*}}batten.weights = "bf16"}
// I8: module attributes {batten.math = "i8", {{.*}}batten.weights = "i8"}
// MIXED: error: {{.*}}weight is f16, which math bf16 does not take
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
module attributes {batten.version = 1 : i32} {
  batten.weight @words from "words" stored f32 : tensor<20x8xf32>
  batten.weight @types from "types" stored f32 : tensor<2x8xf32>
  batten.weight @w from "w" stored f32 : tensor<8x8xf32>
  batten.weight @head from "head" stored f32 : tensor<2x8xf32>
  batten.weight @b from "b" stored f32 : tensor<8xf32>
  batten.graph @scores(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x2xf32, #tokens>, y: tensor<?x2xf32, #seqs>) {
    %words = batten.param @words : tensor<20x8xf32>
    %table = batten.param @types : tensor<2x8xf32>
    %w = batten.param @w : tensor<8x8xf32>
    %head = batten.param @head : tensor<2x8xf32>
    %b = batten.param @b : tensor<8xf32>
    // Tables are stored alike, but for i8: rows that are looked up stay floats. A weight is cast once, vectors stay f32.
    // F16: %[[WORDS:.*]] = batten.cast %{{.*}} : tensor<20x8xf32> to tensor<20x8xf16>
    // F16: %[[TYPES:.*]] = batten.cast %{{.*}} : tensor<2x8xf32> to tensor<2x8xf16>
    // F16: %[[W:.*]] = batten.cast %{{.*}} : tensor<8x8xf32> to tensor<8x8xf16>
    // F16: %[[HEAD:.*]] = batten.cast %{{.*}} : tensor<2x8xf32> to tensor<2x8xf16>
    // F16: batten.embed_sum words(%{{.*}}, %[[WORDS]] : tensor<20x8xf16>) types(%{{.*}}, %[[TYPES]] : tensor<2x8xf16>)
    // BF16: batten.embed_sum words({{.*}}tensor<20x8xbf16>) types({{.*}}tensor<2x8xbf16>)
    // I8: batten.embed_sum words({{.*}}tensor<20x8xf32>) types({{.*}}tensor<2x8xf32>)
    %x = batten.embed_sum words(%ids, %words : tensor<20x8xf32>) types(%types, %table : tensor<2x8xf32>)
    // F16: batten.linear %{{.*}}, %[[W]] bias({{.*}}tensor<8xf32>) act gelu_erf : {{.*}}tensor<8x8xf16>
    // BF16: batten.linear {{.*}} act gelu_erf math bf16 : {{.*}}tensor<8x8xbf16>
    // I8: batten.linear {{.*}} act gelu_erf math i8 : {{.*}}tensor<8x8xi8>
    %h = batten.linear %x, %w bias(%b : tensor<8xf32>) act gelu_erf : tensor<?x8xf32, #tokens>, tensor<8x8xf32>
    // F16: batten.linear %{{.*}}, %[[W]] residual({{.*}}) : {{.*}}tensor<8x8xf16>
    // I8: batten.linear {{.*}} residual({{.*}}) math i8 : {{.*}}tensor<8x8xi8>
    %g = batten.linear %h, %w residual(%x : tensor<?x8xf32, #tokens>) : tensor<?x8xf32, #tokens>, tensor<8x8xf32>
    // Heads stay in f32: what is an output, directly or element by element, and rows that are not tokens.
    // F16: batten.linear %{{.*}}, %[[HEAD]] : {{.*}}tensor<2x8xf16>
    // BF16: batten.linear %{{.*}}, %{{.*}} : {{.*}}tensor<2x8xbf16>
    // I8: batten.linear %{{.*}}, %{{.*}} : {{.*}}tensor<2x8xf32>
    %s = batten.linear %g, %head : tensor<?x8xf32, #tokens>, tensor<2x8xf32>
    %p = batten.softmax %s : tensor<?x2xf32, #tokens>
    %pooled = batten.pool cls %g, %seg : tensor<?x8xf32, #tokens>
    // I8: batten.linear %{{.*}}, %{{.*}} : {{.*}}#seqs>, tensor<2x8xf32>
    %y = batten.linear %pooled, %head : tensor<?x8xf32, #seqs>, tensor<2x8xf32>
    batten.return %p, %y : tensor<?x2xf32, #tokens>, tensor<?x2xf32, #seqs>
  }
}
