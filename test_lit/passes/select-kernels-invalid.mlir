// RUN: batten-opt %s --select-kernels --split-input-file --verify-diagnostics

!x = !plan.buf<tokens, 384 x f32>
plan.program @unknown_op {
  %x = plan.buffer : !x
  // expected-error @+1 {{unknown op 'twist'}}
  plan.step "a" {op = "twist", width = 384} domain(rows) outs(%x : !x)
}

// -----

!x = !plan.buf<tokens, 384 x f32>
plan.program @domain {
  %y = plan.buffer : !x
  %x = plan.buffer : !x
  // expected-error @+1 {{domain is panels, the kernel's is rows}}
  plan.step "a" {op = "add", width = 384} domain(panels) ins(%x, %x : !x, !x) outs(%y : !x)
}

// -----

!x = !plan.buf<tokens, 384 x f32>
plan.program @pointers {
  %x = plan.buffer : !x
  %y = plan.buffer : !x
  // expected-error @+1 {{has 2 pointers, the kernel takes 3}}
  plan.step "a" {op = "add", width = 384} domain(rows) ins(%x : !x) outs(%y : !x)
}
