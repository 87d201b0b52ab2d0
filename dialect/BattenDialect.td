// The batten dialect: what to compute. Row kinds, batch inputs, weights and graphs; the ops on rows are in BattenOps.td.
// It knows no batch size, no file and no target. Constraints bear labels, (C1) and on, that the verifier and the invalid
// tests repeat.
#ifndef BATTEN_DIALECT_BATTENDIALECT
#define BATTEN_DIALECT_BATTENDIALECT

include "dialect/Interfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Batten_Dialect : Dialect {
  let name = "batten";
  let cppNamespace = "::batten";
  let summary = "transformer encoders over packed rows";
  let description = [{
    Values are `tensor<?xWxf32, #batten.rows<kind>>`: one row per token, sequence or marker, W wide. Equal kinds mean
    equal counts within a graph. Batch structure is a value (`!batten.ids`, `!batten.types`, `!batten.seq_types`,
    `!batten.segments`), so no op reads hidden state. Weights are symbols that name checkpoint tensors; `batten.param` reads one.

    A module carries `batten.version = 1 : i32`; (C1) other versions are refused. A graph may carry
    `batten.max_seq_tokens`, tokens of the longest sequence for which it is right, where no table says it; (C2) an i64 of at
    least 1.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

//===--- attributes and types ------------------------------------------------------------------------------------===//

def Batten_RowsAttr : AttrDef<Batten_Dialect, "Rows", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "rows";
  let summary = "encoding of a tensor of rows: what there is one row per";
  let description = "(C1) The tensor is `?xW` with W at least 1.";
  let parameters = (ins Batten_RowKindParam:$kind);
  let assemblyFormat = "`<` $kind `>`";
}

class Batten_Type<string name, string typeMnemonic> : TypeDef<Batten_Dialect, name> { let mnemonic = typeMnemonic; }
def Batten_IdsType : Batten_Type<"Ids", "ids"> { let summary = "token ids of the batch"; }
def Batten_TypesType : Batten_Type<"Types", "types"> { let summary = "token types of the batch; absent means 0"; }
def Batten_SeqTypesType : Batten_Type<"SeqTypes", "seq_types"> { let summary = "type of each sequence; absent means 0"; }
def Batten_SegmentsType : Batten_Type<"Segments", "segments"> {
  let summary = "where sequences begin and end, a token's position in its own, and the token row of each marker";
}

def Batten_Rows : Type<CPred<"::batten::isRows($_self)">,
    "rows of f32 (tensor<?xWxf32, #batten.rows<kind>>)", "::mlir::RankedTensorType">;
def Batten_TokenRows : Type<CPred<"::batten::isRows($_self, ::batten::RowKind::tokens)">,
    "rows of f32, one per token (tensor<?xWxf32, #batten.rows<tokens>>)", "::mlir::RankedTensorType">;
def Batten_MarkerRows : Type<CPred<"::batten::isRows($_self, ::batten::RowKind::markers)">,
    "rows of f32, one per marker (tensor<?xWxf32, #batten.rows<markers>>)", "::mlir::RankedTensorType">;
def Batten_Weight : Type<CPred<"::batten::isWeight($_self, 1) || ::batten::isWeight($_self, 2)">,
    "a weight: a vector or matrix of f32, f16, bf16 or i8 with constant sizes of at least 1", "::mlir::RankedTensorType">;
def Batten_Matrix : Type<CPred<"::batten::isWeight($_self, 2)">,
    "a weight matrix of f32, f16, bf16 or i8 with constant sizes of at least 1", "::mlir::RankedTensorType">;
def Batten_Vector : Type<CPred<"::batten::isWeight($_self, 1)">,
    "a weight vector of f32, f16, bf16 or i8 with a constant size of at least 1", "::mlir::RankedTensorType">;

class Batten_Op<string mnemonic, list<Trait> traits = []> : Op<Batten_Dialect, mnemonic, traits>;

//===--- module level --------------------------------------------------------------------------------------------===//

def Batten_WeightOp : Batten_Op<"weight", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "names a checkpoint tensor";
  let description = [{
    `from` is the tensor's name in the checkpoint, `in` the sub-directory of the model that holds the checkpoint (empty:
    the model itself), `dims` the config keys that gave the dimensions, for error texts. `stored` is the element type
    that resolve-weights found in the checkpoint; a weight without it is not bound yet.

    - (C1) The type is a vector or matrix of f32, f16 or bf16 with constant sizes of at least 1.
    - (C2) `dims` has one entry per dimension.

    ```mlir
    batten.weight @dense.w from "linear.weight" in "2_Dense" dims ["out", "hidden_size"] : tensor<24x32xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$tensor, DefaultValuedAttr<StrAttr, "\"\"">:$dir,
      OptionalAttr<StrArrayAttr>:$dims, OptionalAttr<TypeAttr>:$stored, TypeAttrOf<AnyRankedTensor>:$type);
  let assemblyFormat = [{
    $sym_name `from` $tensor (`in` $dir^)? (`dims` $dims^)? (`stored` $stored^)? `:` $type attr-dict
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::llvm::StringRef":$tensor, "::llvm::StringRef":$dir,
      "::llvm::ArrayRef<::llvm::StringRef>":$dims, "::mlir::RankedTensorType":$type)>];
  let hasVerifier = 1;
}

def Batten_StoredOp : Batten_Op<"stored", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "says that the checkpoint holds a tensor";
  let description = [{
    One for each tensor of the checkpoint, element type as stored. The compiler's driver adds them; resolve-weights
    consumes them.

    - (C1) All sizes are constant.

    ```mlir
    batten.stored "bert.embeddings.position_ids" in "" file "model.safetensors" : tensor<1x512xi64>
    ```
  }];
  let arguments = (ins StrAttr:$tensor, StrAttr:$dir, StrAttr:$file, TypeAttrOf<AnyRankedTensor>:$type);
  let assemblyFormat = "$tensor `in` $dir `file` $file `:` $type attr-dict";
  let hasVerifier = 1;
}

def Batten_StageOp : Batten_Op<"stage", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "a named list of buckets: [tokens, seqs, markers]";
  let description = [{
    - (C1) There is at least one bucket, and each has three numbers.
    - (C2) Tokens and seqs are at least 1, markers at least 0; none is above 2^31 - 1.
    - (C3) Buckets ascend (by tokens, then seqs, then markers) and none is there twice.

    ```mlir
    batten.stage @text [[32, 8, 0], [512, 128, 0]]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypedArrayAttrBase<DenseI64ArrayAttr, "buckets">:$buckets);
  let assemblyFormat = "$sym_name custom<Buckets>($buckets) attr-dict";
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
      "::llvm::ArrayRef<::std::array<int64_t, 3>>":$buckets)>];
  let hasVerifier = 1;
}

def Batten_GraphOp : Batten_Op<"graph", [IsolatedFromAbove, HasParent<"::mlir::ModuleOp">, SingleBlock,
    FunctionOpInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a model's forward pass: one lane";
  let description = [{
    Arguments are what the batch gives; results have names, which are the lane's outputs.

    - (C1) Arguments are `!batten.ids`, `!batten.types`, `!batten.seq_types` or `!batten.segments`, each at most once.
    - (C2) There is at least one result; results have names, all different and none empty.
    - (C3) Results are rows of f32.
    - (C4) `stage`, where given, names a `batten.stage`.

    ```mlir
    batten.graph @embed(%ids: !batten.ids, %seg: !batten.segments) -> (hidden: tensor<?x384xf32, #tokens>)
        attributes {stage = @text} {
      ...
      batten.return %h : tensor<?x384xf32, #tokens>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, StrArrayAttr:$result_names,
      OptionalAttr<FlatSymbolRefAttr>:$stage, OptionalAttr<DictArrayAttr>:$arg_attrs,
      OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type,
      "::llvm::ArrayRef<::llvm::StringRef>":$resultNames)>];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// The argument of this type, or null where the graph doesn't take it.
    template <typename TypeT> ::mlir::Value getInput() {
      for (::mlir::Value argument : getBody().getArguments())
        if (::mlir::isa<TypeT>(argument.getType()))
          return argument;
      return {};
    }
    ::mlir::LogicalResult verifyType();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
}

def Batten_ReturnOp : Batten_Op<"return", [Pure, Terminator, HasParent<"GraphOp">]> {
  let summary = "gives a graph's results";
  let description = "(C1) Operands agree with the graph's results in number and type.";
  let arguments = (ins Variadic<Batten_Rows>:$results);
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
  let hasVerifier = 1;
}

//===--- weights as values ---------------------------------------------------------------------------------------===//

def Batten_ParamOp : Batten_Op<"param", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "reads a weight";
  let description = [{
    - (C1) The symbol is a `batten.weight`.
    - (C2) The result has the weight's type.
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight);
  let results = (outs Batten_Weight:$result);
  let assemblyFormat = "$weight attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::batten::WeightOp":$weight)>];
}

class Batten_WeightExprOp<string mnemonic, list<Trait> traits = []> : Batten_Op<mnemonic, !listconcat([Pure], traits)> {
  let hasFolder = 1;
}

def Batten_ConcatOp : Batten_WeightExprOp<"concat", [InferTypeOpAdaptor]> {
  let summary = "joins weights by rows; the packer does it";
  let description = [{
    - (C1) There is at least one operand; all are vectors or all are matrices with one element type.
    - (C2) Matrices have equal column counts.
  }];
  let arguments = (ins Variadic<Batten_Weight>:$inputs);
  let results = (outs Batten_Weight:$result);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs)";
  let hasVerifier = 1;
}

def Batten_ScaleOp : Batten_WeightExprOp<"scale", [SameOperandsAndResultType]> {
  let summary = "a weight times a number, rounded once; the packer does it";
  let description = "(C1) The factor is finite.";
  let arguments = (ins Batten_Weight:$input, F32Attr:$factor);
  let results = (outs Batten_Weight:$result);
  let assemblyFormat = "$input `by` $factor attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Batten_TransposeOp : Batten_WeightExprOp<"transpose", [InferTypeOpAdaptor]> {
  let summary = "a weight matrix with rows and columns exchanged; the packer does it";
  let arguments = (ins Batten_Matrix:$input);
  let results = (outs Batten_Matrix:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Batten_CastOp : Batten_WeightExprOp<"cast"> {
  let summary = "a weight in another element type, rounded to nearest even; the packer does it";
  let description = [{
    To i8 each row is scaled by its own largest number, which becomes 127; such a weight goes into a linear of math i8 and
    nowhere else.

    - (C1) Input and result have one shape.
    - (C2) The input is not i8; only a matrix becomes i8.
  }];
  let arguments = (ins Batten_Weight:$input);
  let results = (outs Batten_Weight:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
}

include "dialect/BattenOps.td"

#endif // BATTEN_DIALECT_BATTENDIALECT
