// RUN: batten-opt %s --serialize --split-input-file --verify-diagnostics
// RUN: not batten-opt %S/serialize.mlir --serialize=dir=%t/nowhere 2>&1 | FileCheck %s

// A folder that is not there is named.
// CHECK: error: {{.*}}cannot write {{.*}}nowhere/p-10x1x0.plan: No such file or directory

// Code has been emitted: a target.
module {
  plan.packed @t : !plan.table<4x16xf32> {offset = 4096 : i64, bytes = 256 : i64}
  plan.kernel @k embed {width = 16, words, offset = 0} {entry = 4096 : i64, entry_bytes = 64 : i64}
  // expected-error @+1 {{has no target, so it has no bytes: emit-kernels has not run}}
  plan.program @p attributes {image_digest = "1111111111111111111111111111111111111111111111111111111111111111", common_digest = "2222222222222222222222222222222222222222222222222222222222222222", panels_digest = "3333333333333333333333333333333333333333333333333333333333333333"} {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %x = plan.buffer : !plan.buf<tokens, 16 x f32>
    %y = plan.buffer : !plan.buf<tokens, 16 x f32>
    plan.step "a" @k domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
    plan.output "x" %x : !plan.buf<tokens, 16 x f32>
    plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 640 : i64, scratch = 0 : i64}
  }
}

// -----

// Packs are there: their digests.
module {
  plan.packed @t : !plan.table<4x16xf32> {offset = 4096 : i64, bytes = 256 : i64}
  plan.kernel @k embed {width = 16, words, offset = 0} {entry = 4096 : i64, entry_bytes = 64 : i64}
  // expected-error @+1 {{has no common_digest, so it has no bytes}}
  plan.program @p attributes {target = "x86-64-v3", image_digest = "1111111111111111111111111111111111111111111111111111111111111111", panels_digest = "3333333333333333333333333333333333333333333333333333333333333333"} {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %x = plan.buffer : !plan.buf<tokens, 16 x f32>
    %y = plan.buffer : !plan.buf<tokens, 16 x f32>
    plan.step "a" @k domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
    plan.output "x" %x : !plan.buf<tokens, 16 x f32>
    plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 640 : i64, scratch = 0 : i64}
  }
}

// -----

// A weight has a place.
module {
  // expected-error @+1 {{has no offset, so it has no bytes: the weights are not packed}}
  plan.packed @t : !plan.table<4x16xf32>
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

// -----

// A kernel has code.
module {
  plan.packed @t : !plan.table<4x16xf32> {offset = 4096 : i64, bytes = 256 : i64}
  // expected-error @+1 {{has no entry, so it has no bytes: emit-kernels has not run}}
  plan.kernel @k embed {width = 16, words, offset = 0}
  plan.program @p attributes {target = "x86-64-v3", image_digest = "1111111111111111111111111111111111111111111111111111111111111111", common_digest = "2222222222222222222222222222222222222222222222222222222222222222", panels_digest = "3333333333333333333333333333333333333333333333333333333333333333"} {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %x = plan.buffer : !plan.buf<tokens, 16 x f32>
    %y = plan.buffer : !plan.buf<tokens, 16 x f32>
    plan.step "a" @k domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
    plan.output "x" %x : !plan.buf<tokens, 16 x f32>
    plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 640 : i64, scratch = 0 : i64}
  }
}

// -----

// A step has a kernel.
module {
  plan.packed @t : !plan.table<4x16xf32> {offset = 4096 : i64, bytes = 256 : i64}
  plan.kernel @k embed {width = 16, words, offset = 0} {entry = 4096 : i64, entry_bytes = 64 : i64}
  plan.program @p attributes {target = "x86-64-v3", image_digest = "1111111111111111111111111111111111111111111111111111111111111111", common_digest = "2222222222222222222222222222222222222222222222222222222222222222", panels_digest = "3333333333333333333333333333333333333333333333333333333333333333"} {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %x = plan.buffer : !plan.buf<tokens, 16 x f32>
    %y = plan.buffer : !plan.buf<tokens, 16 x f32>
    // expected-error @+1 {{has no kernel symbol, so it has no bytes: select-kernels has not run}}
    plan.step "a" {op = "embed"} domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
    plan.output "x" %x : !plan.buf<tokens, 16 x f32>
    plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 640 : i64, scratch = 0 : i64}
  }
}

// -----

// A kernel has one domain and one number of pointers.
module {
  plan.packed @t : !plan.table<4x16xf32> {offset = 4096 : i64, bytes = 256 : i64}
  plan.kernel @k embed {width = 16, words, offset = 0} {entry = 4096 : i64, entry_bytes = 64 : i64}
  plan.program @p attributes {target = "x86-64-v3", image_digest = "1111111111111111111111111111111111111111111111111111111111111111", common_digest = "2222222222222222222222222222222222222222222222222222222222222222", panels_digest = "3333333333333333333333333333333333333333333333333333333333333333"} {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %x = plan.buffer : !plan.buf<tokens, 16 x f32>
    %y = plan.buffer : !plan.buf<tokens, 16 x f32>
    plan.step "a" @k domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
    // expected-error @+1 {{has another domain or number of pointers than an earlier step with kernel @k}}
    plan.step "b" @k domain(one) ins(%t : !plan.table<4x16xf32>) outs(%y : !plan.buf<tokens, 16 x f32>)
    plan.output "x" %x : !plan.buf<tokens, 16 x f32>
    plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 640 : i64, scratch = 0 : i64}
  }
}
