// RUN: batten-opt %s --split-input-file --verify-diagnostics
// What the batten dialect refuses of modules, graphs and weights: one case per diagnostic, named by its constraint.

// batten_c1: another version is refused.
// expected-error @+1 {{batten.version is 2 : i32, this build reads 1 : i32}}
module attributes {batten.version = 2 : i32} {}

// -----

// batten_c1: the version is an i32.
// expected-error @+1 {{batten.version is "1", this build reads 1 : i32}}
module attributes {batten.version = "1"} {}

// -----

// Attributes of the dialect that it does not know are refused.
// expected-error @+1 {{unknown attribute 'batten.verison' of the batten dialect}}
module attributes {batten.verison = 1 : i32} {}

// -----

// batten.unused holds names.
// expected-error @+1 {{batten.unused must be an array of strings, found 3 : i64}}
module attributes {batten.unused = 3} {}

// -----

// batten_c2: no tokens at all.
module {
  // expected-error @+1 {{batten.max_seq_tokens is an i64 of at least 1 on a graph, found 0 : i64}}
  batten.graph @batten_c2(%ids: !batten.ids) -> (x: tensor<?x8xf32, #batten.rows<tokens>>)
      attributes {batten.max_seq_tokens = 0 : i64} {
    %t = batten.param @t : tensor<4x8xf32>
    %x = batten.embed %ids, %t : tensor<4x8xf32>
    batten.return %x : tensor<?x8xf32, #batten.rows<tokens>>
  }
  batten.weight @t from "t" : tensor<4x8xf32>
}

// -----

// batten_c2: on something else than a graph.
// expected-error @+1 {{batten.max_seq_tokens is an i64 of at least 1 on a graph, found 64 : i64}}
module attributes {batten.max_seq_tokens = 64 : i64} {}

// -----

// Precisions are known by name.
// expected-error @+1 {{batten.math is "f64", "f32", "f16", "bf16" or "i8" wanted}}
module attributes {batten.math = "f64"} {}

// -----

// rows_c1.
// expected-error @+1 {{a tensor of rows must be ?xW with W at least 1, found 2 dimensions or other sizes}}
batten.weight @rows_c1 from "w" : tensor<4x8xf32, #batten.rows<tokens>>

// -----

// weight_c1: three dimensions.
// expected-error @+1 {{must be a vector or matrix of f32, f16 or bf16 with constant sizes of at least 1, found }}
batten.weight @weight_c1 from "w" : tensor<4x8x2xf32>

// -----

// weight_c1: integers.
// expected-error @+1 {{must be a vector or matrix of f32, f16 or bf16}}
batten.weight @weight_c1 from "w" : tensor<4xi64>

// -----

// weight_c2.
// expected-error @+1 {{has 1 entries in dims for 2 dimensions}}
batten.weight @weight_c2 from "w" dims ["n"] : tensor<4x8xf32>

// -----

// stored_c1.
// expected-error @+1 {{needs constant sizes, found }}
batten.stored "stored_c1" in "" file "model.safetensors" : tensor<?xf32>

// -----

// stage_c1: no bucket.
// expected-error @+1 {{has no bucket}}
batten.stage @stage_c1 []

// -----

// stage_c1: two numbers.
// expected-error @+1 {{bucket 0 has 2 numbers, 3 wanted: tokens, seqs, markers}}
batten.stage @stage_c1 [[32, 8]]

// -----

// stage_c2.
// expected-error @+1 {{bucket 1 is [32, 0, 0]: tokens and seqs must be at least 1, markers at least 0, all below 2^31}}
batten.stage @stage_c2 [[16, 1, 0], [32, 0, 0]]

// -----

// stage_c3.
// expected-error @+1 {{bucket 1, [32, 8, 0], must come after [32, 8, 0]: buckets ascend and differ}}
batten.stage @stage_c3 [[32, 8, 0], [32, 8, 0]]

// -----

// graph_c1: another type.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
// expected-error @+1 {{argument 0 must be !batten.ids, !batten.types, !batten.seq_types or !batten.segments, found 'i32'}}
"batten.graph"() <{sym_name = "graph_c1", function_type = (i32) -> (), result_names = []}> ({
^bb0(%a: i32):
  "batten.return"() : () -> ()
}) : () -> ()

// -----

// graph_c1: an argument twice.
// expected-error @+1 {{takes '!batten.ids' twice}}
"batten.graph"() <{sym_name = "graph_c1", function_type = (!batten.ids, !batten.ids) -> (), result_names = []}> ({
^bb0(%a: !batten.ids, %b: !batten.ids):
  "batten.return"() : () -> ()
}) : () -> ()

// -----

// graph_c2: no result.
// expected-error @+1 {{has no result}}
batten.graph @graph_c2(%ids: !batten.ids) -> () {
  batten.return
}

// -----

// graph_c2: names and results disagree.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
// expected-error @+1 {{has 1 result names for 2 results}}
"batten.graph"() <{sym_name = "graph_c2", function_type = (!batten.ids) -> (tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>), result_names = ["x"]}> ({
^bb0(%ids: !batten.ids):
//(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>

  batten.return %x, %x : tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>
}) : () -> ()

// -----

// graph_c2: a name twice.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
// expected-error @+1 {{result name "x" is empty or there twice}}
batten.graph @graph_c2(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>, x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>

  batten.return %x, %x : tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>
}

// -----

// graph_c3: a result that is no rows.
// expected-error @+1 {{result 0 must be rows of f32, found 'tensor<8xf32>'}}
"batten.graph"() <{sym_name = "graph_c3", function_type = () -> (tensor<8xf32>), result_names = ["x"]}> ({
  "batten.return"() : () -> ()
}) : () -> ()

// -----

// graph_c4.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
// expected-error @+1 {{stage @nowhere is not a batten.stage of this module}}
batten.graph @graph_c4(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) attributes {stage = @nowhere} {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>

  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// return_c1: another number.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @return_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>

  // expected-error @+1 {{gives 2 values, the graph has 1 results}}
  batten.return %x, %x : tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>
}

// -----

// return_c1: another type.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @return_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %y = batten.slice %x begin 0 width 4 : tensor<?x8xf32, #tokens>
  // expected-error @+1 {{value 0 is 'tensor<?x4xf32, #batten.rows<tokens>>', the graph's result is 'tensor<?x8xf32, #batten.rows<tokens>>'}}
  batten.return %y : tensor<?x4xf32, #tokens>
}

// -----

// param_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @param_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{@nowhere is not a batten.weight of this module}}
  %y = batten.param @nowhere : tensor<8x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// param_c2.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @param_c2(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{has type 'tensor<9x8xf32>', weight @w is 'tensor<8x8xf32>'}}
  %y = batten.param @w : tensor<9x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// concat joins weights only.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @concat(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{'batten.concat' op joins weights, found '!batten.ids'}}
  %y = batten.concat %ids, %w : !batten.ids, tensor<8x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// concat_c1: no operand.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @concat_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{needs at least one operand}}
  %y = "batten.concat"() : () -> tensor<8x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// concat_c1: ranks disagree.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @concat_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{operand 1 is 'tensor<8xf32>', operand 0 is 'tensor<8x8xf32>': ranks and element types must agree}}
  %y = batten.concat %w, %v : tensor<8x8xf32>, tensor<8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// concat_c2.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.weight @wide from "wide" : tensor<8x9xf32>
batten.graph @concat_c2(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %p = batten.param @wide : tensor<8x9xf32>
  // expected-error @+1 {{operand 1 has 9 columns, operand 0 has 8}}
  %y = batten.concat %w, %p : tensor<8x8xf32>, tensor<8x9xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// scale_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @scale_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{factor is not finite}}
  %y = batten.scale %w by 0x7F800000 : tensor<8x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// A vector has no transpose.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @transpose(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{'batten.transpose' op takes a matrix, found 'tensor<8xf32>'}}
  %y = batten.transpose %v : tensor<8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// cast_c2: vectors have no scale for each row.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @cast_c2(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{makes i8 of a matrix of another type only, found 'tensor<8xf32>' to 'tensor<8xi8>'}}
  %y = batten.cast %v : tensor<8xf32> to tensor<8xi8>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// cast_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @cast_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{has shape [8, 9], the operand [8, 8]}}
  %y = batten.cast %w : tensor<8x8xf32> to tensor<8x9xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}
