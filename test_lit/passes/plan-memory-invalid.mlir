// RUN: batten-opt %s --plan-memory --split-input-file --verify-diagnostics

// Without a stage there are no buckets.
// expected-error @+1 {{has no stage: there is no bucket to place buffers for}}
plan.program @no_stage {
}

// -----

// An arena that no machine can map is refused: 2^31 - 1 rows of 2^24 elements, and a cache line against aliasing.
batten.stage @s [[2147483647, 1, 0]]
// expected-error @+1 {{bucket [2147483647, 1, 0] needs an arena of 144115325447700416 bytes, at most 70368744177664 are possible}}
plan.program @too_large stage(@s) {
  %x = plan.buffer : !plan.buf<tokens, 16777216 x f32>
  plan.step "a" {op = "l2_normalize", width = 16777215, eps = 1.0e-5 : f32} domain(rows)
    inout(%x : !plan.buf<tokens, 16777216 x f32>) {overwrite}
}

// -----

// Scratch is a matter of the kernel's key, so that must be sound.
batten.stage @s [[32, 8, 0]]
plan.program @key stage(@s) {
  %x = plan.buffer : !plan.buf<tokens, 24 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{head_width}}
  plan.step "a" {op = "attention", heads = 1, scale = 1.0 : f32} domain(tasks) ins(%x : !plan.buf<tokens, 24 x f32>)
    outs(%y : !plan.buf<tokens, 8 x f32>)
}

// -----

// The runtime counts a step's work units in 32 bits: slabs of 672 rows times 32-column panels here.
batten.stage @s [[2147483647, 1, 0]]
plan.program @panels stage(@s) {
  %x = plan.buffer : !plan.buf<tokens, 1 x f32>
  %y = plan.buffer : !plan.buf<tokens, 65536 x f32>
  // expected-error @+1 {{has 6544713728 work units in bucket [2147483647, 1, 0], at most 4294967295 are possible}}
  plan.step "a" {op = "linear", act = "none", k = 1 : i64, n = 65536 : i64} domain(panels)
    ins(%x : !plan.buf<tokens, 1 x f32>) outs(%y : !plan.buf<tokens, 65536 x f32>)
}
