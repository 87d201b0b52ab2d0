// RUN: batten-opt %s --split-input-file --verify-diagnostics
// What the plan dialect refuses: one case per diagnostic, named by its constraint.

// buf_c1.
// expected-error @+1 {{a buffer's width must be from 1 to 16777216, found 0}}
plan.packed @buf_c1 : !plan.buf<tokens, 0 x f32>

// -----

// buf_c2.
// expected-error @+1 {{a buffer's elements must be f32, found 'f16'}}
plan.packed @buf_c2 : !plan.buf<tokens, 8 x f16>

// -----

// panels_c1.
// expected-error @+1 {{a weight's sizes must be from 1 to 2147483647, found 0 x 8}}
plan.packed @panels_c1 : !plan.panels<0x8xf32>

// -----

// table_c2.
// expected-error @+1 {{a weight's elements must be f32, f16 or bf16, found 'i8'}}
plan.packed @table_c2 : !plan.table<4x8xi8>

// -----

// A matrix has two sizes.
// expected-error @+1 {{wants two sizes, found 1}}
plan.packed @panels : !plan.panels<8xf32>

// -----

// A vector has one size.
// expected-error @+1 {{wants one size, found 2}}
plan.packed @vector : !plan.vector<4x8xf32>

// -----

// An expression has operands.
batten.weight @w from "w" : tensor<8x4xf32>
batten.weight @v from "v" : tensor<8xf32>
// expected-error @+1 {{expected a weight expression}}
plan.packed @p concat(@w, 3) : !plan.panels<8x4xf32>

// -----

// Expressions are not nested without end.
batten.weight @w from "w" : tensor<8x4xf32>
batten.weight @v from "v" : tensor<8xf32>
// expected-error @+1 {{weight expression is nested deeper than 8}}
plan.packed @p transpose(transpose(transpose(transpose(transpose(transpose(transpose(transpose(transpose(@w))))))))) : !plan.panels<8x4xf32>

// -----

// An attribute is an expression, not a symbol.
// expected-error @+1 {{expected concat, scale, transpose, cast or rope}}
module attributes {plan.test = #plan.expr<@w>} {}

// -----

// expr_c2: scale.
batten.weight @w from "w" : tensor<8x4xf32>
batten.weight @v from "v" : tensor<8xf32>
// expected-error @+1 {{scale needs a finite f32 factor}}
plan.packed @p scale(@w) : !plan.panels<8x4xf32>

// -----

// expr_c2: cast.
batten.weight @w from "w" : tensor<8x4xf32>
batten.weight @v from "v" : tensor<8xf32>
// expected-error @+1 {{cast needs a type among f32, f16, bf16 and i8}}
plan.packed @p cast(@w, i16) : !plan.panels<8x4xf32>

// -----

// packed_c4: a cast to i8 is for dot panels.
batten.weight @w from "w" : tensor<8x4xf32>
// expected-error @+1 {{type is '!plan.panels<8x4xf32>', the expression a cast to i8}}
plan.packed @p cast(@w, i8) : !plan.panels<8x4xf32>

// -----

// packed_c4: dot panels of i8 are a cast.
batten.weight @w from "w" : tensor<8x4xf32>
// expected-error @+1 {{type is '!plan.dot_panels<8x4xi8>', the expression no cast to i8}}
plan.packed @p @w : !plan.dot_panels<8x4xi8>

// -----

// packed_c4: outermost.
batten.weight @w from "w" : tensor<8x4xf32>
// expected-error @+1 {{cast to i8 is outermost or nowhere}}
plan.packed @p transpose(cast(@w, i8)) : !plan.panels<4x8xf32>

// -----

// dot_panels_c1.
// expected-error @+1 {{a weight's sizes must be from 1 to 2147483647, found 8 x 0}}
plan.packed @dot_panels_c1 : !plan.dot_panels<8x0xbf16>

// -----

// dot_panels_c2.
// expected-error @+1 {{dot panels have elements of bf16 or i8, found 'f16'}}
plan.packed @dot_panels_c2 : !plan.dot_panels<8x4xf16>

// -----

// expr_c2: transpose.
batten.weight @w from "w" : tensor<8x4xf32>
batten.weight @v from "v" : tensor<8xf32>
// expected-error @+1 {{transpose takes no number and no type}}
plan.packed @p transpose(@w, 2.0) : !plan.panels<4x8xf32>

// -----

// expr_c2: rope, zero.
// expected-error @+1 {{rope needs a finite f32 theta above 0, and perhaps such a divisor}}
plan.packed @p rope(0.0) : !plan.table<8x4xf32>

// -----

// expr_c2: rope, negative.
// expected-error @+1 {{rope needs a finite f32 theta above 0, and perhaps such a divisor}}
plan.packed @p rope(-2.0) : !plan.table<8x4xf32>

// -----

// expr_c2: rope, infinite.
// expected-error @+1 {{rope needs a finite f32 theta above 0, and perhaps such a divisor}}
plan.packed @p rope(0x7F800000) : !plan.table<8x4xf32>

// -----

// expr_c2: rope, no number.
// expected-error @+1 {{rope needs a finite f32 theta above 0, and perhaps such a divisor}}
plan.packed @p rope(0x7FC00000) : !plan.table<8x4xf32>

// -----

// expr_c2: rope, divisor.
// expected-error @+1 {{rope needs a finite f32 theta above 0, and perhaps such a divisor}}
plan.packed @p rope(1.0, 0.0) : !plan.table<8x4xf32>

// -----

// expr_c2: rope, three numbers.
// expected-error @+1 {{rope needs a finite f32 theta above 0, and perhaps such a divisor}}
plan.packed @p rope(1.0, 1.0, 1.0) : !plan.table<8x4xf32>

// -----

// A rope is no operand.
batten.weight @w from "w" : tensor<8x4xf32>
// expected-error @+1 {{rope is a table by itself, no part of another expression}}
plan.packed @p concat(@w, rope(10000.0)) : !plan.table<16x4xf32>

// -----

// kernel_c1: no identifier.
// expected-error @+1 {{key needs an op: letters, digits and underscores}}
plan.kernel @kernel_c1 "a b" {}

// -----

// kernel_c1: twice.
// expected-error @+1 {{the key's op is given twice}}
plan.kernel @kernel_c1 add {op = "add"}

// -----

// kernel_c2: a value.
// expected-error @+1 {{key attribute 'width' must be an i64 from 0 to 2^31 - 1, f32, a string, a flag or an array of i64, found -1 : i64}}
plan.kernel @kernel_c2 add {width = -1}

// -----

// kernel_c2: a name.
// expected-error @+1 {{key attribute 'a.b' must be named by an identifier}}
plan.kernel @kernel_c2 add {a.b = 1}

// -----

// kernel_c3.
// expected-error @+1 {{slab_rows must be from 1 to 2147483647, found 0}}
plan.kernel @kernel_c3 linear {} {slab_rows = 0 : i64}

// -----

// kernel_c4: together.
// expected-error @+1 {{needs entry and entry_bytes together}}
plan.kernel @kernel_c4 linear {} {entry = 0 : i64}

// -----

// kernel_c4: bounds.
// expected-error @+1 {{entry must be at least 0 and entry_bytes at least 1, found 0 and 0}}
plan.kernel @kernel_c4 linear {} {entry = 0 : i64, entry_bytes = 0 : i64}

// -----

// packed_c1: type.
// expected-error @+1 {{must be panels, a table or a vector, found 'f32'}}
plan.packed @packed_c1 : f32

// -----

// packed_c1: expression.
// expected-error @+1 {{expression must be a symbol or a weight expression, found 3 : i64}}
"plan.packed"() <{sym_name = "packed_c1", expr = 3, type = !plan.vector<8xf32>}> : () -> ()

// -----

// packed_c2: no weight.
// expected-error @+1 {{@nowhere is not a batten.weight of this module}}
plan.packed @packed_c2 @nowhere : !plan.vector<8xf32>

// -----

// packed_c2: concat.
batten.weight @w from "w" : tensor<8x4xf32>
batten.weight @v from "v" : tensor<8xf32>
// expected-error @+1 {{concat joins [8, 4] and [8]}}
plan.packed @packed_c2 concat(@w, @v) : !plan.panels<16x4xf32>

// -----

// packed_c2: transpose.
batten.weight @w from "w" : tensor<8x4xf32>
batten.weight @v from "v" : tensor<8xf32>
// expected-error @+1 {{transpose takes a matrix, found [8]}}
plan.packed @packed_c2 transpose(@v) : !plan.panels<8x1xf32>

// -----

// packed_c2: the type.
batten.weight @w from "w" : tensor<8x4xf32>
batten.weight @v from "v" : tensor<8xf32>
// expected-error @+1 {{expression gives [16, 4], the type is [8, 4]}}
plan.packed @packed_c2 concat(@w, @w) : !plan.panels<8x4xf32>

// -----

// packed_c2: rope, panels.
// expected-error @+1 {{rope gives a table of f32 with an even number of columns, the type is '!plan.panels<8x4xf32>'}}
plan.packed @packed_c2 rope(10000.0) : !plan.panels<8x4xf32>

// -----

// packed_c2: rope, odd.
// expected-error @+1 {{rope gives a table of f32 with an even number of columns, the type is '!plan.table<8x5xf32>'}}
plan.packed @packed_c2 rope(10000.0) : !plan.table<8x5xf32>

// -----

// packed_c2: rope, f16.
// expected-error @+1 {{rope gives a table of f32 with an even number of columns, the type is '!plan.table<8x4xf16>'}}
plan.packed @packed_c2 rope(10000.0) : !plan.table<8x4xf16>

// -----

// packed_c3: together.
// expected-error @+1 {{needs offset and bytes together}}
plan.packed @packed_c3 : !plan.vector<8xf32> {offset = 0 : i64}

// -----

// packed_c3: bounds.
// expected-error @+1 {{offset and bytes must be multiples of 64, at least 0 and 64, found 4 and 64}}
plan.packed @packed_c3 : !plan.vector<8xf32> {offset = 4 : i64, bytes = 64 : i64}

// -----

// program_c1.
plan.program @program_c1 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{'batten.stage' does not belong in a plan.program}}
  "batten.stage"() <{sym_name = "s", buckets = [array<i64: 1, 1, 0>]}> : () -> ()
}

// -----

// program_c2: labels.
plan.program @program_c2 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  plan.step "a" {op = "add"} domain(rows) ins(%x : !plan.buf<tokens, 8 x f32>) outs(%y : !plan.buf<tokens, 8 x f32>)
  // expected-error @+1 {{label "a" is there twice}}
  plan.step "a" {op = "add"} domain(rows) ins(%x : !plan.buf<tokens, 8 x f32>) outs(%y : !plan.buf<tokens, 8 x f32>)
}

// -----

// program_c2: outputs.
plan.program @program_c2 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  plan.output "o" %x : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{name "o" is there twice}}
  plan.output "o" %y : !plan.buf<tokens, 8 x f32>
}

// -----

// program_c3.
// expected-error @+1 {{id_count must be from 0 to 2147483647, found -1}}
plan.program @program_c3 attributes {id_count = -1 : i64} {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>

}

// -----

// program_c3: types of sequences.
// expected-error @+1 {{seq_type_count must be from 0 to 2147483647, found 2147483648}}
plan.program @program_c3 attributes {seq_type_count = 2147483648 : i64} {
}

// -----

// program_c4.
// expected-error @+1 {{digest must be 64 lower case hex digits, found "abc"}}
plan.program @program_c4 attributes {image_digest = "abc"} {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>

}

// -----

// program_c5.
// expected-error @+1 {{stage @nowhere is not a batten.stage of this module}}
plan.program @program_c5 stage(@nowhere) {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>

}

// -----

// weight_c1: no packed weight.
plan.program @weight_c1 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{@nowhere is not a plan.packed of this module}}
  %w = plan.weight @nowhere : !plan.vector<8xf32>
}

// -----

// weight_c1: type.
plan.packed @p : !plan.vector<8xf32>
plan.program @weight_c1 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{has type '!plan.vector<9xf32>', @p is '!plan.vector<8xf32>'}}
  %w = plan.weight @p : !plan.vector<9xf32>
}

// -----

// step_c1.
plan.program @step_c1 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{has an empty label}}
  plan.step "" {op = "add"} domain(rows) ins(%x : !plan.buf<tokens, 8 x f32>) outs(%y : !plan.buf<tokens, 8 x f32>)
}

// -----

// step_c2: key.
plan.program @step_c2 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{key needs an op: letters, digits and underscores}}
  plan.step "a" {width = 8} domain(rows) ins(%x : !plan.buf<tokens, 8 x f32>) outs(%y : !plan.buf<tokens, 8 x f32>)
}

// -----

// step_c2: symbol.
plan.program @step_c2 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{@nowhere is not a plan.kernel of this module}}
  plan.step "a" @nowhere domain(rows) ins(%x : !plan.buf<tokens, 8 x f32>) outs(%y : !plan.buf<tokens, 8 x f32>)
}

// -----

// step_c3.
plan.program @step_c3 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{writes 2 buffers, one wanted}}
  plan.step "a" {op = "add"} domain(rows) inout(%x : !plan.buf<tokens, 8 x f32>) outs(%y : !plan.buf<tokens, 8 x f32>) {overwrite}
}

// -----

// step_c4.
plan.program @step_c4 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{reads and writes one buffer: that is inout}}
  plan.step "a" {op = "add"} domain(rows) ins(%x : !plan.buf<tokens, 8 x f32>) outs(%x : !plan.buf<tokens, 8 x f32>)
}

// -----

// step_c5.
plan.program @step_c5 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{has 9 pointers, a kernel takes at most 8}}
  plan.step "a" {op = "add"} domain(rows) ins(%x, %x, %x, %x, %x, %x, %x, %x : !plan.buf<tokens, 8 x f32>, !plan.buf<tokens, 8 x f32>, !plan.buf<tokens, 8 x f32>, !plan.buf<tokens, 8 x f32>, !plan.buf<tokens, 8 x f32>, !plan.buf<tokens, 8 x f32>, !plan.buf<tokens, 8 x f32>, !plan.buf<tokens, 8 x f32>) outs(%y : !plan.buf<tokens, 8 x f32>)
}

// -----

// step_c6: key.
plan.program @step_c6 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{is in place, but its kernel does not overwrite its input}}
  plan.step "a" {op = "add"} domain(rows) inout(%x : !plan.buf<tokens, 8 x f32>)
}

// -----

// step_c6: symbol.
plan.kernel @k pool {}
plan.program @step_c6 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{is in place, but kernel @k does not overwrite its input}}
  plan.step "a" @k domain(rows) inout(%x : !plan.buf<tokens, 8 x f32>)
}

// -----

// step_c7.
plan.program @step_c7 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{has a cost below 0: -1}}
  plan.step "a" {op = "add"} domain(rows) ins(%x : !plan.buf<tokens, 8 x f32>) outs(%y : !plan.buf<tokens, 8 x f32>) {flops_per_row = -1 : i64}
}

// -----

// output_c1.
plan.program @output_c1 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{has an empty name}}
  plan.output "" %x : !plan.buf<tokens, 8 x f32>
}

// -----

// layout_c1.
plan.program @layout_c1 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{bucket must be [tokens, seqs, markers] with tokens and seqs at least 1, found [0, 8, 0]}}
  plan.layout @b bucket [0, 8, 0] offsets [0, 0] {arena = 0 : i64, lower_bound = 0 : i64, scratch = 0 : i64}
}

// -----

// layout_c2.
plan.program @layout_c2 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{has 1 offsets for 2 buffers}}
  plan.layout @b bucket [32, 8, 0] offsets [0] {arena = 0 : i64, lower_bound = 0 : i64, scratch = 0 : i64}
}

// -----

// layout_c3.
plan.program @layout_c3 {
  %x = plan.buffer : !plan.buf<tokens, 8 x f32>
  %y = plan.buffer : !plan.buf<tokens, 8 x f32>
  // expected-error @+1 {{arena must be at least 0, found -64}}
  plan.layout @b bucket [32, 8, 0] offsets [0, 0] {arena = -64 : i64, lower_bound = 0 : i64, scratch = 0 : i64}
}
