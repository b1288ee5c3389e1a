// Compiles a function and runs it: the sum of keys times values, token by
// token.
#include "linattn/Compiler/Compiler.h"
#include "linattn/Version.h"
#include "llvm/Support/raw_ostream.h"

static const char *kModule = R"mlir(
func.func @sums(%x: tensor<1x1x?x1xf32>) -> tensor<1x1x?x1xf32> {
  %o = linattn.attention %x, %x, %x {causal, feature_map = #linattn.feature_map<identity>}
    : (tensor<1x1x?x1xf32>, tensor<1x1x?x1xf32>, tensor<1x1x?x1xf32>)
    -> tensor<1x1x?x1xf32>
  return %o : tensor<1x1x?x1xf32>
}
)mlir";

int main() {
  auto kernel = linattn::Compiler().compile(kModule);
  if (!kernel)
    return llvm::errs() << llvm::toString(kernel.takeError()) << "\n", 1;
  std::vector<float> x{1, 2, 3, 4}, o(4);
  auto view = [](std::vector<float> &data) {
    return linattn::BufferView(data.data(), linattn::DType::F32, {1, 1, 4, 1});
  };
  if (llvm::Error error = kernel->run({view(x)}, {view(o)}))
    return llvm::errs() << llvm::toString(std::move(error)) << "\n", 1;
  llvm::outs() << "linattn " << LINATTN_VERSION << ":";
  for (float number : o)
    llvm::outs() << " " << int(number);
  llvm::outs() << "\n"; // 1, 2·(1 + 4), 3·(1 + 4 + 9), 4·(1 + 4 + 9 + 16)
  return 0;
}
