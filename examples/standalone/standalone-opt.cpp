// mlir-opt with linattn's passes and a pass of this project, which says how
// many bytes of state each recurrence carries from token to token.
#include "linattn/Dialect/LinAttn.h"
#include "linattn/InitAll.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

namespace {

struct ReportStatePass
    : public mlir::PassWrapper<ReportStatePass, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReportStatePass)

  llvm::StringRef getArgument() const override { return "report-state"; }
  llvm::StringRef getDescription() const override {
    return "Remark the bytes of the state of every scan";
  }

  void runOnOperation() override {
    getOperation()->walk([](mlir::linattn::ScanOp scan) {
      auto state = mlir::cast<mlir::ShapedType>(scan.getState().getType());
      if (state.hasStaticShape())
        scan.emitRemark("carries ")
            << state.getNumElements() * state.getElementTypeBitWidth() / 8
            << " bytes";
    });
  }
};

} // namespace

int main(int argc, char **argv) {
  mlir::linattn::registerAllPasses();
  mlir::PassRegistration<ReportStatePass>();
  mlir::DialectRegistry registry;
  mlir::linattn::registerAllDialects(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "standalone optimizer\n", registry));
}
