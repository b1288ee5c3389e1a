//===- StateTile.h - The state-tile schedule --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_STATETILE_H
#define LINATTN_CONVERSION_STATETILE_H

#include "ScanTile.h"

#include <optional>

namespace mlir::linattn {

/// Scratch memory of a block's tokens: rows, and numbers.
struct StateRows {
  Value keys, values, queries, channelGates, valueGates;
  /// Factors, weights of a token's own value, and running maxima.
  Value scalarGates, ownWeights, maxima;
};

/// Scratch memory of a task: its panels of the state, the normalizer, and of
/// each output its sums, denominator and whole row.
struct StateBuffers {
  Value tile, z, outputs, denominators, inverses, normRows;
};

/// A task of a scan, a state or a read in tiles of the state; see
/// StateTile.cpp.
class StateTask : public ScanTask {
public:
  StateTask(const ScanTile &tile, const Task &task, bool tokenForm,
            OutputNormOp norm);

  void emit();

  bool hasAnyScalarGate() const {
    return r.state.runningMax || hasScalarDecay();
  }
  /// The task's panels; its tile holds no others.
  void forEachPanel(function_ref<void(Value)> body) {
    forEach(task.firstPanel, endPanel, 1, body);
  }
  Value own(Value panel) { return sub(panel, task.firstPanel); }

  const bool tokenForm;
  /// Key size padded to whole tiles.
  const Value tileRows;
  const Value endPanel;
  StateRows packed;
  StateBuffers buffers;
  std::optional<NormRow> epilogue;

private:
  void allocate(OutputNormOp norm);
  void emitBlock(Value first, Value count);
  void loadState();
  void readPanels();
  void clearRows(Value panel, Value first);
  void storeState();
};

/// Packs a block of tokens.
class StatePack : public ScanBlock {
public:
  StatePack(const StateTask &task, Value first, Value count)
      : ScanBlock(task, first, count), owner(task), packed(task.packed),
        buffers(task.buffers) {}

  void packKeys();
  void packQueries();
  void updateNormalizer();
  /// Whether a scalar gate of the block is not 1.
  Value emitAnyRescaling();

private:
  void packKeyOf(Value t);
  void packValueOf(Value t);
  void packGatesOf(Value gate, Value t, Value size, Value target);
  void packQueryOf(Value member, Value t);

  const StateTask &owner;
  const StateRows &packed;
  const StateBuffers &buffers;
};

/// Carries the panels of the state past a block of tokens.
class StateSweep : public ScanBlock {
public:
  /// Without `rescales`, all scalar gates are 1.
  StateSweep(StateTask &task, Value first, Value count, bool rescales)
      : ScanBlock(task, first, count), owner(task), packed(task.packed),
        buffers(task.buffers), rescales(rescales), next(findNext()) {}

  void emit();

private:
  /// Which ends of a panel's rows a tile is at.
  struct Ends {
    bool first, last;
  };
  /// The block after this one: its first position, and its head.
  struct Next {
    Value first, head;
  };

  void sweepPanel(Value panel);
  void sweepTile(Value panel, Value row, Ends ends);
  bool hasNext();
  Next findNext();
  void prefetchNext(Value panel, Value t);
  void streamPanel(Value panel);
  void sweepTokens(Value panel, Value t, int64_t number);
  Value decayed(Value s, Value t, Value row, Value column);
  Value initialOutput(Value member, Value t, Value column);
  void writeRow(Value o, Value member, Value t, Value column);

  StateTask &owner;
  const StateRows &packed;
  const StateBuffers &buffers;
  const bool rescales;
  const Next next;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_STATETILE_H
