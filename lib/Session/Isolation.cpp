//===- Isolation.cpp - Compilation in a process of its own ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Session/Isolation.h"
#include "linattn/Session/Session.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace linattn;
using namespace linattn::detail;

//===----------------------------------------------------------------------===//
// Lock
//===----------------------------------------------------------------------===//

/// Never destroyed: threads may compile until the process is gone.
static std::shared_mutex *&getMutex() {
  static auto *mutex = new std::shared_mutex;
  return mutex;
}

CompilationLock::CompilationLock() { getMutex()->lock_shared(); }
CompilationLock::~CompilationLock() { getMutex()->unlock_shared(); }

//===----------------------------------------------------------------------===//
// One child
//===----------------------------------------------------------------------===//

using Work = llvm::function_ref<llvm::Expected<std::string>()>;

namespace {

/// How a child ended.
struct Outcome {
  /// The child's result; nothing if it did not end regularly.
  std::optional<llvm::Expected<std::string>> result;
  /// The reason for an irregular end.
  std::string reason;
};

/// The first byte of a child's output.
constexpr char kResult = 'R', kError = 'E';

constexpr size_t kStackSize = size_t(256) << 20;

/// The arguments of `runChild`, which takes one pointer.
struct Child {
  Work work;
  unsigned seconds;
  Outcome outcome;
};

} // namespace

/// Signals end a child silently, also if this process has handlers.
static void prepareChild(unsigned seconds) {
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGALRM,
                     SIGXCPU, SIGINT, SIGTERM, SIGPIPE})
    ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  struct rlimit core = {0, 0}, time = {seconds, seconds + 1};
  setrlimit(RLIMIT_CORE, &core);
  setrlimit(RLIMIT_CPU, &time);
  // Bounds the wall-clock time of a child that waits instead of computing.
  alarm(10 * seconds);
  // LLVM's report of a crash is not part of an error's text.
  int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0)
    dup2(null, STDERR_FILENO);
}

static bool writeAll(int file, llvm::StringRef bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    bytes = bytes.drop_front(count);
  }
  return true;
}

static std::string readAll(int file) {
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    ssize_t count = ::read(file, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return bytes;
    bytes.append(buffer, count);
  }
}

static std::string describeEnd(int status, bool known, unsigned seconds) {
  if (!known)
    return "ended before it was done";
  if (!WIFSIGNALED(status))
    return ("ended with exit code " + llvm::Twine(WEXITSTATUS(status))).str();
  int signal = WTERMSIG(status);
  if (signal == SIGXCPU || signal == SIGALRM)
    return ("took more than " + llvm::Twine(seconds) +
            " seconds (LINATTN_COMPILE_SECONDS)")
        .str();
  if (signal == SIGKILL)
    return "was killed, perhaps for lack of memory";
  return ("crashed (" + llvm::StringRef(strsignal(signal)) + ")").str();
}

static Outcome waitFor(pid_t child, int file, unsigned seconds) {
  int status = 0;
  pid_t waited;
  do
    waited = waitpid(child, &status, 0);
  while (waited < 0 && errno == EINTR);
  // The host may already have reaped the child. Only the child's last message
  // counts.
  lseek(file, 0, SEEK_SET);
  std::string bytes = readAll(file);
  llvm::StringRef text = bytes;
  bool isWhole = text.size() >= 2 && text.front() == text.back();
  llvm::StringRef body = isWhole ? text.drop_front().drop_back() : "";
  if (isWhole && text.front() == kResult)
    return {llvm::Expected<std::string>(body.str()), ""};
  if (isWhole && text.front() == kError)
    return {llvm::Expected<std::string>(llvm::createStringError(body)), ""};
  return {std::nullopt, describeEnd(status, waited == child, seconds)};
}

/// Called by a thread with a large stack, which is then the child's.
static void *runChild(void *argument) {
  auto &child = *static_cast<Child *>(argument);
  FILE *shared = std::tmpfile();
  if (!shared) {
    child.outcome.reason = "cannot be run: no temporary file could be made";
    return nullptr;
  }
  int file = fileno(shared);
  getMutex()->lock();
  pid_t pid = fork();
  if (pid == 0) {
    // The lock identifies its owner by a thread id, which differs in the child.
    getMutex() = new std::shared_mutex;
    prepareChild(child.seconds);
    llvm::Expected<std::string> result = child.work();
    char kind = result ? kResult : kError;
    std::string body =
        result ? std::move(*result) : llvm::toString(result.takeError());
    // The child must run neither destructors nor flushes of the parent.
    _exit(writeAll(file, kind + body + kind) ? 0 : 1);
  }
  getMutex()->unlock();
  if (pid < 0)
    child.outcome.reason =
        std::string("cannot be run: ") + std::strerror(errno);
  else
    child.outcome = waitFor(pid, file, child.seconds);
  std::fclose(shared);
  return nullptr;
}

static Outcome runInChild(Work work, unsigned seconds) {
  Child child{work, seconds, {}};
  // Address space may be scarce; a smaller stack only ends a child sooner.
  for (size_t size = kStackSize; size >= size_t(1) << 20; size /= 4) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_t thread;
    bool started = pthread_attr_setstacksize(&attributes, size) == 0 &&
                   pthread_create(&thread, &attributes, runChild, &child) == 0;
    pthread_attr_destroy(&attributes);
    if (!started)
      continue;
    pthread_join(thread, nullptr);
    return std::move(child.outcome);
  }
  child.outcome.reason = "cannot be run: not enough memory for a stack";
  return std::move(child.outcome);
}

//===----------------------------------------------------------------------===//
// Where the parser stood
//===----------------------------------------------------------------------===//

/// Whether parsing ends a process.
static bool isFatalToParse(llvm::StringRef text, unsigned seconds) {
  auto parse = [&]() -> llvm::Expected<std::string> {
    if (auto names = Session().getPublicFunctions(text, "<prefix>"); !names)
      llvm::consumeError(names.takeError());
    return std::string();
  };
  Outcome outcome = runInChild(parse, seconds);
  if (!outcome.result)
    return true;
  if (!*outcome.result)
    llvm::consumeError(outcome.result->takeError());
  return false;
}

/// The length of the shortest prefix that crashes the parser; a shorter one is
/// an ordinary error. Nothing if the parser survives the whole text.
static std::optional<size_t> findFatalPrefix(llvm::StringRef text) {
  // The search is limited to texts that fail quickly.
  constexpr unsigned seconds = 10;
  if (!isFatalToParse(text, seconds))
    return std::nullopt;
  size_t survived = 0, fatal = text.size();
  while (fatal - survived > 1) {
    size_t middle = survived + (fatal - survived) / 2;
    if (isFatalToParse(text.take_front(middle), seconds))
      fatal = middle;
    else
      survived = middle;
  }
  return fatal;
}

//===----------------------------------------------------------------------===//
// Entry
//===----------------------------------------------------------------------===//

static llvm::Expected<unsigned> getSeconds() {
  auto text = llvm::sys::Process::GetEnv("LINATTN_COMPILE_SECONDS");
  if (!text || text->empty())
    return 120;
  unsigned seconds;
  if (llvm::StringRef(*text).getAsInteger(10, seconds) || seconds < 1 ||
      seconds > 1000000)
    return llvm::createStringError(
        "expected LINATTN_COMPILE_SECONDS to be a number from 1 to 1000000, "
        "but got '" +
        *text + "'");
  return seconds;
}

llvm::Expected<std::string>
linattn::detail::runIsolated(llvm::StringRef text, llvm::StringRef fileName,
                             Work work) {
  llvm::Expected<unsigned> seconds = getSeconds();
  if (!seconds)
    return seconds.takeError();
  Outcome outcome = runInChild(work, *seconds);
  if (outcome.result)
    return std::move(*outcome.result);
  std::string where = fileName.str(), when = "the compilation";
  if (llvm::StringRef(outcome.reason).starts_with("crashed")) {
    if (std::optional<size_t> length = findFatalPrefix(text)) {
      where = locate(text, fileName, *length ? *length - 1 : 0);
      when = "the parser";
    }
  }
  return llvm::createStringError(where + ": error: " + when + " " +
                                 outcome.reason);
}
