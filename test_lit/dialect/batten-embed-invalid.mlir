// RUN: batten-opt %s --split-input-file --verify-diagnostics
// What the embedding ops refuse: one case per diagnostic, named by its constraint.

// embed: the table is a weight.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @embed(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{'batten.embed' op takes a weight matrix as its table, found 'tensor<8xf32>'}}
  %y = batten.embed %ids, %v : tensor<8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// embed_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.weight @half from "half" : tensor<20x8xf16>
batten.weight @halfv from "halfv" : tensor<8xf16>
batten.weight @halfw from "halfw" : tensor<8x8xf16>
batten.graph @embed_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %h = batten.cast %t : tensor<20x8xf32> to tensor<20x8xi8>
  // expected-error @+1 {{table must be f32, f16 or bf16, found 'tensor<20x8xi8>'}}
  %y = batten.embed %ids, %h : tensor<20x8xi8>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// embed_types_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.weight @half from "half" : tensor<20x8xf16>
batten.weight @halfv from "halfv" : tensor<8xf16>
batten.weight @halfw from "halfw" : tensor<8x8xf16>
batten.graph @embed_types_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %h = batten.cast %t : tensor<20x8xf32> to tensor<20x8xi8>
  // expected-error @+1 {{table must be f32, f16 or bf16, found 'tensor<20x8xi8>'}}
  %y = batten.embed_types %types, %h : tensor<20x8xi8>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// embed_positions_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.weight @half from "half" : tensor<20x8xf16>
batten.weight @halfv from "halfv" : tensor<8xf16>
batten.weight @halfw from "halfw" : tensor<8x8xf16>
batten.graph @embed_positions_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %h = batten.cast %t : tensor<20x8xf32> to tensor<20x8xi8>
  // expected-error @+1 {{table must be f32, f16 or bf16, found 'tensor<20x8xi8>'}}
  %y = batten.embed_positions %seg, %h : tensor<20x8xi8>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// embed_positions_c2.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @embed_positions_c2(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{offset is 20, the table has 20 rows}}
  %y = batten.embed_positions %seg, %t {offset = 20 : i64} : tensor<20x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// embed_sum has a table.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @embed_sum(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{'batten.embed_sum' op has no table}}
  %y = batten.embed_sum
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// embed_sum_c1: one table.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @embed_sum_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{sums at least two tables, found 1}}
  %y = batten.embed_sum words(%ids, %t : tensor<20x8xf32>)
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// embed_sum_c1: two types.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.weight @half from "half" : tensor<20x8xf16>
batten.weight @halfv from "halfv" : tensor<8xf16>
batten.weight @halfw from "halfw" : tensor<8x8xf16>
batten.graph @embed_sum_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %h = batten.param @half : tensor<20x8xf16>
  // expected-error @+1 {{table is 'tensor<20x8xf16>', the first one 'tensor<20x8xf32>'}}
  %y = batten.embed_sum words(%ids, %t : tensor<20x8xf32>) types(%types, %h : tensor<20x8xf16>)
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// embed_sum_c2.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @embed_sum_c2(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{has a table without its indices or indices without their table}}
  %y = "batten.embed_sum"(%t, %types, %t) <{operandSegmentSizes = array<i32: 0, 1, 1, 1, 0, 0>}>
      : (tensor<20x8xf32>, !batten.types, tensor<20x8xf32>) -> tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// embed_sum_c3.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.weight @wide from "wide" : tensor<8x9xf32>
batten.graph @embed_sum_c3(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %p = batten.param @wide : tensor<8x9xf32>
  // expected-error @+1 {{table is 9 wide, the first one 8}}
  %y = batten.embed_sum words(%ids, %t : tensor<20x8xf32>) types(%types, %p : tensor<8x9xf32>)
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// embed_sum_c4.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @embed_sum_c4(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{offset is 1, the table has 1 rows}}
  %y = batten.embed_sum words(%ids, %t : tensor<20x8xf32>) types(%types, %t : tensor<20x8xf32>) {offset = 1 : i64}
  batten.return %x : tensor<?x8xf32, #tokens>
}
