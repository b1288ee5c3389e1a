// Compiles layer.mlir and runs it on buffers of its own.
#include "linattn/Compiler/Compiler.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  using namespace linattn;
  auto kernel = Compiler().compileFile(argc > 1 ? argv[1] : "layer.mlir");
  if (!kernel)
    return llvm::errs() << llvm::toString(kernel.takeError()) << "\n", 1;

  std::vector<float> q(2 * 8 * 128 * 64, 0.5f), k(q), v(q), o(q.size());
  auto view = [](std::vector<float> &data) {
    return BufferView(data.data(), DType::F32, {2, 8, 128, 64});
  };
  if (llvm::Error error = kernel->run({view(q), view(k), view(v)}, {view(o)}))
    return llvm::errs() << llvm::toString(std::move(error)) << "\n", 1;
  llvm::outs() << "o[0] = " << o[0] << "\n";
  return 0;
}
