// batten-opt: runs passes on graphs and plans as text. For compiler work and lit tests; batten-compile is for users.
#include "compiler/passes/Passes.h"
#include "compiler/passes/Pipeline.h"
#include "dialect/BattenDialect.h"
#include "dialect/PlanDialect.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<batten::BattenDialect, batten::plan::PlanDialect>();
  batten::registerBattenPasses();
  batten::registerPipelines();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv,
                        "batten-opt: Batten's passes on graphs and plans as text\n\n"
                        "example: batten-opt graph.mlir --batten-pipeline\n"
                        "         batten-opt graph.mlir --fold-weights --fuse --mlir-print-ir-after-all\n",
                        registry));
}
