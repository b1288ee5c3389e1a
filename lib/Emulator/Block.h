//===- Block.h - A thread block: fibers, barriers, shared memory *- C++ ---===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_BLOCK_H
#define LINATTN_LIB_EMULATOR_BLOCK_H

#include "AccessLog.h"
#include "BulkCopy.h"
#include "Fiber.h"
#include "Memory.h"
#include "RuntimeABI.h"
#include "Shadow.h"
#include "Wgmma.h"
#include "linattn/Emulator/Emulator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace linattn::emulator {

class Block;
struct Thread;
struct Warp;

/// The clocks of threads that released, for threads that acquire.
class SyncPoint {
public:
  void reset(unsigned numThreads) {
    seen.assign(ThreadClock::entries(numThreads), 0);
  }
  void clear() { llvm::fill(seen, 0); }
  void release(Thread &thread);
  void acquire(Thread &thread) const;

private:
  std::vector<uint32_t> seen;
};

/// A warp-wide operation, from the view of one lane.
struct Collective {
  /// Executes the operation for `lanes`, whose calls agree.
  using Execute = void (*)(Block &block, Warp &warp, uint32_t lanes);

  Execute execute = nullptr;
  uint32_t site = 0;
  /// Whether every lane must be at the same operation, instead of at one of its
  /// kind.
  bool aligned = true;
  uint32_t mask = ~0u;
  uint32_t variant = 0; ///< Kind of mma, shuffle and so on.
  uint64_t address = 0, otherAddress = 0;
  uint32_t *words = nullptr; ///< Operands, then results.

  bool agreesWith(const Collective &other) const {
    return execute == other.execute && variant == other.variant &&
           mask == other.mask && (!aligned || site == other.site);
  }
};

/// A cp.async in flight.
struct AsyncCopy {
  uint64_t sharedOffset;
  const char *source; ///< Null for zeros only.
  unsigned bytes, sourceBytes;
};

struct Thread {
  /// Read by compiled code, and therefore first.
  uint32_t registers[kNumRegisters] = {};

  enum class State { Ready, AtCollective, AtBarrier, AtMBarrier, Done };
  State state = State::Ready;
  Block *block = nullptr;
  Warp *warp = nullptr;
  unsigned index = 0, lane = 0;
  Collective collective;
  /// The operation at which the thread waits, if it is not ready.
  uint32_t site = 0;
  ThreadClock clock;
  /// Copies in flight, and the end of each committed group among them.
  std::vector<AsyncCopy> copies;
  std::vector<size_t> groupEnds;
  /// The version of each tensor map that the thread has acquired.
  std::map<uint64_t, uint32_t> acquiredMaps;
  std::unique_ptr<FiberStack> stack;
  FiberContext context;
};

/// Masks have a bit per lane.
struct Warp {
  unsigned index = 0;
  uint32_t lanes = 0;   ///< That exist.
  uint32_t ready = 0;   ///< That can run.
  uint32_t waiting = 0; ///< At a collective operation.
  uint32_t done = 0;
  uint32_t logFull = 0; ///< That should let others catch up.
  AccessLog log;
  SyncPoint sync;
  AsyncProducts async;
  Thread *threads = nullptr; ///< Its lanes.
};

/// Executes one block after the other.
class Block {
public:
  using Kernel = void (*)(Thread *thread, const uint64_t *arguments);

  Block(Kernel kernel, GlobalMemory &global, const LaunchOptions &options,
        uint64_t staticShared, Report &report);

  /// Runs the block with these coordinates. Returns false if it had to be
  /// stopped.
  bool run(Dim3 index);

  //===--------------------------------------------------------------------===//
  // For the runtime functions, called on the fiber of `thread`
  //===--------------------------------------------------------------------===//

  /// Checks an access and returns the host memory for it.
  void *access(Thread &thread, AccessKind kind, uint64_t address,
               unsigned bytes, unsigned alignment, uint32_t site);
  /// The same for a row of a matrix, whose traffic is counted separately.
  char *accessShared(Thread &thread, AccessKind kind, uint64_t address,
                     unsigned bytes, uint32_t site);

  void beginCopy(Thread &thread, uint64_t destination, uint64_t source,
                 unsigned bytes, unsigned sourceBytes, uint32_t site);
  void commitCopies(Thread &thread);
  void waitCopies(Thread &thread, unsigned pendingGroups);
  void waitAllCopies(Thread &thread);
  /// fence.proxy.async.
  void fenceProxy(Thread &thread);

  // Tensor maps, and the copies by them.
  void replaceMapField(Thread &thread, uint64_t address,
                       const TensorMapReplace &field, uint64_t value,
                       uint32_t site);
  void publishMap(Thread &thread, uint64_t global, uint64_t shared,
                  uint32_t site);
  void acquireMap(Thread &thread, uint64_t address);
  void beginBulkCopy(Thread &thread, uint64_t destination, uint64_t mapAddress,
                     uint64_t barrierAddress,
                     llvm::ArrayRef<int32_t> coordinates, uint32_t site);

  // mbarrier.
  void initBarrier(Thread &thread, uint64_t address, uint32_t count,
                   uint32_t site);
  void arriveAtMBarrier(Thread &thread, uint64_t address, uint32_t count,
                        uint32_t bytes, uint32_t site);
  /// Returns once a phase of this parity is complete.
  void waitAtMBarrier(Thread &thread, uint64_t address, uint32_t parity,
                      uint32_t site);

  /// Returns once all lanes of its mask have arrived and the operation has run.
  void runCollective(Thread &thread, const Collective &collective);
  /// A `count` of 0 stands for all threads. Without `wait` the thread only
  /// arrives.
  void arriveAtBarrier(Thread &thread, unsigned id, unsigned count, bool wait,
                       uint32_t site);

  //===--------------------------------------------------------------------===//
  // For collective operations
  //===--------------------------------------------------------------------===//

  /// Counts a finding, and records the first one of its kind.
  void note(Check check, const Thread &thread, uint32_t site,
            const llvm::Twine &what);
  Traffic &getTraffic(uint32_t site) { return report.sites[site].traffic; }

  static std::string describe(uint64_t address);

private:
  struct Barrier {
    unsigned expected = 0, arrived = 0;
    std::vector<Thread *> waiting;
    SyncPoint sync;
  };

  static void startThread(void *thread);
  void prepare(Dim3 index);
  void suspend(Thread &thread);
  FiberContext &pickNext(Warp &warp, unsigned lane);
  FiberContext &enter(Warp &warp, uint32_t lanes, unsigned first);
  [[noreturn]] void stop(Thread &thread);
  void wake(Thread &thread);
  void finishThread(Thread &thread);
  bool tryCollective(Warp &warp, Thread &thread);
  void completeBarrier(Barrier &barrier);
  void checkBarrierSites(const Barrier &barrier);
  void diagnoseStandstill();
  void letOthersCatchUp(Thread &thread);
  void flushLog(Warp &warp);
  void log(Thread &thread, AccessLog::Space space, bool isWrite,
           uint64_t address, unsigned bytes, unsigned piece, uint32_t site);
  void *accessGlobal(Thread &thread, AccessKind kind, uint64_t address,
                     unsigned bytes, uint32_t site);
  void noteShared(Thread &thread, const Shadow::Result &result, bool isWrite,
                  uint32_t site);
  void deliver(Thread &thread, size_t count);
  std::optional<TensorMapBits> readMap(Thread &thread, uint64_t address,
                                       unsigned numCoordinates, uint32_t site);
  MBarrier *findBarrier(Thread &thread, uint64_t address, uint32_t site);
  void acquire(Thread &thread, const MBarrier &barrier);
  void tryPhase(MBarrier &barrier);
  void deliver(MBarrier &barrier);
  std::string describeMissing(const Thread &thread) const;
  void checkBulkCopies();
  unsigned random(unsigned bound);

  Kernel kernel;
  GlobalMemory &global;
  Report &report;
  uint64_t rng;

  std::vector<char> shared;
  Shadow sharedShadow;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::map<unsigned, Barrier> barriers;
  static constexpr unsigned kMBarrierBytes = 8;
  std::map<uint64_t, MBarrier> mbarriers; ///< By address.
  /// The latest moment of the copies of every slot.
  std::array<uint32_t, ThreadClock::kBulkSlots> bulkMoments = {};
  /// The number of writes of each tensor map in this launch, by address.
  std::map<uint64_t, uint32_t> mapVersions;
  /// The last moment of every other thread that each thread has seen, one row
  /// per thread.
  std::vector<uint32_t> clocks;
  uint32_t lastMoment = 0;
  unsigned numDone = 0;
  bool stopped = false;
  FiberContext host;
};

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_BLOCK_H
