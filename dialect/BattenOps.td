// The batten dialect's ops on rows: each becomes one kernel (KernelOpInterface), is pure, and infers its result type.
// PyTorch's semantics unless said. Included by BattenDialect.td only.
#ifndef BATTEN_DIALECT_BATTENOPS
#define BATTEN_DIALECT_BATTENOPS

def Batten_Count : ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<65536>]>;

class Batten_KernelOp<string mnemonic, list<string> interfaceMethods = [], list<Trait> traits = []>
    : Batten_Op<mnemonic, !listconcat([Pure,
        DeclareOpInterfaceMethods<KernelOpInterface, interfaceMethods>], traits)>;

//===--- embeddings ----------------------------------------------------------------------------------------------===//

def Batten_EmbedOp : Batten_KernelOp<"embed", ["getBytesPerRow"], [InferTypeOpAdaptor]> {
  let summary = "row table[id] of each token";
  let description = "(C1) The table is f32, f16 or bf16.";
  let arguments = (ins Batten_IdsType:$ids, Batten_Matrix:$table);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$ids `,` $table attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def Batten_EmbedTypesOp : Batten_KernelOp<"embed_types", ["getBytesPerRow"], [InferTypeOpAdaptor]> {
  let summary = "row table[type] of each token; absent types are 0";
  let description = "(C1) The table is f32, f16 or bf16.";
  let arguments = (ins Batten_TypesType:$types, Batten_Matrix:$table);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$types `,` $table attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def Batten_EmbedPositionsOp : Batten_KernelOp<"embed_positions", ["getBytesPerRow"], [InferTypeOpAdaptor]> {
  let summary = "row table[position + offset] of each token; positions start at 0 in each sequence";
  let description = [{
    - (C1) The table is f32, f16 or bf16.
    - (C2) The offset is at least 0 and below the table's rows.
  }];
  let arguments = (ins Batten_SegmentsType:$segments, Batten_Matrix:$table,
      DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$segments `,` $table attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def Batten_EmbedSumOp : Batten_KernelOp<"embed_sum", ["getBytesPerRow"], [AttrSizedOperandSegments, InferTypeOpAdaptor]> {
  let summary = "sum of the embeddings of each token, in the order word + type + position";
  let description = [{
    What fuse makes of `embed`, `embed_types`, `embed_positions` and their `add`s.

    - (C1) Tables are of one type, f32, f16 or bf16, and there are at least two of them.
    - (C2) Each table comes with its indices: ids, types or segments.
    - (C3) Tables have equal widths.
    - (C4) The offset is at least 0 and below the position table's rows; 0 where there is none.
  }];
  let arguments = (ins Optional<Batten_IdsType>:$ids, Optional<Batten_Matrix>:$words,
      Optional<Batten_TypesType>:$types, Optional<Batten_Matrix>:$typeTable,
      Optional<Batten_SegmentsType>:$segments, Optional<Batten_Matrix>:$positions,
      DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = [{
    (`words` `(` $ids^ `,` $words `:` type($words) `)`)?
    (`types` `(` $types^ `,` $typeTable `:` type($typeTable) `)`)?
    (`positions` `(` $segments^ `,` $positions `:` type($positions) `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Batten_AddTypeOp : Batten_KernelOp<"add_type", ["getOverwritableOperand", "getBytesPerRow"],
    [AllTypesMatch<["x", "result"]>]> {
  let summary = "x + table[type of the row's sequence]; absent types are 0";
  let description = "(C1) The table is f32. (C2) It is as wide as the rows.";
  let arguments = (ins Batten_TokenRows:$x, Batten_SeqTypesType:$seq_types, Batten_Matrix:$table);
  let results = (outs Batten_TokenRows:$result);
  let assemblyFormat = "$x `,` $seq_types `,` $table attr-dict `:` type($x) `,` type($table)";
  let hasVerifier = 1;
}

//===--- layers --------------------------------------------------------------------------------------------------===//

def Batten_LayerNormOp : Batten_KernelOp<"layer_norm", ["getOverwritableOperand"],
    [AttrSizedOperandSegments, AllTypesMatch<["x", "result"]>]> {
  let summary = "normalises each row to mean 0 and variance 1 (two passes), then weight and bias";
  let description = [{
    - (C1) Weight and bias are f32 and as wide as the rows.
    - (C2) eps is finite and above 0.
  }];
  let arguments = (ins Batten_Rows:$x, Optional<Batten_Vector>:$weight, Optional<Batten_Vector>:$bias, F32Attr:$eps);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = [{
    $x (`weight` `(` $weight^ `:` type($weight) `)`)? (`bias` `(` $bias^ `:` type($bias) `)`)? `eps` $eps attr-dict
    `:` type($x)
  }];
  let hasVerifier = 1;
}

def Batten_RmsNormOp : Batten_KernelOp<"rms_norm", ["getOverwritableOperand"], [AllTypesMatch<["x", "result"]>]> {
  let summary = "divides each row by the root of its mean square (one pass), then weight";
  let description = [{
    y = x * (1 / sqrt(mean(x * x) + eps)) * weight.

    - (C1) The weight is f32 and as wide as the rows.
    - (C2) eps is finite and above 0.
  }];
  let arguments = (ins Batten_Rows:$x, Optional<Batten_Vector>:$weight, F32Attr:$eps);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$x (`weight` `(` $weight^ `:` type($weight) `)`)? `eps` $eps attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Batten_LinearOp : Batten_KernelOp<"linear", ["getWorkDomain", "getOverwritableOperand"],
    [AttrSizedOperandSegments, InferTypeOpAdaptor]> {
  let summary = "x wᵀ, then + bias, then the activation, then + residual";
  let description = [{
    Rows are f32 whatever the weight is and whatever `math` multiplies in; kernel.h says how each rounds.

    - (C1) The weight is [n, k], and the rows are k wide.
    - (C2) The bias is f32 and n wide.
    - (C3) The residual has the result's type.
    - (C4) The weight is f32, f16 or bf16 with math f32, otherwise of the math's type.
  }];
  let arguments = (ins Batten_Rows:$x, Batten_Matrix:$weight, Optional<Batten_Vector>:$bias,
      Optional<Batten_Rows>:$residual, DefaultValuedAttr<Batten_Activation, "::batten::Activation::none">:$act,
      DefaultValuedAttr<Batten_Math, "::batten::Math::f32">:$math);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = [{
    $x `,` $weight (`bias` `(` $bias^ `:` type($bias) `)`)? (`act` $act^)?
    (`residual` `(` $residual^ `:` type($residual) `)`)? (`math` $math^)? attr-dict `:` type($x) `,` type($weight)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$weight, CArg<"::mlir::Value", "{}">:$bias,
      CArg<"::batten::Activation", "::batten::Activation::none">:$act, CArg<"::mlir::Value", "{}">:$residual)>];
  let hasVerifier = 1;
}

def Batten_AttentionOp : Batten_KernelOp<"attention", ["getWorkDomain", "getFlopsPerPair"], [InferTypeOpAdaptor]> {
  let summary = "softmax(scale q kᵀ) v of each head, inside each sequence";
  let description = [{
    A row of `qkv` is [q of all heads | k of all kv_heads | v of all kv_heads]. Rows of different sequences never mix.
    Without kv_heads there are as many as heads; query head h reads key and value head h / (heads / kv_heads). With a
    window a query sees the keys of its sequence at most that far away on either side: 0 is itself only.

    - (C1) heads, kv_heads and head_width are at least 1, the window at least 0 (ODS).
    - (C2) qkv is (heads + 2 * kv_heads) * head_width wide.
    - (C3) The scale is finite.
    - (C4) heads is a multiple of kv_heads.
  }];
  let arguments = (ins Batten_TokenRows:$qkv, Batten_SegmentsType:$segments, Batten_Count:$heads,
      OptionalAttr<Batten_Count>:$kv_heads, Batten_Count:$head_width,
      OptionalAttr<ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<16777216>]>>:$window, F32Attr:$scale);
  let results = (outs Batten_TokenRows:$result);
  let assemblyFormat = [{
    $qkv `,` $segments `heads` $heads (`kv_heads` $kv_heads^)? `head_width` $head_width (`window` $window^)?
    `scale` $scale attr-dict `:` type($qkv)
  }];
  let hasVerifier = 1;
}

def Batten_RopeOp : Batten_KernelOp<"rope", ["getOverwritableOperand"], [AllTypesMatch<["qkv", "result"]>]> {
  let summary = "rotary embedding of the queries and keys of `[q | k | v]` rows";
  let description = [{
    Position p counts from the sequence's start. Elements (j, j + head_width / 2) of each head of q and k turn by
    p * theta^(-2j / head_width) / divisor: lo' = lo cos - hi sin, hi' = hi cos + lo sin; v stays. Cosines and sines are a table made
    at compile time, frequency and angle rounded to f32 as PyTorch does, as long as the largest bucket.

    - (C1) heads, kv_heads and head_width are at least 1 (ODS); heads is a multiple of kv_heads.
    - (C2) qkv is (heads + 2 * kv_heads) * head_width wide.
    - (C3) head_width is even.
    - (C4) theta and the divisor, 1 where it is not given, are finite and above 0.
  }];
  let arguments = (ins Batten_TokenRows:$qkv, Batten_SegmentsType:$segments, Batten_Count:$heads,
      OptionalAttr<Batten_Count>:$kv_heads, Batten_Count:$head_width, F32Attr:$theta, OptionalAttr<F32Attr>:$divisor);
  let results = (outs Batten_TokenRows:$result);
  let assemblyFormat = [{
    $qkv `,` $segments `heads` $heads (`kv_heads` $kv_heads^)? `head_width` $head_width `theta` $theta
    (`divisor` $divisor^)? attr-dict `:` type($qkv)
  }];
  let hasVerifier = 1;
}

def Batten_GatedOp : Batten_KernelOp<"gated", [], [InferTypeOpAdaptor]> {
  let summary = "act(one half of each row) times the other half";
  let description = [{
    `first`: act(x[:, :n]) * x[:, n:]. `second`: x[:, :n] * act(x[:, n:]).

    - (C1) Rows have an even width.
    - (C2) The function is not `none`.
  }];
  let arguments = (ins Batten_Activation:$act, Batten_Half:$activated, Batten_Rows:$x);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$act $activated $x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Batten_ActivationOp : Batten_KernelOp<"activation", ["getOverwritableOperand"], [SameOperandsAndResultType]> {
  let summary = "an activation function of each element";
  let description = "(C1) The function is not `none`.";
  let arguments = (ins Batten_Activation:$act, Batten_Rows:$x);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$act $x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Batten_AddOp : Batten_KernelOp<"add", ["getOverwritableOperand"], [SameOperandsAndResultType]> {
  let summary = "sum of two rows";
  let arguments = (ins Batten_Rows:$a, Batten_Rows:$b);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a)";
}

//===--- rows to rows --------------------------------------------------------------------------------------------===//

def Batten_PoolOp : Batten_KernelOp<"pool", [], [InferTypeOpAdaptor]> {
  let summary = "one row for each sequence; an empty sequence gives zeros";
  let description = "cls and last take the first and the last row; mean_sqrt_len is the sum over sqrt(length).";
  let arguments = (ins Batten_Pooling:$kind, Batten_TokenRows:$x, Batten_SegmentsType:$segments);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$kind $x `,` $segments attr-dict `:` type($x)";
}

def Batten_L2NormalizeOp : Batten_KernelOp<"l2_normalize", ["getOverwritableOperand"], [SameOperandsAndResultType]> {
  let summary = "x / max(|x|, eps) of each row";
  let description = "(C1) eps is finite and above 0.";
  let arguments = (ins Batten_Rows:$x, F32Attr:$eps);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$x `eps` $eps attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Batten_SliceOp : Batten_KernelOp<"slice", ["getBytesPerRow"], [InferTypeOpAdaptor]> {
  let summary = "columns [begin, begin + width) of each row";
  let description = "(C1) begin is at least 0, width at least 1, and begin + width at most the rows' width.";
  let arguments = (ins Batten_Rows:$x, I64Attr:$begin, I64Attr:$width);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$x `begin` $begin `width` $width attr-dict `:` type($x)";
}

def Batten_ConcatColsOp : Batten_KernelOp<"concat_cols", [], [InferTypeOpAdaptor]> {
  let summary = "rows side by side";
  let description = [{
    - (C1) There are 1 to 6 operands: a kernel takes no more.
    - (C2) Operands have one row kind.
  }];
  let arguments = (ins Variadic<Batten_Rows>:$inputs);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs)";
  let hasVerifier = 1;
}

def Batten_SoftmaxOp : Batten_KernelOp<"softmax", ["getOverwritableOperand"], [SameOperandsAndResultType]> {
  let summary = "softmax of each row";
  let arguments = (ins Batten_Rows:$x);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

//===--- markers -------------------------------------------------------------------------------------------------===//

def Batten_GatherMarkersOp : Batten_KernelOp<"gather_markers", [], [InferTypeOpAdaptor]> {
  let summary = "the token row of each marker";
  let arguments = (ins Batten_TokenRows:$x, Batten_SegmentsType:$segments);
  let results = (outs Batten_MarkerRows:$result);
  let assemblyFormat = "$x `,` $segments attr-dict `:` type($x)";
}

def Batten_DecisionFeaturesOp : Batten_KernelOp<"decision_features", [], [InferTypeOpAdaptor]> {
  let summary = "each sequence's first row, then four numbers about its markers' logits";
  let description = [{
    With p the softmax of the sequence's logits and k = max(markers, 2): [largest p, largest - second (a second of 0 if there is
    but one), -sum p ln max(p, 1e-9) / ln k, k / 255]. Without markers they are [0, 0, 0, 2/255]. An empty sequence's first row
    is zeros.

    - (C1) Logits are one wide.
  }];
  let arguments = (ins Batten_TokenRows:$x, Batten_MarkerRows:$logits, Batten_SegmentsType:$segments);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$x `,` $logits `,` $segments attr-dict `:` type($x) `,` type($logits)";
  let hasVerifier = 1;
}

#endif // BATTEN_DIALECT_BATTENOPS
