// The plan dialect: steps on buffers. A program is a straight line of steps; a layout places its buffers for one bucket.
// Sizes in rows stay symbolic up to plan.layout. It knows no machine; offsets of code and weights come in as attributes.
#ifndef BATTEN_DIALECT_PLANDIALECT
#define BATTEN_DIALECT_PLANDIALECT

include "dialect/Interfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::batten::plan";
  let summary = "steps on buffers";
  let description = [{
    A step runs one kernel over a work domain. What it reads and writes are ODS memory effects of its operands, so
    liveness needs no knowledge of kernels. Every op prints, so planner tests need no code generation and the bytes of a
    plan have a text form.
  }];
  let dependentDialects = ["::batten::BattenDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

//===--- weight expressions --------------------------------------------------------------------------------------===//

def Plan_ExprAttr : AttrDef<Plan_Dialect, "Expr"> {
  let mnemonic = "expr";
  let summary = "what the packer computes from checkpoint tensors";
  let description = [{
    Operands are expressions or symbols of `batten.weight`. `parameter` is the factor of scale (f32), the element type of
    cast or the theta and divisor of rope (an array of one or two f32), which reads no tensor: row p of its table is the
    cosines, then the sines, of p * theta^(-2j / cols) / divisor.

    - (C1) scale, transpose and cast have one operand, concat at least one, rope none; an operand is a symbol or an
      expression.
    - (C2) scale has a finite f32 factor, rope one or two above 0, cast a type among f32, f16, bf16, i8; the others have no parameter.

    ```mlir
    concat(@l0.q.w, scale(@l0.k.w, 5.0e-01), transpose(@l0.v.w), cast(@l0.x.w, f32))
    rope(1.6e+05)
    rope(1.6e+05, 2.0e+00)
    ```
  }];
  let parameters = (ins EnumParameter<Plan_ExprKind>:$kind, ArrayRefParameter<"::mlir::Attribute">:$operands,
      "::mlir::Attribute":$parameter);
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
}

//===--- types ---------------------------------------------------------------------------------------------------===//

class Plan_Type<string name, string typeMnemonic> : TypeDef<Plan_Dialect, name> {
  let mnemonic = typeMnemonic;
  let genVerifyDecl = 1;
}

def Plan_BufType : Plan_Type<"Buf", "buf"> {
  let summary = "activations in the arena: rows of a kind, `width` elements each";
  let description = "(C1) The width is at least 1, at most 2^24. (C2) Elements are f32.";
  let parameters = (ins Batten_RowKindParam:$rowKind, "int64_t":$width, "::mlir::Type":$elem);
  let assemblyFormat = "`<` $rowKind `,` $width `x` $elem `>`";
}
class Plan_MatrixType<string name, string typeMnemonic> : Plan_Type<name, typeMnemonic> {
  let description = "(C1) Sizes are at least 1, at most 2^31 - 1. (C2) Elements are f32, f16 or bf16.";
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::Type":$elem);
  let assemblyFormat = "`<` custom<MatrixShape>($rows, $cols, $elem) `>`";
}
def Plan_PanelsType : Plan_MatrixType<"Panels", "panels"> {
  let summary = "a weight [n, k] in panels of 32 output columns";
}
def Plan_DotPanelsType : Plan_Type<"DotPanels", "dot_panels"> {
  let summary = "a weight [n, k] in panels of 32 output columns with neighbours along k side by side, for dot instructions";
  let description = "(C1) Sizes are at least 1, at most 2^31 - 1. (C2) Elements are bf16 or i8.";
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::Type":$elem);
  let assemblyFormat = "`<` custom<MatrixShape>($rows, $cols, $elem) `>`";
}
def Plan_TableType : Plan_MatrixType<"Table", "table"> { let summary = "a row-major weight: rows are looked up"; }
def Plan_VecType : Plan_Type<"Vec", "vector"> {
  let summary = "a weight vector";
  let description = "(C1) The size is at least 1, at most 2^31 - 1. (C2) Elements are f32, f16 or bf16.";
  let parameters = (ins "int64_t":$cols, "::mlir::Type":$elem);
  let assemblyFormat = "`<` custom<VectorShape>($cols, $elem) `>`";
}

def Plan_Weight : AnyTypeOf<[Plan_PanelsType, Plan_DotPanelsType, Plan_TableType, Plan_VecType],
    "panels, a table or a vector">;
def Plan_Operand : AnyTypeOf<[Plan_BufType, Plan_PanelsType, Plan_DotPanelsType, Plan_TableType, Plan_VecType],
    "a buffer, panels, a table or a vector">;

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

//===--- module level --------------------------------------------------------------------------------------------===//

def Plan_KernelOp : Plan_Op<"kernel", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "machine code for one kernel key";
  let description = [{
    The key is the kernel's op and attributes. `overwrite`: the last input may be the output's memory. `slab_rows`: most
    rows of a slab (domain panels). `entry` and `entry_bytes`: where the code is in the image's file, once emitted.

    - (C1) The key has a string `op`, an identifier.
    - (C2) Other key attributes are named by identifiers and are i64 from 0 to 2^31 - 1, f32, strings, unit attributes or
      arrays of i64.
    - (C3) slab_rows is from 1 to 2^31 - 1.
    - (C4) entry and entry_bytes come together; entry is at least 0, entry_bytes at least 1.

    ```mlir
    plan.kernel @linear_384x1152_f32_bias linear {act = "none", bias, k = 384 : i64, n = 1152 : i64}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DictionaryAttr:$key, UnitAttr:$overwrite,
      OptionalAttr<I64Attr>:$slab_rows, OptionalAttr<I64Attr>:$entry, OptionalAttr<I64Attr>:$entry_bytes);
  let assemblyFormat = "$sym_name custom<KernelKey>($key) (`overwrite` $overwrite^)? attr-dict";
  let extraClassDeclaration = [{
    /// The key's `op`.
    ::llvm::StringRef getKernelOp();
    /// An i64 of the key, or 0 where it isn't there.
    int64_t getKeyInt(::llvm::StringRef name);
    /// The key as the assembly format prints it: `add {width = 384 : i64}`.
    ::std::string getKeyText();
    /// 32-column panels of the output in domain panels, else 0.
    int64_t getPanels(::batten::WorkDomain domain);
    /// Attention heads in domain tasks, else 0.
    int64_t getHeads(::batten::WorkDomain domain);
  }];
  let hasVerifier = 1;
}

def Plan_PackedOp : Plan_Op<"packed", [Symbol, HasParent<"::mlir::ModuleOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a weight as it is in a pack: an expression in a layout";
  let description = [{
    Panels are in the pack of panels, tables and vectors in the common one. `offset` and `bytes` say where in its file,
    once packed. A plan read back from bytes has no expression. An expression and type are packed once (verify-plan).

    - (C1) The type is panels, a table or a vector.
    - (C2) Symbols of the expression are `batten.weight`s, its shapes agree, and its value has the type's shape. rope takes
      any table of f32 with an even number of columns, and stands alone.
    - (C4) Dot panels of i8 are a cast to i8, which stands outermost and nowhere else.
    - (C3) offset and bytes come together, are multiples of 64, at least 0, and bytes is at least 64.

    ```mlir
    plan.packed @l0.qkv.w.panels concat(@l0.q.w, @l0.k.w, @l0.v.w) : !plan.panels<1152x384xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<AnyAttr>:$expr, TypeAttr:$type,
      OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$bytes);
  let assemblyFormat = "$sym_name (custom<OptionalExpr>($expr)^)? `:` $type attr-dict";
  let hasVerifier = 1;
}

def Plan_ProgramOp : Plan_Op<"program", [Symbol, SymbolTable, IsolatedFromAbove, SingleBlock, NoTerminator,
    NoRegionArguments, HasParent<"::mlir::ModuleOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a lane as steps on buffers";
  let description = [{
    `id_count`, `type_count`, `seq_type_count` and `max_seq_tokens` bound the batch (0: not read, no limit);
    `reads_markers`: so does its number of markers. `target` and the digests (hex
    SHA-256 of image and packs) are there once code and packs are.

    - (C1) The body holds plan.buffer, plan.weight, plan.step, plan.output and plan.layout only.
    - (C2) Labels of steps differ; so do names of outputs.
    - (C3) Limits are from 0 to 2^31 - 1.
    - (C4) Digests are 64 lower case hex digits.
    - (C5) `stage`, where given, names a `batten.stage`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<FlatSymbolRefAttr>:$stage,
      DefaultValuedAttr<I64Attr, "0">:$id_count, DefaultValuedAttr<I64Attr, "0">:$type_count,
      DefaultValuedAttr<I64Attr, "0">:$seq_type_count, DefaultValuedAttr<I64Attr, "0">:$max_seq_tokens,
      UnitAttr:$reads_markers, OptionalAttr<StrAttr>:$target,
      OptionalAttr<StrAttr>:$image_digest, OptionalAttr<StrAttr>:$common_digest,
      OptionalAttr<StrAttr>:$panels_digest);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name (`stage` `(` $stage^ `)`)? attr-dict-with-keyword $body";
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, CArg<"::mlir::FlatSymbolRefAttr", "{}">:$stage)>];
  let extraClassDeclaration = [{
    /// Ops of one kind in program order.
    template <typename OpT> auto getOps() { return getBody().template getOps<OpT>(); }
  }];
  let hasVerifier = 1;
}

//===--- in a program --------------------------------------------------------------------------------------------===//

def Plan_BufferOp : Plan_Op<"buffer", [HasParent<"ProgramOp">]> {
  let summary = "memory for rows, placed by each plan.layout";
  let results = (outs Res<Plan_BufType, "", [MemAlloc]>:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}

def Plan_WeightRefOp : Plan_Op<"weight", [Pure, HasParent<"ProgramOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a packed weight as an operand";
  let description = "(C1) The symbol is a `plan.packed` of the result's type.";
  let arguments = (ins FlatSymbolRefAttr:$packed);
  let results = (outs Plan_Weight:$result);
  let assemblyFormat = "$packed attr-dict `:` qualified(type($result))";
}

def Plan_StepOp : Plan_Op<"step", [AttrSizedOperandSegments, HasParent<"ProgramOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs one kernel";
  let description = [{
    The kernel's pointers are `ins`, then `inout`, then `outs`; an operand of `inout` stands for two of them, the last
    input and the output at one address. `kernel` is a key before select-kernels, a symbol after.

    - (C1) The label is not empty.
    - (C2) A key has a string `op`; a symbol is a `plan.kernel`.
    - (C3) The step writes exactly one buffer.
    - (C4) No buffer is in both `ins` and the written operands.
    - (C5) The kernel takes at most 8 pointers.
    - (C6) `inout` needs a kernel with `overwrite`.
    - (C7) Costs are at least 0.

    ```mlir
    plan.step "l0.proj" @linear_384x384_f32_bias_res domain(panels) ins(%a, %w, %b : ...) inout(%h : ...)
    ```
  }];
  let arguments = (ins StrAttr:$label, AnyAttrOf<[FlatSymbolRefAttr, DictionaryAttr]>:$kernel,
      Batten_WorkDomain:$domain, Arg<Variadic<Plan_Operand>, "", [MemRead]>:$ins,
      Arg<Variadic<Plan_BufType>, "", [MemRead, MemWrite]>:$inouts, Arg<Variadic<Plan_BufType>, "", [MemWrite]>:$outs,
      UnitAttr:$overwrite, DefaultValuedAttr<I64Attr, "0">:$flops_per_row,
      DefaultValuedAttr<I64Attr, "0">:$flops_per_pair, DefaultValuedAttr<I64Attr, "0">:$bytes_per_row);
  let assemblyFormat = [{
    $label $kernel `domain` `(` $domain `)` (`ins` `(` $ins^ `:` qualified(type($ins)) `)`)?
    (`inout` `(` $inouts^ `:` qualified(type($inouts)) `)`)? (`outs` `(` $outs^ `:` qualified(type($outs)) `)`)?
    attr-dict
  }];
  let extraClassDeclaration = [{
    /// The one written buffer.
    ::mlir::Value getOutput() { return getOuts().empty() ? getInouts().front() : getOuts().front(); }
    /// Pointers of the kernel: an inout operand counts twice.
    unsigned getPointerCount() { return getIns().size() + 2 * getInouts().size() + getOuts().size(); }
  }];
  let hasVerifier = 1;
}

def Plan_OutputOp : Plan_Op<"output", [HasParent<"ProgramOp">]> {
  let summary = "names a buffer that the caller gets: it lives to the end of the run and beyond";
  let description = "(C1) The name is not empty.";
  let arguments = (ins StrAttr:$name, Arg<Plan_BufType, "", [MemRead]>:$buffer);
  let assemblyFormat = "$name $buffer attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Plan_LayoutOp : Plan_Op<"layout", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "where the buffers are, for one bucket";
  let description = [{
    An offset in the arena for each buffer, in program order. `lower_bound` is the largest sum of live bytes at any step,
    `scratch` what a worker needs at most for a step.

    - (C1) The bucket has three numbers: tokens and seqs at least 1, markers at least 0, none above 2^31 - 1.
    - (C2) There is one offset per buffer.
    - (C3) arena, lower_bound and scratch are at least 0.

    verify-plan proves the rest.

    ```mlir
    plan.layout @b32x8x0 bucket [32, 8, 0] offsets [0, 49152] {arena = 98304, lower_bound = 98304, scratch = 0}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$bucket, DenseI64ArrayAttr:$offsets,
      I64Attr:$arena, I64Attr:$lower_bound, I64Attr:$scratch);
  let assemblyFormat = "$sym_name `bucket` $bucket `offsets` $offsets attr-dict";
  let hasVerifier = 1;
}

#endif // BATTEN_DIALECT_PLANDIALECT
