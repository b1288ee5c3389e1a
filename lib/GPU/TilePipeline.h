//===- TilePipeline.h - Tiles that arrive in stages -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop of every kernel goes over tiles of tokens. They arrive in stages of
// shared memory, used in turn: with S stages S − 1 tiles are on their way while
// one is worked on, or fewer where some before it are still read. Three engines
// can copy them:
//
// - Threads: all threads copy through registers. A copy needs no wait.
// - cp.async: all threads issue copies in groups. Each thread waits for its own
//   groups, by count.
// - TMA: thread 0 issues copies of whole tiles. All threads wait for the
//   mbarrier of the stage.
//
// A barrier of the block says that a tile is there (threads, cp.async), and
// that all have read the tile whose stage is filled next.
//
// Parts of a tile that are read for different times have rings of stages of
// their own, of as many tiles on their way.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_TILEPIPELINE_H
#define LINATTN_LIB_GPU_TILEPIPELINE_H

#include "TensorMaps.h"

namespace mlir::linattn {

/// A ring of stages in shared memory.
struct TileStages {
  int64_t count;
  Value memory;
  int64_t bytes;     ///< Of a stage.
  int64_t begin = 0; ///< The offset of stage 0.
  /// Tiles before the one that has arrived last which are still read.
  int64_t behind = 0;

  /// Tiles on their way.
  int64_t coming() const { return count - 1 - behind; }
  /// The number of the stage that has tile `number`.
  Value stageOf(KernelBuilder &k, Value number) const;
  /// The address of a stage.
  Value baseOf(KernelBuilder &k, Value stage) const;
};

/// Where a part of a tile is in its stage.
struct StagePlace {
  StagePlace(int64_t offset, unsigned ring = 0) : offset(offset), ring(ring) {}

  int64_t offset;
  unsigned ring; ///< The number of its ring.
};

/// The tokens that tiles are made of.
struct TileTokens {
  int64_t perTile;
  Value count;
  /// Number of tiles; null: as many as hold `count` tokens.
  Value tiles = {};
};

class TilePipeline {
public:
  using Values = SmallVector<Value>;
  enum class Engine { Threads, CpAsync, TensorMaps };

  /// A tile on its way.
  struct Arrival {
    Value first, left;        ///< Its first token, and tokens from there on.
    Value stage;              ///< The number of its stage in the first ring.
    SmallVector<Value> bases; ///< The addresses of its stages, by ring.
    Value thread;             ///< Null: the one of the constructor.
  };
  /// Maps the number of a token, and whether it exists, to whether it is
  /// copied.
  using Filter = std::function<Value(Value number, Value exists)>;

  TilePipeline(KernelBuilder &k, TileStages stages, TileTokens tokens,
               Engine engine, Value thread, int64_t threads)
      : k(k), rings{stages}, tokens(tokens), engine(engine), thread(thread),
        threads(threads) {}

  /// One more ring, of as many tiles on their way, without tensor maps.
  void addRing(TileStages stages);
  /// Rows of `size` elements become the tile at a place in a stage, from
  /// column `firstColumn` on, in units of 16 bits (null: 0).
  void add(StagePlace place, SharedTile tile, Rows rows, int64_t size,
           Type element, Value firstColumn = {}, Filter filter = {});
  /// The matrix of that number is copied by its tensor map. Barrier s is that
  /// of stage s.
  void addMap(int64_t offset, unsigned matrix);
  void useMaps(TensorMaps *maps) { this->maps = maps; }
  /// More copies that belong to a tile.
  void alsoStart(std::function<void(const Arrival &)> body) {
    also = std::move(body);
  }
  /// Products of warpgroups read the tiles.
  void setForWarpgroups(bool value) { forWarpgroups = value; }

  /// Starts the tiles that arrive before the loop.
  void begin();
  /// The loop over all tiles; `body` calls `arrive`.
  Values loop(ValueRange initial,
              function_ref<Values(Value number, ValueRange carried)> body);
  /// Waits for tile `number`, starts a later one and, while copies are on their
  /// way, emits `meanwhile`. `thread` stands for that of the constructor.
  /// Returns the address of the stage in the first ring. With cp.async also
  /// behind the last tile: all threads meet there.
  Value arrive(Value number, function_ref<void()> meanwhile = nullptr,
               Value thread = {});
  Value tileCount();
  /// In the first ring.
  Value stageOf(Value number) { return rings[0].stageOf(k, number); }
  Value baseOf(Value stage) { return rings[0].baseOf(k, stage); }
  /// Waits for all copies: nothing may arrive after the block has gone.
  void drain();

private:
  struct Operand {
    StagePlace place;
    Rows rows;
    std::optional<TileCopy> copy; ///< None: by a map.
    unsigned matrix;
    Filter filter;
  };

  int64_t coming() const { return rings[0].coming(); }
  void start(Value number, Value stage, Value thread = {});
  void await(Value number, Value stage);

  KernelBuilder &k;
  SmallVector<TileStages, 2> rings;
  TileTokens tokens;
  Engine engine;
  Value thread;
  int64_t threads;
  std::vector<Operand> operands;
  std::function<void(const Arrival &)> also;
  TensorMaps *maps = nullptr;
  bool forWarpgroups = false;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_TILEPIPELINE_H
