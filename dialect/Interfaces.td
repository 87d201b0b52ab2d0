// What both dialects share: the enumerations and the interface of ops that become a kernel. Numbers of RowKind and
// WorkDomain are those of the kernel ABI (runtime/abi/batten/kernel.h); compiler/artifact asserts that.
#ifndef BATTEN_DIALECT_INTERFACES
#define BATTEN_DIALECT_INTERFACES

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Batten_RowKind : I32EnumAttr<"RowKind", "what a value has one row per", [
    I32EnumAttrCase<"tokens", 0>,
    I32EnumAttrCase<"seqs", 1>,
    I32EnumAttrCase<"markers", 2>]> {
  let cppNamespace = "::batten";
  let genSpecializedAttr = 0;
}
def Batten_RowKindParam : EnumParameter<Batten_RowKind>;

def Batten_WorkDomain : I32EnumAttr<"WorkDomain", "how a step's work is numbered", [
    I32EnumAttrCase<"panels", 0>,
    I32EnumAttrCase<"rows", 1>,
    I32EnumAttrCase<"tasks", 2>,
    I32EnumAttrCase<"one", 3>]> {
  let cppNamespace = "::batten";
}

def Batten_Activation : I32EnumAttr<"Activation", "activation function", [
    I32EnumAttrCase<"none", 0>,
    I32EnumAttrCase<"gelu_erf", 1>,
    I32EnumAttrCase<"gelu_tanh", 2>,
    I32EnumAttrCase<"relu", 3>,
    I32EnumAttrCase<"silu", 4>,
    I32EnumAttrCase<"tanh", 5>,
    I32EnumAttrCase<"sigmoid", 6>]> {
  let cppNamespace = "::batten";
}

def Batten_Math : I32EnumAttr<"Math", "what a linear multiplies in", [
    I32EnumAttrCase<"f32", 1>,
    I32EnumAttrCase<"bf16", 3>,
    I32EnumAttrCase<"i8", 4>]> {
  let cppNamespace = "::batten";
}

def Batten_Half : I32EnumAttr<"Half", "which half of a row", [
    I32EnumAttrCase<"first", 0>,
    I32EnumAttrCase<"second", 1>]> {
  let cppNamespace = "::batten";
}

def Batten_Pooling : I32EnumAttr<"Pooling", "how a sequence's rows become one", [
    I32EnumAttrCase<"cls", 0>,
    I32EnumAttrCase<"last", 1>,
    I32EnumAttrCase<"mean", 2>,
    I32EnumAttrCase<"mean_sqrt_len", 3>,
    I32EnumAttrCase<"max", 4>]> {
  let cppNamespace = "::batten";
}

def Plan_ExprKind : I32EnumAttr<"ExprKind", "weight expression", [
    I32EnumAttrCase<"concat", 1>,
    I32EnumAttrCase<"scale", 2>,
    I32EnumAttrCase<"transpose", 3>,
    I32EnumAttrCase<"cast", 4>,
    I32EnumAttrCase<"rope", 5>]> {
  let cppNamespace = "::batten::plan";
  let genSpecializedAttr = 0;
}

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::batten";
  let description = [{
    An op that runs as one kernel. Selection, planning, `inspect` and the roofline ask here, so none of them has a
    switch over ops. Inputs that a kernel reads from the batch (ids, types, segments) are operands of the op, but not
    pointers of the kernel.
  }];
  let methods = [
    InterfaceMethod<[{
      The kernel key: `op` (a string, the kernel's op) and the key's attributes. Two ops with equal keys share machine
      code. Integers are i64, reals f32, flags unit attributes.
    }], "::mlir::DictionaryAttr", "getKernelKey">,
    InterfaceMethod<"How the work is numbered.", "::batten::WorkDomain", "getWorkDomain", (ins), [{}], [{
      return ::batten::WorkDomain::rows;
    }]>,
    InterfaceMethod<[{
      The kernel's input pointers in signature order, weights included; the output's pointer follows them. The input
      that may be overwritten comes last. A table that is made at compile time (rope's) is no operand: lower-to-plan puts
      it first.
    }], "::llvm::SmallVector<::mlir::Value>", "getKernelInputs">,
    InterfaceMethod<[{
      Index of the operand whose memory the kernel may use for its result, row by row; none if there is no such.
    }], "::std::optional<unsigned>", "getOverwritableOperand", (ins), [{}], [{
      return ::std::nullopt;
    }]>,
    InterfaceMethod<"FLOP for each row of the domain, as kernelCost in compiler/kernels counts them.", "int64_t",
      "getFlopsPerRow">,
    InterfaceMethod<"FLOP for each (query, key) pair of a sequence, over all heads.", "int64_t", "getFlopsPerPair",
      (ins), [{}], [{ return 0; }]>,
    InterfaceMethod<"Bytes of activations read and written for each row; of weights, rows of tables only.", "int64_t",
      "getBytesPerRow", (ins), [{}], [{
      return ::batten::activationBytesPerRow($_op.getOperation());
    }]>,
  ];
}

#endif // BATTEN_DIALECT_INTERFACES
