//===- Collectives.h - Operations of a whole warp ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_COLLECTIVES_H
#define LINATTN_LIB_EMULATOR_COLLECTIVES_H

#include "Block.h"

namespace linattn::emulator {

/// Each of them is an `execute` of a Collective; operands and results are in
/// `words` of every lane.
/// @{

/// D = A B + C. words: A, B, then C, which becomes D. variant: MmaKind.
void executeMma(Block &block, Warp &warp, uint32_t lanes);

/// Up to four 8 x 8 matrices of 16-bit elements. variant: their number, plus
/// kTransposed. words: one per matrix.
void executeLdMatrix(Block &block, Warp &warp, uint32_t lanes);
void executeStMatrix(Block &block, Warp &warp, uint32_t lanes);
inline constexpr uint32_t kTransposed = 8;

/// words: value, offset, mask and clamp in; value and whether it is valid out.
/// variant: ShuffleKind.
void executeShuffle(Block &block, Warp &warp, uint32_t lanes);

/// words: predicate, becomes the result. variant: VoteKind.
void executeVote(Block &block, Warp &warp, uint32_t lanes);

/// words: value, becomes the result. variant: ReduxKind.
void executeRedux(Block &block, Warp &warp, uint32_t lanes);

/// Products of a warpgroup. otherAddress: the descriptor of A; address: that of
/// B; words: registers of A, then of C, which receive the sums. variant:
/// WgmmaForm.
void executeWgmma(Block &block, Warp &warp, uint32_t lanes);
void executeWgmmaFence(Block &block, Warp &warp, uint32_t lanes);
void executeWgmmaCommit(Block &block, Warp &warp, uint32_t lanes);
/// words: the sums, `address` in number. variant: groups that may stay pending.
void executeWgmmaWait(Block &block, Warp &warp, uint32_t lanes);

/// Copies a tensor map from shared memory, the address, to global memory, the
/// other address.
void executePublishMap(Block &block, Warp &warp, uint32_t lanes);

/// Orders the lanes' accesses before it and after it.
void executeWarpSync(Block &block, Warp &warp, uint32_t lanes);
/// @}

/// Reports lanes whose addresses differ from those of lane 0. `what`: the
/// addresses, in the message.
void checkAddresses(Block &block, Warp &warp, llvm::StringRef what);

/// Reports products that are still in flight when a block has ended.
void checkProducts(Block &block, Warp &warp);

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_COLLECTIVES_H
