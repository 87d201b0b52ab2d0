// RUN: batten-opt %s --assign-precision=weights=int8 --verify-diagnostics
// RUN: not batten-opt %s --assign-precision=math=f16 2>&1 | FileCheck %s

// What isn't there is refused by name.
// CHECK: error: math 'f16' is unknown, f32, bf16 or i8 wanted
// expected-error @+1 {{weights 'int8' is unknown, f32, f16, bf16 or i8 wanted}}
module {
}
