//===- StateTile.h - The state-tile schedule --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_STATETILE_H
#define LINATTN_CONVERSION_STATETILE_H

#include "OutputNorm.h"
#include "TileBuilder.h"

#include "linattn/Transforms/Recurrence.h"

#include <optional>

namespace mlir::linattn {

/// Emits a scan, a state or a read as tiles of the state in registers; see
/// StateTile.cpp.
class StateTile : public TileBuilder {
public:
  StateTile(OpBuilder &b, const Recurrence &recurrence, TileShape shape,
            bool tokenForm)
      : TileBuilder(b, recurrence.op,
                    getElementTypeOrSelf(recurrence.query ? recurrence.query
                                                          : recurrence.key),
                    shape),
        r(recurrence), tokenForm(tokenForm) {}

  /// The norm behind the scan, if it is applied here.
  std::optional<NormRow> epilogue;

  void emit();

  Recurrence r;

private:
  /// With fewer tasks than this, states are divided.
  static constexpr int64_t enoughTasks = 4;
  Value countColumnTasks(Value states);
  void emitTask(Value task, Value from, Value to);
  void emitTokens(Value from, Value to);
  void clearOutput(Value from, Value to);
  void emitBlock(Value first, Value count);
  void sweepPanels(Value count);
  void emitEpilogue(Value count);
  Value emitAnyRescaling(Value count);
  void allocateScratch();
  void loadState();
  void storeState();

  // Packing.
  void packKeys(Value lowest, Value count);
  void packKey(Value t);
  void packGates(Value t, Value rescale);
  void packQueries(Value lowest, Value count);
  void packQuery(Value member, Value t);
  Place placeOf(Value operand, const StagedRows &staged, Value rowHead,
                Value token) {
    if (staged)
      return staged.at(*this, token);
    return {operand, {batch, rowHead, token}};
  }
  Value tokenAt(Value t) { return tokenAtPosition(add(first, t)); }
  Value tokenAtPosition(Value position);

  // Normaliser.
  void updateNormalizer(Value count);

  // Sweep.
  void sweepPanel(Value panel, Value count);
  /// Which ends of a panel's rows a tile is at.
  struct Ends {
    bool first, last;
  };
  void sweepTile(Value panel, Value row, Value count, Ends ends);
  bool hasNext();
  void findNext(Value from, Value to);
  void prefetchNext(Value panel, Value t);
  void streamPanel(Value panel, Value count);
  void sweepTokens(Value panel, Value t, int64_t number);
  Value decayed(Value s, Value t, Value row, Value column);
  Value initialOutput(Value member, Value t, Value column);
  void writeOutput(Value o, Value member, Value t, Value column);

  bool isStabilised() const {
    return r.query ? r.normalize.has_value() : bool(r.state.normalizer);
  }
  bool hasScalarGate() const {
    return r.state.runningMax || (r.decay && rankOf(r.decay) != 4);
  }
  /// A floor of |den| is relative to the running maximum, if there is one.
  bool hasMovingFloor() const {
    return r.state.runningMax && r.normalize && r.normalize->getAbsFloor();
  }
  bool hasChannelGate() const { return r.decay && rankOf(r.decay) == 4; }
  static int64_t rankOf(Value v) {
    return cast<ShapedType>(v.getType()).getRank();
  }
  /// Number of panels.
  Value panels() { return div(valueSize, index(shape.cols)); }
  /// The panels of the current task; its tile holds no others.
  void forEachPanel(function_ref<void(Value)> body) {
    forEach(firstPanel, endPanel, 1, body);
  }
  Value own(Value panel) { return sub(panel, firstPanel); }
  Value outputHead(Value member) { return add(mul(head, group), member); }
  void forEachMember(function_ref<void(Value)> body) {
    if (getConstantIntValue(group) == 1)
      return body(index(0));
    forEach(group, body);
  }

  bool tokenForm;
  // Sizes: key size padded to whole vectors and to whole tiles, padded value
  // size, output heads per state head.
  Value keySize, tileRows, valueSize, group, heads, columnTasks;
  // The current task.
  Value slot, batch, head, begin, end, firstPanel, endPanel, panelCount;
  // The current block, and the head and first position of the one after it.
  Value first, nextHead, nextFirst;
  bool scalarGatesAreOne = false;
  // Rows of transposed operands.
  StagedRows stagedKeys, stagedValues, stagedDecays, stagedValueDecays,
      stagedQueries;
  // Scratch: see allocateScratch.
  Value keys, values, queries, outputs, scalarGates, channelGates, valueGates,
      tile, z, denominators, inverses, ownWeights, maxima, normRows;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_STATETILE_H
