// RUN: batten-opt %s --verify-plan --split-input-file --verify-diagnostics
// One sound plan, and one fault in each case.

// Outputs come last.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @after_output stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  // expected-error @+1 {{comes after an output: outputs are what is left when all steps are done}}
  plan.step "c" @relu domain(rows) inout(%x : !plan.buf<tokens, 16 x f32>)
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// What a step reads, an earlier step has written.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @not_written stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  // expected-error @+1 {{reads buffer 0, which no earlier step writes}}
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// So it is with outputs.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @output_not_written stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  // expected-error @+1 {{reads buffer 1, which no earlier step writes}}
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// Keys have become symbols.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @no_symbol stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  // expected-error @+1 {{has no kernel symbol: select-kernels has not run}}
  plan.step "b" {op = "slice"} domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// A key is one that kernels know.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
// expected-error @+1 {{width_in}}
plan.kernel @slice slice {begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @bad_key stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// A step has its kernel's domain.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @domain stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  // expected-error @+1 {{domain is not that of its kernel @slice}}
  plan.step "b" @slice domain(one) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// A step has its kernel's pointers.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @pointers stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  // expected-error @+1 {{gives 3 pointers to kernel @slice, which takes 2}}
  plan.step "b" @slice domain(rows) ins(%x, %x : !plan.buf<tokens, 16 x f32>, !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// A kernel says what its key gives: embed overwrites nothing.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
// expected-error @+1 {{overwrite or slab_rows is not what its key gives}}
plan.kernel @embed embed {width = 16, words, offset = 0} overwrite
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @overwrite stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// All steps of a kernel take the same types.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @types stage(@s) {
  %wide = plan.buffer : !plan.buf<tokens, 32 x f32>
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  // expected-error @+1 {{takes other types than an earlier step with kernel @slice}}
  plan.step "c" @slice domain(rows) ins(%y : !plan.buf<tokens, 16 x f32>) outs(%wide : !plan.buf<tokens, 32 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640, 1280] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// Layouts are those of the stage.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
// expected-error @+1 {{has no stage: its layouts can't be complete}}
plan.program @no_stage {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// A layout is for a bucket of the stage.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @another_bucket stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  // expected-error @+1 {{bucket [11, 1, 0] is not in the stage, or has a layout already}}
  plan.layout @b10x1x0 bucket [11, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// A bucket has one layout.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @twice stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
  // expected-error @+1 {{bucket [10, 1, 0] is not in the stage, or has a layout already}}
  plan.layout @again bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// Every bucket has a layout.
batten.stage @s [[10, 1, 0], [20, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
// expected-error @+1 {{has no layout for bucket [20, 1, 0]}}
plan.program @missing stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// Offsets are aligned.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @alignment stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  // expected-error @+1 {{offset 648 of buffer 1 is not a multiple of 64}}
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 648] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// Offsets are not below 0.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @below stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  // expected-error @+1 {{offset -64 of buffer 0 is not a multiple of 64}}
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [-64, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// Buffers end inside the arena.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @outside stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  // expected-error @+1 {{buffer 1 at 704 has 640 bytes, the arena 1280}}
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 704] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// Two live buffers share no byte.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @shared stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  // expected-error @+1 {{buffers 0 and 1 share bytes at 576 while both are live at step "b"}}
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 576] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// Outputs live to the end.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @shared_at_end stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  %z = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.step "c" @slice domain(rows) ins(%y : !plan.buf<tokens, 16 x f32>) outs(%z : !plan.buf<tokens, 16 x f32>)
  plan.output "x" %x : !plan.buf<tokens, 16 x f32>
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  // expected-error @+1 {{buffers 0 and 2 share bytes at 0 while both are live at step "c"}}
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640, 0] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// The lower bound is what it says.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @lower_bound stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  // expected-error @+1 {{lower_bound is 1216, the most live bytes are 1280}}
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1216 : i64, scratch = 0 : i64}
}

// -----

// Scratch is what the kernels need.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @scratch stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  // expected-error @+1 {{scratch is 64, a worker needs 0}}
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 64 : i64}
}

// -----

// A key has one kernel.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
// expected-error @+1 {{has the key of @slice}}
plan.kernel @slice2 slice {width_in = 16, begin = 0, width = 16}
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @same_key stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}

// -----

// An expression is packed once per type.
batten.stage @s [[10, 1, 0]]
plan.packed @t : !plan.table<4x16xf32>
plan.kernel @embed embed {width = 16, words, offset = 0}
plan.kernel @slice slice {width_in = 16, begin = 0, width = 16}
batten.weight @w from "w" : tensor<4x16xf32>
plan.packed @a @w : !plan.table<4x16xf32>
// expected-error @+1 {{is the same as @a}}
plan.packed @b @w : !plan.table<4x16xf32>
plan.kernel @relu activation {width = 16, act = "relu"} overwrite
plan.program @same_weight stage(@s) {
  %t = plan.weight @t : !plan.table<4x16xf32>
  %x = plan.buffer : !plan.buf<tokens, 16 x f32>
  %y = plan.buffer : !plan.buf<tokens, 16 x f32>
  plan.step "a" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
  plan.step "b" @slice domain(rows) ins(%x : !plan.buf<tokens, 16 x f32>) outs(%y : !plan.buf<tokens, 16 x f32>)
  plan.output "y" %y : !plan.buf<tokens, 16 x f32>
  plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640] {arena = 1280 : i64, lower_bound = 1280 : i64, scratch = 0 : i64}
}
