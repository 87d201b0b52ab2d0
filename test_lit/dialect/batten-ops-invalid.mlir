// RUN: batten-opt %s --split-input-file --verify-diagnostics
// What the other ops on rows refuse: one case per diagnostic, named by its constraint.

// layer_norm_c1: not f32.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.weight @half from "half" : tensor<20x8xf16>
batten.weight @halfv from "halfv" : tensor<8xf16>
batten.weight @halfw from "halfw" : tensor<8x8xf16>
batten.graph @layer_norm_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %h = batten.param @halfv : tensor<8xf16>
  // expected-error @+1 {{weight must be f32, found 'tensor<8xf16>'}}
  %y = batten.layer_norm %x weight(%h : tensor<8xf16>) eps 1.0e-5 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// layer_norm_c1: another width.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @layer_norm_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %y = batten.slice %x begin 0 width 4 : tensor<?x8xf32, #tokens>
  // expected-error @+1 {{bias has 8 elements, rows are 4 wide}}
  %z = batten.layer_norm %y bias(%v : tensor<8xf32>) eps 1.0e-5 : tensor<?x4xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// layer_norm_c2.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @layer_norm_c2(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{eps must be finite and above 0, found 0}}
  %y = batten.layer_norm %x eps 0.0 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// linear: rows come first.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @linear(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{'batten.linear' op takes rows of f32, found 'tensor<8x8xf32>'}}
  %y = batten.linear %w, %w : tensor<8x8xf32>, tensor<8x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// linear: the weight is a matrix.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @linear(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{'batten.linear' op takes a weight matrix, found 'tensor<8xf32>'}}
  %y = batten.linear %x, %v : tensor<?x8xf32, #tokens>, tensor<8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// linear_c4: storage and math agree.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.weight @half from "half" : tensor<20x8xf16>
batten.weight @halfv from "halfv" : tensor<8xf16>
batten.weight @halfw from "halfw" : tensor<8x8xf16>
batten.graph @linear_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %h = batten.param @halfw : tensor<8x8xf16>
  // expected-error @+1 {{weight is f16, which math bf16 does not take}}
  %y = batten.linear %x, %h math bf16 : tensor<?x8xf32, #tokens>, tensor<8x8xf16>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// linear_c4: sums of i8 are math i8.
#tokens = #batten.rows<tokens>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.graph @linear_c4(%ids: !batten.ids) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %i = batten.cast %w : tensor<8x8xf32> to tensor<8x8xi8>
  // expected-error @+1 {{weight is i8, which math f32 does not take}}
  %y = batten.linear %x, %i : tensor<?x8xf32, #tokens>, tensor<8x8xi8>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// linear_c1: widths disagree.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @linear_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %y = batten.slice %x begin 0 width 4 : tensor<?x8xf32, #tokens>
  // expected-error @+1 {{rows are 4 wide, the weight takes 8}}
  %z = batten.linear %y, %w : tensor<?x4xf32, #tokens>, tensor<8x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// linear_c2: not f32.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.weight @half from "half" : tensor<20x8xf16>
batten.weight @halfv from "halfv" : tensor<8xf16>
batten.weight @halfw from "halfw" : tensor<8x8xf16>
batten.graph @linear_c2(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %h = batten.param @halfv : tensor<8xf16>
  // expected-error @+1 {{bias must be f32, found 'tensor<8xf16>'}}
  %y = batten.linear %x, %w bias(%h : tensor<8xf16>) : tensor<?x8xf32, #tokens>, tensor<8x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// linear_c2: another size.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @linear_c2(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{bias has 8 elements, the weight gives 20}}
  %y = batten.linear %x, %t bias(%v : tensor<8xf32>) : tensor<?x8xf32, #tokens>, tensor<20x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// linear_c3.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @linear_c3(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{residual is 'tensor<?x8xf32, #batten.rows<tokens>>', the result 'tensor<?x20xf32, #batten.rows<tokens>>'}}
  %y = batten.linear %x, %t residual(%x : tensor<?x8xf32, #tokens>) : tensor<?x8xf32, #tokens>, tensor<20x8xf32>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// attention_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @attention_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{attribute 'heads' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 1}}
  %y = batten.attention %x, %seg heads 0 head_width 8 scale 0.5 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// attention_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @attention_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{attribute 'kv_heads' failed to satisfy constraint}}
  %y = batten.attention %x, %seg heads 1 kv_heads 0 head_width 8 scale 0.5 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// attention_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @attention_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{attribute 'window' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 0 whose maximum value is 16777216}}
  %y = batten.attention %x, %seg heads 1 head_width 8 window -1 scale 0.5 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// attention_c2.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @attention_c2(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{rows are 8 wide, 2 heads of 4 with 2 for keys and values need 24}}
  %y = batten.attention %x, %seg heads 2 head_width 4 scale 0.5 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// attention_c2.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @attention_c2(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{rows are 8 wide, 2 heads of 4 with 1 for keys and values need 16}}
  %y = batten.attention %x, %seg heads 2 kv_heads 1 head_width 4 scale 0.5 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// attention_c3.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @attention_c3(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %q = batten.concat_cols %x, %x, %x : tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>
  // expected-error @+1 {{scale is not finite}}
  %y = batten.attention %q, %seg heads 2 head_width 4 scale 0x7FC00000 : tensor<?x24xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// attention_c4.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @attention_c4(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %q = batten.concat_cols %x, %x, %x : tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>
  // expected-error @+1 {{2 heads are no multiple of 3 kv_heads}}
  %y = batten.attention %q, %seg heads 2 kv_heads 3 head_width 3 scale 0.5 : tensor<?x24xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// activation_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @activation_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{has no function: 'none'}}
  %y = batten.activation none %x : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// A pool takes rows per token.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @pool(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %y = batten.pool cls %x, %seg : tensor<?x8xf32, #tokens>
  // expected-error @+1 {{operand #0 must be rows of f32, one per token}}
  %z = batten.pool cls %y, %seg : tensor<?x8xf32, #seqs>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// l2_normalize_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @l2_normalize_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{eps must be finite and above 0, found -1.0}}
  %y = batten.l2_normalize %x eps -1.0 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// slice_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @slice_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{'batten.slice' op takes 5 columns from 4 of rows 8 wide}}
  %y = batten.slice %x begin 4 width 5 : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// concat_cols_c1.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @concat_cols_c1(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  // expected-error @+1 {{'batten.concat_cols' op joins 1 to 6 rows, found 7}}
  %y = batten.concat_cols %x, %x, %x, %x, %x, %x, %x : tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>,
      tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>, tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// concat_cols_c2.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @concat_cols_c2(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %p = batten.pool cls %x, %seg : tensor<?x8xf32, #tokens>
  // expected-error @+1 {{operand 0 has rows per seqs, the last one per tokens}}
  %y = batten.concat_cols %p, %x : tensor<?x8xf32, #seqs>, tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}

// -----

// Rows of two kinds are not added.
#tokens = #batten.rows<tokens>
#seqs = #batten.rows<seqs>
batten.weight @table from "t" : tensor<20x8xf32>
batten.weight @w from "w" : tensor<8x8xf32>
batten.weight @v from "v" : tensor<8xf32>
batten.graph @add(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: tensor<?x8xf32, #tokens>) {
  %t = batten.param @table : tensor<20x8xf32>
  %w = batten.param @w : tensor<8x8xf32>
  %v = batten.param @v : tensor<8xf32>
  %x = batten.embed %ids, %t : tensor<20x8xf32>
  %p = batten.pool cls %x, %seg : tensor<?x8xf32, #tokens>
  // expected-note @-1 {{prior use here}}
  // expected-error @+1 {{expects different type than prior uses}}
  %y = batten.add %p, %x : tensor<?x8xf32, #tokens>
  batten.return %x : tensor<?x8xf32, #tokens>
}
