// RUN: batten-opt %s --emit-kernels --split-input-file --verify-diagnostics
// RUN: not batten-opt %S/emit-kernels.mlir --emit-kernels=target=x86-64-v9 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not batten-opt %S/emit-kernels.mlir --emit-kernels=image=%t/nowhere/x.img 2>&1 | FileCheck %s --check-prefix=IMAGE

// TARGET: error: {{.*}}x86-64-v9
// IMAGE: error: cannot write image {{.*}}nowhere/x.img: No such file or directory

// A key that no emitter knows is an error at its kernel.
module {
  // expected-error @+1 {{unknown op 'twist'}}
  plan.kernel @twist twist {width = 32}
}

// -----

// Two kernels of one key would be one symbol.
// expected-error @+1 {{no code for x86-64-v3: }}
module {
  plan.kernel @a add {width = 32} overwrite
  plan.kernel @b add {width = 32} overwrite
}
