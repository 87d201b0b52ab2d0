// RUN: batten-opt %s --verify-plan --split-input-file | FileCheck %s

!x = !plan.buf<tokens, 16 x f32>
// A sound plan passes unchanged: x and z share bytes, since x is dead when z is written; the arena may be larger than it
// must; a buffer that nothing touches may lie anywhere.
// CHECK-LABEL: plan.program @sound
// CHECK: plan.layout @b10x1x0
module {
  batten.stage @s [[10, 1, 0]]
  plan.packed @t : !plan.table<4x16xf32>
  plan.kernel @embed embed {width = 16, words, offset = 0}
  plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
  plan.kernel @relu activation {width = 16, act = "relu"} overwrite
  plan.program @sound stage(@s) {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %x = plan.buffer : !x
    %y = plan.buffer : !x
    %z = plan.buffer : !x
    %untouched = plan.buffer : !x
    plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !x)
    plan.step "b" @slice domain(rows) ins(%x : !x) outs(%y : !x)
    plan.step "c" @relu domain(rows) inout(%y : !x)
    plan.step "d" @slice domain(rows) ins(%y : !x) outs(%z : !x)
    plan.output "z" %z : !x
    plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 1280, 0, 640] {arena = 1920 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
  }
}

// -----

// A kernel of rows serves rows of each kind.
// CHECK-LABEL: plan.program @kinds
module {
  batten.stage @s [[10, 1, 0]]
  plan.packed @t : !plan.table<4x16xf32>
  plan.kernel @embed embed {width = 16, words, offset = 0}
  plan.kernel @pool pool {width = 16, kind = "cls"}
  plan.kernel @add add {width = 16} overwrite
  plan.program @kinds stage(@s) {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %x = plan.buffer : !plan.buf<tokens, 16 x f32>
    %y = plan.buffer : !plan.buf<tokens, 16 x f32>
    %p = plan.buffer : !plan.buf<seqs, 16 x f32>
    %q = plan.buffer : !plan.buf<seqs, 16 x f32>
    plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
    plan.step "b" @add domain(rows) ins(%x, %x : !plan.buf<tokens, 16 x f32>, !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
    plan.step "c" @pool domain(rows) ins(%y : !plan.buf<tokens, 16 x f32>) outs(%p : !plan.buf<seqs, 16 x f32>)
    plan.step "d" @add domain(rows) ins(%p, %p : !plan.buf<seqs, 16 x f32>, !plan.buf<seqs, 16 x f32>) outs(%q : !plan.buf<seqs, 16 x f32>)
    plan.output "q" %q : !plan.buf<seqs, 16 x f32>
    plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640, 0, 64] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
  }
}
