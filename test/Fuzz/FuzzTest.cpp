//===- FuzzTest.cpp - A short run of every target -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every input of the corpus, and inputs made of it by a seed. In the
// environment, LINATTN_TEST_SEED is the seed, or `random`, and
// LINATTN_FUZZ_SECONDS how long for each target.
//
//===----------------------------------------------------------------------===//

#include "Mutator.h"
#include "Targets.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace linattn::fuzz;

namespace {

/// The running input; a crash leaves it behind.
struct Current {
  char path[512] = {};
  std::string input;
} current;

/// An input that ends before memory that faults: who reads past it is found
/// without a sanitizer.
llvm::StringRef guard(llvm::StringRef input) {
  static size_t page = sysconf(_SC_PAGESIZE), capacity = 0;
  static char *memory = nullptr;
  if (input.size() > capacity) {
    if (memory)
      munmap(memory, capacity + page);
    capacity = llvm::alignTo(std::max<size_t>(input.size(), 1 << 20), page);
    void *mapping = mmap(nullptr, capacity + page, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
      report("no memory for an input");
    memory = static_cast<char *>(mapping);
    mprotect(memory + capacity, page, PROT_NONE);
  }
  char *begin = memory + capacity - input.size();
  std::copy(input.begin(), input.end(), begin);
  return {begin, input.size()};
}

/// Writes the input that ends the process, or never ends, and its name.
void leave(int signal) {
  int file = open(current.path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
  auto write = [](int to, const char *data, size_t size) {
    return ::write(to, data, size) == static_cast<ssize_t>(size);
  };
  if (file >= 0 && write(file, current.input.data(), current.input.size()))
    (void)(write(2, "finding: ", 9) &&
           write(2, current.path, strlen(current.path)) && write(2, "\n", 1));
  std::signal(signal, SIG_DFL);
  raise(signal);
}

/// A sanitizer handles the signals of crashes itself.
void watchSignals() {
  static char stack[1 << 16];
  stack_t alternative = {};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_handler = leave;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGALRM, SIGFPE, SIGILL})
    sigaction(signal, &action, nullptr);
}

std::vector<std::string> readFiles(const std::string &folder) {
  std::vector<std::string> paths, contents;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(folder, error), end;
       it != end && !error; it.increment(error))
    paths.push_back(it->path());
  llvm::sort(paths);
  for (const std::string &path : paths)
    if (auto buffer = llvm::MemoryBuffer::getFile(path))
      contents.push_back((*buffer)->getBuffer().str());
  return contents;
}

uint64_t getSeed() {
  const char *text = std::getenv("LINATTN_TEST_SEED");
  if (!text)
    return 0;
  if (llvm::StringRef(text) == "random")
    return std::random_device()();
  return std::strtoull(text, nullptr, 10);
}

class FuzzTest : public testing::TestWithParam<FuzzTarget> {
protected:
  bool run(std::string input, const llvm::Twine &name) {
    std::string path = (LINATTN_FUZZ_FINDINGS + llvm::Twine("/") +
                        GetParam().name + "-" + name)
                           .str();
    strncpy(current.path, path.c_str(), sizeof(current.path) - 1);
    current.input = std::move(input);
    alarm(60);
    bool isTaken = GetParam().run(guard(current.input));
    alarm(0);
    return isTaken;
  }

  std::vector<std::string> readCorpus() const {
    std::string name = GetParam().name.str();
    return readFiles(LINATTN_FUZZ_FOLDER "/corpus/" + name);
  }
};

TEST_P(FuzzTest, Corpus) {
  watchSignals();
  std::vector<std::string> corpus = readCorpus();
  EXPECT_FALSE(corpus.empty());
  for (auto [i, input] : llvm::enumerate(corpus))
    run(input, "corpus-" + llvm::Twine(i));
}

TEST_P(FuzzTest, Mutations) {
  watchSignals();
  ASSERT_FALSE(llvm::sys::fs::create_directories(LINATTN_FUZZ_FINDINGS));
  Mutator mutator(readCorpus(),
                  Mutator::readWords(LINATTN_FUZZ_FOLDER "/dictionaries/" +
                                     GetParam().name.str() + ".dict"));
  uint64_t seed = getSeed(), number = 0, taken = 0;
  const char *seconds = std::getenv("LINATTN_FUZZ_SECONDS");
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + std::chrono::seconds(seconds ? atol(seconds) : 0);
  for (; seconds ? Clock::now() < end : number < GetParam().count; ++number)
    taken += run(mutator.make(seed, number),
                 llvm::Twine(seed) + "-" + llvm::Twine(number));
  // Inputs that are all refused prove little.
  EXPECT_GT(taken, 0u);
  if (seconds)
    llvm::outs() << GetParam().name << ": " << number << " inputs of seed "
                 << seed << ", " << taken << " of them taken\n";
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzTest, testing::ValuesIn(kTargets),
                         [](const auto &info) {
                           return info.param.name.str();
                         });

} // namespace
