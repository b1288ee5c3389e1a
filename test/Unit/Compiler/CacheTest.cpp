//===- CacheTest.cpp - Kernels in memory and on disk ----------------------===//
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

  /// Compiles; returns the name of the counter that went up.
  std::string compileAndCount(bool memory = false) {
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
  EXPECT_EQ(compileAndCount(), "miss");
  EXPECT_EQ(compileAndCount(), "disk");
  EXPECT_EQ(compileAndCount(/*memory=*/true), "disk");
  EXPECT_EQ(compileAndCount(/*memory=*/true), "memory");
  Compiler::clearMemoryCache();
  EXPECT_EQ(compileAndCount(/*memory=*/true), "disk");
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

TEST_F(CacheTest, OptionsAreSeparate) {
  EXPECT_EQ(compileAndCount(), "miss");
  options.target = Target::Reference;
  EXPECT_EQ(compileAndCount(), "miss");
  options.target = Target::CPU;
  EXPECT_EQ(compileAndCount(), "disk");
  options.copy = "tma";
  EXPECT_EQ(compileAndCount(), "miss");
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
    EXPECT_EQ(compileAndCount(), "miss") << damaged.size();
    EXPECT_EQ(compileAndCount(), "disk") << damaged.size();
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
    EXPECT_EQ(compileAndCount(), "miss") << mode;
    EXPECT_EQ(compileAndCount(), "disk") << mode;
  }
  for (mode_t mode : {0770, 0702, 0720}) {
    ASSERT_EQ(chmod(options.cacheDir.c_str(), mode), 0);
    EXPECT_EQ(compileAndCount(), "miss") << mode;
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
  EXPECT_EQ(compileAndCount(), "miss");
  options.target = Target::CPU;
  EXPECT_EQ(compileAndCount(), "disk");
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
  add([](CompilerOptions &o) { o.scanMma = "wgmma"; });
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
  EXPECT_EQ(compileAndCount(/*memory=*/true), "miss");
  EXPECT_EQ(compileAndCount(/*memory=*/true), "miss");
  EXPECT_TRUE(getFiles().empty());
}

} // namespace
