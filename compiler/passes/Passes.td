// The passes in pipeline order: one entry, one file, one lit file each. Pipeline.cpp says why each is where it is.
// Counts are told by remarks under an option `report`: the packaged LLVM is built without statistics.
#ifndef BATTEN_COMPILER_PASSES
#define BATTEN_COMPILER_PASSES

include "mlir/Pass/PassBase.td"

def ResolveWeights : Pass<"resolve-weights", "::mlir::ModuleOp"> {
  let summary = "bind weights to the checkpoint's tensors";
  let description = [{
    Matches each `batten.weight` to a `batten.stored` of its directory and name. All that is missing, of another shape or
    not of f32, f16 or bf16 is reported at once, the first cause last. Bound weights get `stored`, the element type in
    the checkpoint; `batten.stored` ops are erased; tensors that nothing wants become `batten.unused` on the module.

    ```mlir
    batten.stored "w" in "" file "model.safetensors" : tensor<8x4xf16>
    batten.weight @w from "w" : tensor<8x4xf32>
    // becomes
    batten.weight @w from "w" stored f16 : tensor<8x4xf32>
    ```
    Needs: every tensor of the checkpoint as a `batten.stored`. A weight that is bound already is left alone.
  }];
}

def FoldWeights : Pass<"fold-weights", "::mlir::ModuleOp"> {
  let summary = "turn work on activations into weight expressions";
  let description = [{
    Linears of one input whose results `concat_cols` joins become one linear with concatenated weights and biases.
    Weight expressions are simplified where that changes no bit: nested concats, double transposes, casts to the same
    type, scales by 1.

    ```mlir
    %q = batten.linear %x, %wq ...
    %k = batten.linear %x, %wk ...
    %r = batten.concat_cols %q, %k
    // becomes
    %w = batten.concat %wq, %wk
    %r = batten.linear %x, %w ...
    ```
    Needs: nothing.
  }];
  let options = [Option<"report", "report", "bool", "false", "Say how often each pattern was used">];
}

def Fuse : Pass<"fuse", "::mlir::ModuleOp"> {
  let summary = "put activations and residuals into linear, and embeddings into one op";
  let description = [{
    - `activation(linear(x))` becomes a linear with that activation.
    - `add(linear(x), r)`, either way round, becomes a linear with a residual.
    - `add`s of embeddings in the order word + type + position become one `embed_sum`; other orders round otherwise and
      are left alone.

    A value with another use is not fused. Needs: nothing.
  }];
  let options = [Option<"report", "report", "bool", "false", "Say how often each pattern was used">];
}

def AssignPrecision : Pass<"assign-precision", "::mlir::ModuleOp"> {
  let summary = "choose storage of weights and kind of arithmetic";
  let description = [{
    Weights of linears, and tables that tokens are looked up in, are read through a `batten.cast` to `weights`; linears get
    `math`. With math bf16 or i8 a linear stays in f32 where it is a head: where its rows are not tokens, or where its
    result is an output of the graph as it is, or element by element. With weights i8 tables and heads are stored as f32. Sets
    `batten.weights` and `batten.math` on the module.

    ```mlir
    %r = batten.linear %x, %w : ..., tensor<8x4xf32>
    // becomes, with weights=bf16 math=bf16
    %c = batten.cast %w : tensor<8x4xf32> to tensor<8x4xbf16>
    %r = batten.linear %x, %c math bf16 : ..., tensor<8x4xbf16>
    ```
    Needs: fused graphs, so that epilogues are where they stay.
  }];
  let options = [
    Option<"weights", "weights", "std::string", "\"f32\"", "Storage of weights: f32, f16, bf16 or i8">,
    Option<"math", "math", "std::string", "\"f32\"", "What linears multiply in: f32, bf16 or i8">,
  ];
}

def VerifyGraph : Pass<"verify-graph", "::mlir::ModuleOp"> {
  let summary = "check what lowering relies on";
  let description = [{
    Weights in use are bound, no `batten.stored` is left, the precision is assigned, graphs have a stage.
    Changes nothing.
  }];
}

def LowerToPlan : Pass<"lower-to-plan", "::mlir::ModuleOp"> {
  let summary = "graphs to programs: ops become steps, values buffers";
  let description = [{
    A full conversion: an op that is no kernel, no weight expression and no return is an error at its location. Labels of
    steps are the ops' names (NameLoc), made unique; an op without one is called by its kind and a number. Weights become
    `plan.packed`, shared over all programs. Sizes in rows stay symbolic.

    Needs: graphs with a stage.
  }];
  let dependentDialects = ["::batten::plan::PlanDialect"];
}

def SelectKernels : Pass<"select-kernels", "::mlir::ModuleOp"> {
  let summary = "kernel keys of steps to kernel symbols, each once";
  let description = [{
    Steps with equal keys, in whatever program, share one `plan.kernel`. This is the deduplication: before code is made.

    ```mlir
    plan.step "a" {op = "add", width = 384 : i64} domain(rows) ...
    // becomes
    plan.kernel @add_384_f32 add {width = 384 : i64} overwrite
    plan.step "a" @add_384_f32 domain(rows) ...
    ```
    Needs: nothing.
  }];
  let dependentDialects = ["::batten::plan::PlanDialect"];
}

def PlanMemory : Pass<"plan-memory", "::mlir::ModuleOp"> {
  let summary = "place buffers in the arena, for each bucket";
  let description = [{
    First in place: a step's output takes the memory of the input that its kernel may overwrite, where types agree and
    nothing reads the input later. Then one `plan.layout` for each bucket of the program's stage: buffers that are never
    live at one step may share bytes. Offsets are multiples of 64. Layouts that are there are replaced.

    Needs: programs with a stage.
  }];
  let options = [
    Option<"inPlace", "in-place", "bool", "true", "Let steps write over inputs that they may overwrite">,
    Option<"report", "report", "bool", "false", "Say for each layout what it takes and the least that it could">,
  ];
  let dependentDialects = ["::batten::plan::PlanDialect"];
}

def VerifyPlan : Pass<"verify-plan", "::mlir::ModuleOp"> {
  let summary = "prove programs and layouts, sharing nothing with the planner";
  let description = [{
    Derives liveness anew from memory effects. Checks that what is read was written, that buffers live at one step share
    no byte, that offsets are aligned and inside the arena, that the lower bound and the scratch are right, that each
    bucket has one layout, and that steps fit their kernels. Changes nothing.

    Needs: selected kernels and layouts.
  }];
}

def EmitKernels : Pass<"emit-kernels", "::mlir::ModuleOp"> {
  let summary = "machine code for every plan.kernel; sets where each one is in the image";
  let description = [{
    Makes one image for the target, of the kernels in module order, and sets `entry` and `entry_bytes` of each and
    `target` of the programs. With `image` the bytes are written to a file.
  }];
  let options = [
    Option<"targetName", "target", "std::string", "\"x86-64-v3\"", "Target, by name">,
    Option<"imagePath", "image", "std::string", "\"\"", "File for the image">,
  ];
  let dependentDialects = ["::batten::plan::PlanDialect"];
}

def Serialize : Pass<"serialize", "::mlir::ModuleOp"> {
  let summary = "every program and layout as plan bytes, read back and verified";
  let description = [{
    Writes each (program, layout) as the bytes of a plan file and reads them back, which verifies them. With `dir` they are written to `<dir>/<program>-<tokens>x<seqs>x<markers>.plan`.

    Needs: emitted kernels, packed weights (offset and bytes), and digests on the programs.
  }];
  let options = [Option<"dir", "dir", "std::string", "\"\"", "Folder for the plan files">];
  let dependentDialects = ["::batten::plan::PlanDialect"];
}

#endif // BATTEN_COMPILER_PASSES
