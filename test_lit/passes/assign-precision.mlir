// RUN: batten-opt %s --assign-precision="weights=f32 math=f32" | FileCheck %s
// RUN: batten-opt %s --assign-precision | FileCheck %s

// The precision is written on the module; f32 is the default.
// CHECK: module attributes {batten.math = "f32", batten.weights = "f32"}
module {
}
