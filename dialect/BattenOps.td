// The batten dialect's ops on rows: each becomes one kernel (KernelOpInterface), is pure, and infers its result type.
// PyTorch's semantics unless said. Included by BattenDialect.td only.
#ifndef BATTEN_DIALECT_BATTENOPS
#define BATTEN_DIALECT_BATTENOPS

class Batten_KernelOp<string mnemonic, list<string> interfaceMethods = [], list<Trait> traits = []>
    : Batten_Op<mnemonic, !listconcat([Pure,
        DeclareOpInterfaceMethods<KernelOpInterface, interfaceMethods>], traits)>;

//===--- embeddings ----------------------------------------------------------------------------------------------===//

def Batten_EmbedOp : Batten_KernelOp<"embed", ["getBytesPerRow"], [InferTypeOpAdaptor]> {
  let summary = "row table[id] of each token";
  let description = "(C1) The table is f32.";
  let arguments = (ins Batten_IdsType:$ids, Batten_Matrix:$table);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$ids `,` $table attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def Batten_EmbedTypesOp : Batten_KernelOp<"embed_types", ["getBytesPerRow"], [InferTypeOpAdaptor]> {
  let summary = "row table[type] of each token; absent types are 0";
  let description = "(C1) The table is f32.";
  let arguments = (ins Batten_TypesType:$types, Batten_Matrix:$table);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = "$types `,` $table attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def Batten_EmbedPositionsOp : Batten_KernelOp<"embed_positions", ["getBytesPerRow"], [InferTypeOpAdaptor]> {
  let summary = "row table[position + offset] of each token; positions start at 0 in each sequence";
  let description = [{
    - (C1) The table is f32.
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

    - (C1) Tables are f32, and there are at least two of them.
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

def Batten_LinearOp : Batten_KernelOp<"linear", ["getWorkDomain", "getOverwritableOperand"],
    [AttrSizedOperandSegments, InferTypeOpAdaptor]> {
  let summary = "x wᵀ, then + bias, then the activation, then + residual";
  let description = [{
    - (C1) The weight is f32, [n, k], and the rows are k wide.
    - (C2) The bias is f32 and n wide.
    - (C3) The residual has the result's type.
  }];
  let arguments = (ins Batten_Rows:$x, Batten_Matrix:$weight, Optional<Batten_Vector>:$bias,
      Optional<Batten_Rows>:$residual, DefaultValuedAttr<Batten_Activation, "::batten::Activation::none">:$act);
  let results = (outs Batten_Rows:$result);
  let assemblyFormat = [{
    $x `,` $weight (`bias` `(` $bias^ `:` type($bias) `)`)? (`act` $act^)?
    (`residual` `(` $residual^ `:` type($residual) `)`)? attr-dict `:` type($x) `,` type($weight)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$weight, CArg<"::mlir::Value", "{}">:$bias,
      CArg<"::batten::Activation", "::batten::Activation::none">:$act, CArg<"::mlir::Value", "{}">:$residual)>];
  let hasVerifier = 1;
}

def Batten_AttentionOp : Batten_KernelOp<"attention", ["getWorkDomain", "getFlopsPerPair"], [InferTypeOpAdaptor]> {
  let summary = "softmax(scale q kᵀ) v of each head, inside each sequence";
  let description = [{
    A row of `qkv` is [q of all heads | k of all heads | v of all heads]. Rows of different sequences never mix.

    - (C1) heads and head_width are at least 1 (ODS).
    - (C2) qkv is 3 * heads * head_width wide.
    - (C3) The scale is finite.
  }];
  let arguments = (ins Batten_TokenRows:$qkv, Batten_SegmentsType:$segments,
      ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<65536>]>:$heads,
      ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<65536>]>:$head_width, F32Attr:$scale);
  let results = (outs Batten_TokenRows:$result);
  let assemblyFormat = [{
    $qkv `,` $segments `heads` $heads `head_width` $head_width `scale` $scale attr-dict `:` type($qkv)
  }];
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

#endif // BATTEN_DIALECT_BATTENOPS
