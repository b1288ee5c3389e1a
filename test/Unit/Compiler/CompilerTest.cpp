//===- CompilerTest.cpp - Errors and caches of the compiler ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompilerTestUtils.h"
#include "ObjectCache.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <sys/stat.h>
#include <thread>

using namespace linattn;
using namespace linattn::test;

namespace {

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(CompilerErrors, ParseErrorsAreLocated) {
  EXPECT_EQ(getCompileError("func.func @f() {\n  %0 = nonsense\n}"),
            "test.mlir:2:8: error: custom op 'nonsense' is unknown (tried "
            "'func.nonsense' as well)");
  EXPECT_EQ(getCompileError(""),
            "test.mlir: error: expected a public function, but the module has "
            "none");
}

TEST(CompilerErrors, VerifierErrorsAreLocated) {
  EXPECT_EQ(getCompileError(R"mlir(func.func @f(%x: f32) -> f64 {
  return %x : f32
})mlir"),
            "test.mlir:2:3: error: type of return operand 0 ('f32') doesn't "
            "match function result type ('f64') in function @f");
}

TEST(CompilerErrors, EntrySelection) {
  const char *two = R"mlir(
    func.func @f(%x: f32) -> f32 { return %x : f32 }
    func.func @g(%x: f32) -> f32 { return %x : f32 }
    func.func private @h(%x: f32) -> f32 { return %x : f32 }
    func.func private @declared(%x: f32) -> f32
  )mlir";
  EXPECT_EQ(getCompileError(two),
            "test.mlir: error: expected an entry to be named, since there are "
            "several public functions: @f, @g");
  EXPECT_EQ(getCompileError(two, "k"),
            "test.mlir: error: no function is called 'k'; there are @f, @g");
  EXPECT_EQ(getCompileError(two, "declared"),
            "test.mlir:5:5: error: expected 'declared' to have a body");
  EXPECT_EQ(getCompileError(two, "g"), "no error");
  EXPECT_EQ(getCompileError(two, "h"), "no error");
}

TEST(CompilerErrors, UnsupportedTypes) {
  auto rest = [](llvm::StringRef what, llvm::StringRef type) {
    return ("test.mlir:1:1: error: " + what +
            ": expected a ranked tensor or scalar of f16, bf16, f32, f64, i1, "
            "i8, i16, i32, i64 or index, but got " +
            type)
        .str();
  };
  EXPECT_EQ(getCompileError("func.func @f(%x: tensor<*xf32>) { return }"),
            rest("argument 0 (%x)", "tensor<*xf32>"));
  EXPECT_EQ(getCompileError("func.func @f(%m: memref<2xf32>) { return }"),
            rest("argument 0 (%m)", "memref<2xf32>"));
  EXPECT_EQ(getCompileError("func.func @f(%v: vector<2xf32>) -> vector<2xf32> "
                            "{ return %v : vector<2xf32> }"),
            rest("argument 0 (%v)", "vector<2xf32>"));
}

TEST(CompilerErrors, CallsThatCannotBeInlined) {
  EXPECT_EQ(getCompileError(R"mlir(func.func @f(%x: f32) -> f32 {
  %0 = call @f(%x) : (f32) -> f32
  return %0 : f32
})mlir"),
            "test.mlir:2:8: error: recursive call of 'f' cannot be compiled "
            "into a kernel");
  EXPECT_EQ(getCompileError(R"mlir(func.func private @ext(f32) -> f32
func.func @f(%x: f32) -> f32 {
  %0 = call @ext(%x) : (f32) -> f32
  return %0 : f32
})mlir"),
            "test.mlir:3:8: error: expected a callee with a body, but 'ext' is "
            "only declared\ntest.mlir:1:1: note: declared here");
}

TEST(CompilerErrors, MissingFile) {
  auto kernel = Compiler().compileFile("/nonexistent/f.mlir");
  ASSERT_FALSE(static_cast<bool>(kernel));
  EXPECT_EQ(llvm::toString(kernel.takeError()),
            "/nonexistent/f.mlir: error: cannot be read: No such file or "
            "directory");
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

const char *kSum = R"mlir(
func.func @sum(%x: tensor<?xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce ins(%x : tensor<?xf32>) outs(%s : tensor<f32>) dimensions = [0]
    (%in: f32, %acc: f32) { %t = arith.addf %in, %acc : f32  linalg.yield %t : f32 }
  return %r : tensor<f32>
}
)mlir";

std::string getSumIR(std::optional<Math> math) {
  CompilerOptions options;
  options.diskCache = false;
  options.math = math;
  auto kernel = Compiler(options).compile(kSum);
  if (!kernel)
    return llvm::toString(kernel.takeError());
  return llvm::cantFail(kernel->llvmIR());
}

TEST(CompilerMath, OnlyFastReassociates) {
  EXPECT_EQ(getSumIR(Math::Strict).find("reassoc"), std::string::npos);
  std::string fast = getSumIR(Math::Fast);
  EXPECT_NE(fast.find("reassoc"), std::string::npos) << fast;
  // Masks and running maxima need them.
  EXPECT_EQ(fast.find("ninf"), std::string::npos);
  EXPECT_EQ(fast.find("nnan"), std::string::npos);
}

TEST(CompilerMath, TheEnvironmentSaysUnlessTheCallerDoes) {
  setenv("LINATTN_MATH", "fast", 1);
  EXPECT_NE(getSumIR(std::nullopt).find("reassoc"), std::string::npos);
  EXPECT_EQ(getSumIR(Math::Strict).find("reassoc"), std::string::npos);
  setenv("LINATTN_MATH", "sloppy", 1);
  EXPECT_EQ(getSumIR(std::nullopt),
            "expected LINATTN_MATH to be strict or fast, but got sloppy");
  unsetenv("LINATTN_MATH");
  EXPECT_EQ(getSumIR(std::nullopt).find("reassoc"), std::string::npos);
}

static std::string getSumAssembly(std::optional<Optimization> optimization) {
  CompilerOptions options;
  options.diskCache = options.memoryCache = false;
  options.optimization = optimization;
  auto kernel = Compiler(options).compile(kSum);
  if (!kernel)
    return llvm::toString(kernel.takeError());
  return llvm::cantFail(kernel->assembly());
}

TEST(CompilerOptimization, TheEnvironmentSaysUnlessTheCallerDoes) {
  std::string full = getSumAssembly(Optimization::Full);
  std::string quick = getSumAssembly(Optimization::Quick);
  EXPECT_NE(full, quick);
  EXPECT_EQ(getSumAssembly(std::nullopt), full);
  setenv("LINATTN_OPTIMIZATION", "quick", 1);
  EXPECT_EQ(getSumAssembly(std::nullopt), quick);
  EXPECT_EQ(getSumAssembly(Optimization::Full), full);
  setenv("LINATTN_OPTIMIZATION", "best", 1);
  EXPECT_EQ(getSumAssembly(std::nullopt),
            "expected LINATTN_OPTIMIZATION to be full or quick, but got best");
  unsetenv("LINATTN_OPTIMIZATION");
}

TEST(CompilerRemarks, ReportDecisions) {
  Kernel kernel = test::compile(R"mlir(
    func.func @f(%q: tensor<1x1x?x16xf32>, %k: tensor<1x1x?x16xf32>,
                 %v: tensor<1x1x?x16xf32>) -> tensor<1x1x?x16xf32> {
      %o = linattn.attention %q, %k, %v {causal}
          : (tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>)
          -> tensor<1x1x?x16xf32>
      return %o : tensor<1x1x?x16xf32>
    })mlir");
  EXPECT_TRUE(llvm::any_of(kernel.explain(), [](llvm::StringRef line) {
    return line.starts_with("passed: causal-to-scan: ");
  }));
}

TEST(CompilerRemarks, ReportCostsAndLayouts) {
  constexpr llvm::StringLiteral text = R"mlir(
    func.func @f(%q: tensor<1x1x?x256xf32>, %b: tensor<1x1x?xf32>,
                 %s: tensor<1x1x256x256xf32>) -> tensor<1x1x?x256xf32> {
      %c2 = arith.constant 2 : index
      %n = tensor.dim %q, %c2 : tensor<1x1x?x256xf32>
      %e = tensor.empty(%n) : tensor<1x1x?x256xf32>
      %o, %t = linattn.scan %q, %q, %q beta(%b) update(delta) into(%e) init(%s)
          : (tensor<1x1x?x256xf32>, tensor<1x1x?x256xf32>,
             tensor<1x1x?x256xf32>, tensor<1x1x?xf32>, tensor<1x1x?x256xf32>,
             tensor<1x1x256x256xf32>)
          -> (tensor<1x1x?x256xf32>, tensor<1x1x256x256xf32>)
      return %o : tensor<1x1x?x256xf32>
    })mlir";
  Kernel kernel = test::compile(text);
  auto count = [&](llvm::ArrayRef<std::string> lines, llvm::StringRef part) {
    return llvm::count_if(
        lines, [&](llvm::StringRef line) { return line.contains(part); });
  };
  EXPECT_EQ(count(kernel.explain(), "passed: select-form: chunks of "), 1);
  EXPECT_EQ(count(kernel.explain(), "per token and head"), 1);
  EXPECT_EQ(count(kernel.explain(), "missed: select-form: not state_tile"), 1);

  std::vector<float> q(2 * 40 * 256), b(40), s(256 * 256);
  BufferView near(q.data(), DType::F32, {1, 1, 40, 256});
  BufferView far(q.data(), DType::F32, {1, 1, 40, 256}, {0, 0, 512, 2});
  BufferView beta = view(b, {1, 1, 40}), state = view(s, {1, 1, 256, 256});
  EXPECT_EQ(llvm::cantFail(kernel.explain({near, beta, state})),
            kernel.explain());
  std::vector<std::string> lines =
      llvm::cantFail(kernel.explain({far, beta, state}));
  ASSERT_EQ(lines.size(), kernel.explain().size() + 1);
  EXPECT_EQ(lines.back(),
            "missed: layout: argument 0 (%q) has the innermost stride 2: the "
            "call runs in code for any strides, which loads elements one by "
            "one");
  EXPECT_EQ(
      count({llvm::toString(kernel.explain({near}).takeError())}, "expected 3"),
      1);
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

class CacheTest : public ::testing::Test {
protected:
  CacheTest() {
    options.cacheDir = directory / "cache";
    Compiler::clearMemoryCache();
  }
  ~CacheTest() override { unsetenv("LINATTN_CACHE"); }

  Kernel compile(bool memory = false) {
    options.memoryCache = memory;
    return llvm::cantFail(Compiler(options).compile(kMatmul));
  }

  static void expectRuns(const Kernel &kernel) {
    std::vector<float> a(8, 1), b(12, 2), c(6);
    EXPECT_EQ(llvm::toString(kernel.run({view(a, {2, 4}), view(b, {4, 3})},
                                        {view(c, {2, 3})})),
              "");
    EXPECT_EQ(c, std::vector<float>(6, 8));
  }

  /// The cache files.
  std::vector<std::string> getFiles() {
    std::vector<std::string> files;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(options.cacheDir, error), end;
         it != end && !error; it.increment(error))
      files.push_back(it->path());
    return files;
  }

  /// Compiles and tells which of the counters went up.
  std::string compileAndTell(bool memory = false) {
    CacheStats before = Compiler::getCacheStats();
    expectRuns(compile(memory));
    CacheStats after = Compiler::getCacheStats();
    std::string text;
    if (after.memoryHits > before.memoryHits)
      text += "memory";
    if (after.diskHits > before.diskHits)
      text += "disk";
    if (after.misses > before.misses)
      text += "miss";
    return text;
  }

  static void overwrite(const std::string &path, llvm::StringRef bytes) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << bytes;
    ASSERT_FALSE(error);
  }

  TemporaryDirectory directory;
  CompilerOptions options;
};

TEST_F(CacheTest, MissThenDiskThenMemory) {
  EXPECT_EQ(compileAndTell(), "miss");
  EXPECT_EQ(compileAndTell(), "disk");
  EXPECT_EQ(compileAndTell(/*memory=*/true), "disk");
  EXPECT_EQ(compileAndTell(/*memory=*/true), "memory");
  Compiler::clearMemoryCache();
  EXPECT_EQ(compileAndTell(/*memory=*/true), "disk");
}

TEST_F(CacheTest, CachedKernelsKeepSignatureAndRemarks) {
  Kernel first = compile();
  Kernel second = compile();
  EXPECT_EQ(second.signature().entry, "matmul");
  EXPECT_EQ(second.signature().describeArgument(1), "argument 1 (%b)");
  EXPECT_EQ(second.signature().results[0].getTypeString(), "tensor<?x3xf32>");
  EXPECT_EQ(first.explain(), second.explain());
  EXPECT_NE(llvm::cantFail(second.mlir()).find("linalg.matmul"),
            std::string::npos);
}

TEST(CompilerErrors, UnknownEnginesOfCopiesAreRefused) {
  CompilerOptions options;
  options.copy = "dma";
  auto kernel = Compiler(options).compile("module {}");
  ASSERT_FALSE(kernel);
  EXPECT_EQ(llvm::toString(kernel.takeError()),
            "expected copy to be cp_async or tma, but got 'dma'");
}

TEST_F(CacheTest, OptionsAreSeparate) {
  EXPECT_EQ(compileAndTell(), "miss");
  options.target = Target::Reference;
  EXPECT_EQ(compileAndTell(), "miss");
  options.target = Target::CPU;
  EXPECT_EQ(compileAndTell(), "disk");
  options.copy = "tma";
  EXPECT_EQ(compileAndTell(), "miss");
}

TEST_F(CacheTest, FilesArePrivate) {
  compile();
  struct stat status;
  ASSERT_EQ(stat(options.cacheDir.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(getFiles().size(), 1u);
  ASSERT_EQ(stat(getFiles()[0].c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(CacheTest, DamagedFilesAreReplaced) {
  compile();
  std::string path = getFiles().at(0);
  std::string intact = (*llvm::MemoryBuffer::getFile(path))->getBuffer().str();
  std::string flipped = intact;
  flipped[flipped.size() / 2] ^= 1;
  for (const std::string &damaged :
       {std::string(), intact.substr(0, 20), intact.substr(0, 60),
        intact.substr(0, intact.size() - 1), intact + "x", flipped}) {
    overwrite(path, damaged);
    EXPECT_EQ(compileAndTell(), "miss") << damaged.size();
    EXPECT_EQ(compileAndTell(), "disk") << damaged.size();
  }
}

TEST_F(CacheTest, ForeignDirectoriesAreNotTrusted) {
  ASSERT_EQ(mkdir(options.cacheDir.c_str(), 0700), 0);
  ASSERT_EQ(chmod(options.cacheDir.c_str(), 0777), 0);
  Kernel kernel = compile();
  expectRuns(kernel);
  EXPECT_TRUE(getFiles().empty());
  ASSERT_FALSE(kernel.explain().empty());
  EXPECT_EQ(kernel.explain().back(),
            "analysis: cache: not used: '" + options.cacheDir +
                "' belongs to or can be written by others");
}

TEST_F(CacheTest, WritableFilesAreNotTrusted) {
  compile();
  for (mode_t mode : {0666, 0602, 0620, 0622}) {
    ASSERT_EQ(chmod(getFiles().at(0).c_str(), mode), 0);
    EXPECT_EQ(compileAndTell(), "miss") << mode;
    EXPECT_EQ(compileAndTell(), "disk") << mode;
  }
  for (mode_t mode : {0770, 0702, 0720}) {
    ASSERT_EQ(chmod(options.cacheDir.c_str(), mode), 0);
    EXPECT_EQ(compileAndTell(), "miss") << mode;
  }
}

/// A file under another's name is intact, and yet other code.
TEST_F(CacheTest, FilesAreBelievedUnderTheirOwnNamesOnly) {
  compile();
  std::string matmul = getFiles().at(0);
  options.target = Target::Reference;
  compile();
  ASSERT_EQ(getFiles().size(), 2u);
  std::string other = getFiles()[getFiles()[0] == matmul];
  std::string bytes = (*llvm::MemoryBuffer::getFile(matmul))->getBuffer().str();
  overwrite(other, bytes);
  EXPECT_EQ(compileAndTell(), "miss");
  options.target = Target::CPU;
  EXPECT_EQ(compileAndTell(), "disk");
}

TEST_F(CacheTest, KeysDistinguishAllOptions) {
  using detail::getCacheKey;
  using mlir::linattn::EntryLayout;
  using mlir::linattn::InnermostStride;
  std::vector<std::string> keys;
  auto add = [&](auto change, const char *text = "text",
                 const char *entry = "entry", const EntryLayout &layout = {}) {
    CompilerOptions changed;
    change(changed);
    keys.push_back(getCacheKey(text, entry, changed, layout));
  };
  add([](CompilerOptions &) {});
  add([](CompilerOptions &) {}, "texte", "ntry");
  add([](CompilerOptions &) {}, "text", "entry", InnermostStride::Dynamic);
  for (const std::vector<int64_t> &transposed :
       std::vector<std::vector<int64_t>>{{0}, {1}, {0, 1}})
    add([](CompilerOptions &) {}, "text", "entry",
        EntryLayout(InnermostStride::Unit, transposed));
  for (Target target :
       {Target::Reference, Target::Trace, Target::NVVMEmulated, Target::NVVM})
    add([&](CompilerOptions &o) { o.target = target; });
  add([](CompilerOptions &o) { o.math = Math::Fast; });
  add([](CompilerOptions &o) { o.optimization = Optimization::Quick; });
  add([](CompilerOptions &o) { o.chip = "sm_90"; });
  add([](CompilerOptions &o) { o.hints.sequences = 8; });
  add([](CompilerOptions &o) { o.hints.tokens = 8; });
  add([](CompilerOptions &o) { o.hints.multiprocessors = 8; });
  add([](CompilerOptions &o) { o.hints.bandwidth = 8; });
  add([](CompilerOptions &o) { o.copy = "tma"; });
  add([](CompilerOptions &o) { o.copy = "tma", o.chip = "sm_90"; });
  add([](CompilerOptions &o) { o.reassociate = "never"; });
  add([](CompilerOptions &o) { o.form = "never"; });
  add([](CompilerOptions &o) { o.form = "chunk:16"; });
  add([](CompilerOptions &o) { o.checkDecays = true; });
  add([](CompilerOptions &o) { o.trusted = true; });
  add([](CompilerOptions &o) { o.differentiate.emplace(); });
  add([](CompilerOptions &o) { o.differentiate = {0, 1}; });
  add([](CompilerOptions &o) { o.differentiate = {0}; });
  add([](CompilerOptions &o) { o.prime = 0; });
  add([](CompilerOptions &o) { o.prime = 1; });
  for (size_t i = 0; i < keys.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      EXPECT_NE(keys[i], keys[j]) << i << " and " << j;
}

TEST_F(CacheTest, OneOfManyCompiles) {
  options.memoryCache = false;
  CacheStats before = Compiler::getCacheStats();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      expectRuns(llvm::cantFail(Compiler(options).compile(kMatmul)));
    });
  for (std::thread &thread : threads)
    thread.join();
  CacheStats after = Compiler::getCacheStats();
  EXPECT_EQ(after.misses - before.misses, 1u);
  EXPECT_EQ(after.diskHits - before.diskHits, 3u);
  EXPECT_EQ(getFiles().size(), 1u);
}

TEST(CompileClaimTest, IsHeldByOne) {
  TemporaryDirectory directory;
  std::string path = directory / "claim";
  auto take = [&] {
    return detail::CompileClaim::wait(path, std::chrono::milliseconds(20));
  };
  {
    detail::CompileClaim first = take();
    EXPECT_TRUE(first.isHeld());
    EXPECT_FALSE(take().isHeld()); // after 20 ms
  }
  EXPECT_FALSE(llvm::sys::fs::exists(path));
  EXPECT_TRUE(take().isHeld());
  path = directory / "missing/claim";
  EXPECT_FALSE(take().isHeld());
}

class CacheSizeTest : public CacheTest {
protected:
  ~CacheSizeTest() override { unsetenv("LINATTN_CACHE_SIZE"); }

  /// One of several kernels of about the same size.
  std::string compileNumber(int number) {
    std::string text = std::string(kMatmul) + "// " + std::to_string(number);
    CacheStats before = Compiler::getCacheStats();
    options.memoryCache = false;
    expectRuns(llvm::cantFail(Compiler(options).compile(text)));
    return Compiler::getCacheStats().misses > before.misses ? "miss" : "disk";
  }

  std::string getError() {
    options.memoryCache = false;
    auto kernel = Compiler(options).compile(kMatmul);
    return kernel ? "no error" : llvm::toString(kernel.takeError());
  }

  uint64_t getTotal() {
    uint64_t total = 0;
    for (const std::string &file : getFiles()) {
      uint64_t bytes = 0;
      EXPECT_FALSE(llvm::sys::fs::file_size(file, bytes));
      total += bytes;
    }
    return total;
  }
};

TEST_F(CacheSizeTest, TheLeastRecentlyUsedGoes) {
  compileNumber(0);
  uint64_t each = getTotal();
  setenv("LINATTN_CACHE_SIZE", std::to_string(3 * each + each / 2).c_str(), 1);
  EXPECT_EQ(compileNumber(1), "miss");
  EXPECT_EQ(compileNumber(2), "miss");
  EXPECT_EQ(compileNumber(0), "disk"); // now used after 1
  EXPECT_EQ(compileNumber(3), "miss");
  EXPECT_EQ(getFiles().size(), 3u);
  EXPECT_LE(getTotal(), 3 * each + each / 2);
  EXPECT_EQ(compileNumber(0), "disk");
  EXPECT_EQ(compileNumber(2), "disk");
  EXPECT_EQ(compileNumber(3), "disk");
  EXPECT_EQ(compileNumber(1), "miss");
  setenv("LINATTN_CACHE_SIZE", "0", 1);
  EXPECT_EQ(compileNumber(4), "miss");
  EXPECT_TRUE(getFiles().empty());
}

TEST_F(CacheSizeTest, SizesAreParsed) {
  for (const char *size : {"much", "-1", "1.5G", "M", "99999999999G", "1 K"}) {
    setenv("LINATTN_CACHE_SIZE", size, 1);
    EXPECT_EQ(getError(), std::string("expected LINATTN_CACHE_SIZE to be a "
                                      "size such as 512M, but got '") +
                              size + "'");
  }
  for (const char *size : {"", "0", "100K", "7M", "2G"}) {
    setenv("LINATTN_CACHE_SIZE", size, 1);
    EXPECT_EQ(getError(), "no error");
  }
}

TEST_F(CacheTest, AFileInTheWayIsIgnored) {
  overwrite(options.cacheDir, "not a directory");
  expectRuns(compile());
}

TEST_F(CacheTest, TheEnvironmentSwitchesOff) {
  setenv("LINATTN_CACHE", "off", 1);
  EXPECT_EQ(compileAndTell(/*memory=*/true), "miss");
  EXPECT_EQ(compileAndTell(/*memory=*/true), "miss");
  EXPECT_TRUE(getFiles().empty());
}

} // namespace
