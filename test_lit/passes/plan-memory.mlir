// RUN: batten-opt %s --plan-memory --split-input-file | FileCheck %s
// RUN: batten-opt %s --plan-memory=report=true --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

// A row of 16 elements takes 64 bytes, one of 32 takes 128. In every case the stage has one bucket of 10 tokens, so
// buffers of 16 have 640 bytes and those of 32 have 1280, and the lower bound says the best that there can be.

// Disjoint lives share bytes.
// step       a      b      c      out
// x (640)    write  read                  offset 640: above y
// y (1280)          write  read           offset 0: the largest goes first
// z (640)                  write  read    offset 1280: y is live, x is not; x's place is too low by 640
//                                         so z lies at x's end, and the arena is y + z
// REPORT: remark: @chain: 0 of 3 steps put in place
// REPORT: remark: @chain b10x1x0: arena of 1920 bytes, lower bound 1920, sum of 3 buffers 2560, scratch of 0 bytes a worker
// CHECK-LABEL: plan.program @chain
// CHECK: plan.layout @b10x1x0 bucket [10, 1, 0] offsets [1280, 0, 1280] {arena = 1920 : i64, lower_bound = 1920 : i64, scratch = 0 : i64}
module {
  batten.stage @s [[10, 1, 0]]
  plan.packed @t : !plan.table<4x16xf32>
  plan.program @chain stage(@s) {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %x = plan.buffer : !plan.buf<tokens, 16 x f32>
    %y = plan.buffer : !plan.buf<tokens, 32 x f32>
    %z = plan.buffer : !plan.buf<tokens, 16 x f32>
    plan.step "a" {op = "embed", width = 16, words} domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
    plan.step "b" {op = "concat_cols", widths = array<i64: 16, 16>} domain(rows)
      ins(%x, %x : !plan.buf<tokens, 16 x f32>, !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 32 x f32>)
    plan.step "c" {op = "slice", width_in = 32, begin = 0, width = 16} domain(rows) ins(%y : !plan.buf<tokens, 32 x f32>)
      outs(%z : !plan.buf<tokens, 16 x f32>)
    plan.output "out" %z : !plan.buf<tokens, 16 x f32>
  }
}

// -----

// A step writes over its last input where nothing reads it later; the output's buffer goes away and later steps follow.
// step       a      b             c        out
// x (640)    write  in place      in place read   offset 0: the only buffer
// CHECK-LABEL: plan.program @in_place
// CHECK: %[[X:.*]] = plan.buffer
// CHECK-NOT: plan.buffer
// CHECK: plan.step "b" {{.*}} domain(rows) inout(%[[X]] : !plan.buf<tokens, 16 x f32>)
// CHECK: plan.step "c" {{.*}} domain(rows) inout(%[[X]] : !plan.buf<tokens, 16 x f32>)
// CHECK: plan.output "out" %[[X]]
// CHECK: plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0] {arena = 640 : i64, lower_bound = 640 : i64, scratch = 0 : i64}
// REPORT: remark: @in_place: 2 of 3 steps put in place
!x = !plan.buf<tokens, 16 x f32>
module {
  batten.stage @s [[10, 1, 0]]
  plan.packed @t : !plan.table<4x16xf32>
  plan.kernel @relu activation {width = 16, act = "relu"} overwrite
  plan.program @in_place stage(@s) {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %x = plan.buffer : !x
    %y = plan.buffer : !x
    %z = plan.buffer : !x
    plan.step "a" {op = "embed", width = 16, words} domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !x)
    plan.step "b" {op = "layer_norm", width = 16, eps = 1.0e-5 : f32} domain(rows) ins(%x : !x) outs(%y : !x) {overwrite}
    plan.step "c" @relu domain(rows) ins(%y : !x) outs(%z : !x)
    plan.output "out" %z : !x
  }
}

// -----

// Not in place: the input is read later (b), it is an output (c), types differ (d), the kernel reads it as another
// operand too (e), the kernel does not allow it (f).
// CHECK-LABEL: plan.program @not_in_place
// CHECK-NOT: inout
// REPORT: remark: @not_in_place: 0 of 6 steps put in place
!x = !plan.buf<tokens, 16 x f32>
module {
  batten.stage @s [[10, 1, 0]]
  plan.packed @t : !plan.table<4x16xf32>
  plan.program @not_in_place stage(@s) {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %x = plan.buffer : !x
    %y = plan.buffer : !x
    %z = plan.buffer : !x
    %p = plan.buffer : !plan.buf<seqs, 16 x f32>
    %u = plan.buffer : !x
    %v = plan.buffer : !x
    plan.step "a" {op = "embed", width = 16, words} domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !x)
    plan.step "b" {op = "activation", width = 16, act = "relu"} domain(rows) ins(%x : !x) outs(%y : !x) {overwrite}
    plan.step "c" {op = "activation", width = 16, act = "relu"} domain(rows) ins(%y : !x) outs(%z : !x) {overwrite}
    plan.step "d" {op = "pool", width = 16, kind = "cls"} domain(rows) ins(%z : !x)
      outs(%p : !plan.buf<seqs, 16 x f32>) {overwrite}
    plan.step "e" {op = "add", width = 16} domain(rows) ins(%x, %x : !x, !x) outs(%u : !x) {overwrite}
    plan.step "f" {op = "slice", width_in = 16, begin = 0, width = 16} domain(rows) ins(%u : !x) outs(%v : !x)
    plan.output "y" %y : !x
    plan.output "p" %p : !plan.buf<seqs, 16 x f32>
    plan.output "v" %v : !x
  }
}

// -----

// Outputs live to the end, also those that are written first: nothing may share with them.
// step       a      b      c      out
// x (640)    write                read    offset 0
// y (640)           write  read           offset 640
// z (640)                  write  read    offset 1280: x and y are live at c
// CHECK-LABEL: plan.program @outputs
// CHECK: plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640, 1280] {arena = 1920 : i64, lower_bound = 1920 : i64, scratch = 0 : i64}
!x = !plan.buf<tokens, 16 x f32>
module {
  batten.stage @s [[10, 1, 0]]
  plan.packed @t : !plan.table<4x16xf32>
  plan.program @outputs stage(@s) {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %x = plan.buffer : !x
    %y = plan.buffer : !x
    %z = plan.buffer : !x
    plan.step "a" {op = "embed", width = 16, words} domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !x)
    plan.step "b" {op = "embed", width = 16, words} domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%y : !x)
    plan.step "c" {op = "slice", width_in = 16, begin = 0, width = 16} domain(rows) ins(%y : !x) outs(%z : !x)
    plan.output "x" %x : !x
    plan.output "z" %z : !x
  }
}

// -----

// Each bucket of the stage has its layout, and old layouts go. Strides are 64 bytes for 16 elements, and 4096 + 64 for
// 1024: rows that are a multiple of 4096 bytes apart would alias. Markers have 0 rows here, so their buffer takes nothing.
// b1x1x0: x 4160 at 0 (tokens), p 64 at 4160 (seqs), m 0 at 0
// b2x3x1: x 8320 at 0, p 192 at 8320, m 64 at 8512
// Attention's scratch is for sequences as long as the model's positions or the bucket allow, whichever is less.
// CHECK-LABEL: plan.program @buckets
// CHECK-NOT: @old
// CHECK: plan.layout @b1x1x0 bucket [1, 1, 0] offsets [0, 4160, 0] {arena = 4224 : i64, lower_bound = 4224 : i64, scratch = 0 : i64}
// CHECK: plan.layout @b2x3x1 bucket [2, 3, 1] offsets [0, 8320, 8512] {arena = 8576 : i64, lower_bound = 8576 : i64, scratch = 0 : i64}
module {
  batten.stage @s [[1, 1, 0], [2, 3, 1]]
  plan.packed @t : !plan.table<4x1024xf32>
  plan.program @buckets stage(@s) {
    %t = plan.weight @t : !plan.table<4x1024xf32>
    %x = plan.buffer : !plan.buf<tokens, 1024 x f32>
    %p = plan.buffer : !plan.buf<seqs, 16 x f32>
    %m = plan.buffer : !plan.buf<markers, 16 x f32>
    plan.step "a" {op = "embed", width = 1024, words} domain(rows) ins(%t : !plan.table<4x1024xf32>)
      outs(%x : !plan.buf<tokens, 1024 x f32>)
    plan.step "b" {op = "pool", width = 16, kind = "cls"} domain(rows) ins(%x : !plan.buf<tokens, 1024 x f32>)
      outs(%p : !plan.buf<seqs, 16 x f32>)
    plan.step "c" {op = "slice"} domain(rows) ins(%x : !plan.buf<tokens, 1024 x f32>) outs(%m : !plan.buf<markers, 16 x f32>)
    plan.output "x" %x : !plan.buf<tokens, 1024 x f32>
    plan.output "p" %p : !plan.buf<seqs, 16 x f32>
    plan.output "m" %m : !plan.buf<markers, 16 x f32>
    plan.layout @old bucket [1, 1, 0] offsets [0, 0, 0] {arena = 0 : i64, lower_bound = 0 : i64, scratch = 0 : i64}
  }
}

// -----

// A gap below is taken before the arena grows, the smallest that fits.
// step       a      b      c      d      out
// x (1280)   write  read                        offset 0
// y (640)           write                read   offset 1280: x is live at b
// z (640)                  write  read          offset 0: in the gap that x left
// CHECK-LABEL: plan.program @gap
// CHECK: plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 1280, 0] {arena = 1920 : i64, lower_bound = 1920 : i64, scratch = 0 : i64}
module {
  batten.stage @s [[10, 1, 0]]
  plan.packed @t : !plan.table<4x32xf32>
  plan.program @gap stage(@s) {
    %t = plan.weight @t : !plan.table<4x32xf32>
    %x = plan.buffer : !plan.buf<tokens, 32 x f32>
    %y = plan.buffer : !plan.buf<tokens, 16 x f32>
    %z = plan.buffer : !plan.buf<tokens, 16 x f32>
    plan.step "a" {op = "embed", width = 32, words} domain(rows) ins(%t : !plan.table<4x32xf32>) outs(%x : !plan.buf<tokens, 32 x f32>)
    plan.step "b" {op = "slice", width_in = 32, begin = 0, width = 16} domain(rows) ins(%x : !plan.buf<tokens, 32 x f32>)
      outs(%y : !plan.buf<tokens, 16 x f32>)
    plan.step "c" {op = "slice", width_in = 16, begin = 0, width = 16} domain(rows) ins(%y : !plan.buf<tokens, 16 x f32>)
      outs(%z : !plan.buf<tokens, 16 x f32>)
    plan.step "d" {op = "add", width = 16} domain(rows) ins(%z : !plan.buf<tokens, 16 x f32>)
      inout(%y : !plan.buf<tokens, 16 x f32>) {overwrite}
    plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  }
}
