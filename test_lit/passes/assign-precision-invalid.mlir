// RUN: batten-opt %s --assign-precision=weights=bf16 --verify-diagnostics
// RUN: not batten-opt %s --assign-precision=math=int8 2>&1 | FileCheck %s

// What isn't there yet is refused by name.
// CHECK: error: math 'int8' is not supported; f32 is
// expected-error @+1 {{weights 'bf16' is not supported; f32 is}}
module {
}
