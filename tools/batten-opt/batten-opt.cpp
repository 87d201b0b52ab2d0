// batten-opt: runs passes on graphs and plans as text. For compiler work and lit tests; batten-compile is for users.
#include "dialect/BattenDialect.h"
#include "dialect/PlanDialect.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<batten::BattenDialect, batten::plan::PlanDialect>();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Batten's pass driver\n", registry));
}
