//===- Wgmma.cpp - Products of a warpgroup --------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Wgmma.h"
#include "Collectives.h"
#include "TensorCore.h"

#include <cstring>

using namespace linattn;
using namespace linattn::emulator;

/// Quiet NaNs of this kind are tokens.
static constexpr uint32_t kToken = 0xffe50000;
static constexpr unsigned kRows = 16, kDepth = 16, kWarpsOfGroup = 4;
static constexpr unsigned kUnit = 8; ///< Elements of 16 bytes.

//===----------------------------------------------------------------------===//
// Operands in shared memory
//===----------------------------------------------------------------------===//

namespace {
/// The fields of a descriptor, in bytes.
struct Descriptor {
  explicit Descriptor(uint64_t bits) {
    using namespace wgmma_descriptor;
    auto field = [&](unsigned shift) {
      return (bits >> shift & ((1u << addressBits) - 1)) << unitShift;
    };
    start = kSharedBase + field(0);
    leading = field(leadingShift);
    stride = field(strideShift);
    mode = bits >> swizzleShift;
    hasOffset = bits >> baseOffsetShift & ((1u << baseOffsetBits) - 1);
  }

  /// The address of a unit of 8 elements: the `unit`-th of row `line` if lines
  /// are the rows or columns of the result, else of the `line`-th summand.
  uint64_t locate(unsigned line, unsigned unit, bool addsOverLines) const {
    uint64_t inGroup = line % 8, group = line / 8;
    uint64_t rowBytes = mode ? 256 >> mode : 16;
    uint64_t unitsOfRow = rowBytes / 16;
    uint64_t address = start + inGroup * rowBytes;
    if (mode == 0 && addsOverLines)
      address += unit * stride + group * leading;
    else if (addsOverLines || mode == 0)
      address +=
          unit / unitsOfRow * leading + unit % unitsOfRow * 16 + group * stride;
    else
      address += unit * 16 + group * stride;
    uint64_t permuted = mode ? unitsOfRow - 1 : 0;
    return address ^ (address >> 7 & permuted) << 4;
  }

  uint64_t start, leading, stride;
  unsigned mode; ///< 1, 2, 3: rows of 128, 64, 32 bytes, permuted.
  bool hasOffset;
};
} // namespace

/// Reads `lines` × `units` units, eight lines at a time, as banks serve them.
/// visit(line, unit, elements).
template <typename Visit>
static void readUnits(Block &block, Warp &warp, const Descriptor &descriptor,
                      bool addsOverLines, unsigned firstLine, unsigned lines,
                      unsigned units, uint32_t site, Visit visit) {
  for (unsigned unit = 0; unit < units; ++unit)
    for (unsigned first = 0; first < lines; first += 8) {
      uint64_t addresses[8];
      for (unsigned i = 0; i < 8; ++i) {
        unsigned line = first + i;
        addresses[i] = descriptor.locate(firstLine + line, unit, addsOverLines);
        Thread &lane = warp.threads[line % kWarpSize];
        uint16_t elements[kUnit];
        std::memcpy(elements,
                    block.accessShared(lane, AccessKind::AsyncRead,
                                       addresses[i], 16, site),
                    16);
        visit(line, unit, elements);
      }
      Traffic &traffic = block.getTraffic(site);
      ++traffic.sharedPhases;
      traffic.sharedCycles += countBankCycles(addresses, 16);
    }
}

static std::vector<uint16_t> readA(Block &block, Warp &warp,
                                   const AsyncProduct &product) {
  std::vector<uint16_t> a(kRows * kDepth);
  readUnits(block, warp, Descriptor(product.descriptorA),
            /*addsOverLines=*/false, warp.index % kWarpsOfGroup * kRows, kRows,
            kDepth / kUnit, product.site,
            [&](unsigned row, unsigned unit, const uint16_t *elements) {
              std::copy_n(elements, kUnit, &a[row * kDepth + unit * kUnit]);
            });
  return a;
}

static std::vector<uint16_t> readB(Block &block, Warp &warp,
                                   const AsyncProduct &product) {
  unsigned columns = product.form.columns;
  bool byRows = product.form.transposedB;
  std::vector<uint16_t> b(columns * kDepth);
  unsigned lines = byRows ? kDepth : columns;
  unsigned units = (byRows ? columns : kDepth) / kUnit;
  readUnits(block, warp, Descriptor(product.descriptorB), byRows, 0, lines,
            units, product.site,
            [&](unsigned line, unsigned unit, const uint16_t *elements) {
              for (unsigned i = 0; i < kUnit; ++i) {
                unsigned other = unit * kUnit + i;
                b[byRows ? other * kDepth + line : line * kDepth + other] =
                    elements[i];
              }
            });
  return b;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

/// Calls visit(row, column, lane, word) for every sum.
template <typename Visit>
static void forEachSum(unsigned columns, Visit visit) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    for (unsigned word = 0; word < columns / 2; ++word)
      visit(lane / 4 + 8 * (word % 4 / 2),
            word / 4 * 8 + 2 * (lane % 4) + word % 2, lane, word);
}

static void takeRegisters(Warp &warp, AsyncProduct &product) {
  const WgmmaForm &form = product.form;
  unsigned first = form.registersA ? form.wordsOfA() : 0;
  if (form.registersA) {
    product.a.resize(kRows * kDepth);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      for (unsigned i = 0; i < 4; ++i)
        for (unsigned e = 0; e < 2; ++e) {
          unsigned row = lane / 4 + 8 * (i % 2);
          unsigned column = 2 * (lane % 4 + 4 * (i / 2)) + e;
          product.a[row * kDepth + column] =
              warp.threads[lane].collective.words[i] >> (16 * e);
        }
  }
  if (!form.accumulates)
    return;
  uint32_t word = warp.threads[0].collective.words[first];
  for (const AsyncProduct &other : warp.async.products)
    if (other.token == word)
      product.continues = word;
  if (product.continues)
    return;
  product.sums.resize(kRows * form.columns);
  forEachSum(form.columns, [&](unsigned row, unsigned column, unsigned lane,
                               unsigned word) {
    std::memcpy(&product.sums[row * form.columns + column],
                &warp.threads[lane].collective.words[first + word], 4);
  });
}

static std::vector<float> multiply(const AsyncProduct &product,
                                   std::vector<float> sums) {
  unsigned columns = product.form.columns;
  Format format = product.form.isBF16 ? Format::BF16 : Format::F16;
  sums.resize(kRows * columns);
  auto widen = [&](const std::vector<uint16_t> &elements) {
    std::vector<float> wide;
    for (uint16_t element : elements)
      wide.push_back(decode(format, element, 0));
    return wide;
  };
  std::vector<float> a = widen(product.a), b = widen(product.b);
  for (unsigned row = 0; row < kRows; ++row)
    for (unsigned column = 0; column < columns; ++column)
      for (unsigned k = 0; k < kDepth; k += kTermsAtOnce) {
        float &sum = sums[row * columns + column];
        std::array<float, kTermsAtOnce + 1> terms = {sum};
        for (unsigned i = 0; i < kTermsAtOnce; ++i)
          terms[i + 1] = a[row * kDepth + k + i] * b[column * kDepth + k + i];
        sum = sumAsTensorCores(terms);
      }
  return sums;
}

//===----------------------------------------------------------------------===//
// Operations of a warp
//===----------------------------------------------------------------------===//

void linattn::emulator::executeWgmma(Block &block, Warp &warp, uint32_t lanes) {
  Thread &first = warp.threads[0];
  const Collective &call = first.collective;
  AsyncProducts &async = warp.async;
  AsyncProduct product;
  product.form = decodeForm(call.variant);
  product.site = call.site;
  product.descriptorA = call.otherAddress;
  product.descriptorB = call.address;
  product.token = kToken | (++async.numIssued & 0xffff);
  if (!async.registersFenced)
    block.note(Check::MissingFence, first, call.site,
               "uses registers with no wgmma.fence since the last wait");
  checkAddresses(block, warp, "descriptors");
  if (Descriptor(product.descriptorB).hasOffset)
    block.note(Check::Misaligned, first, call.site,
               "descriptors with a base offset cannot be emulated");
  takeRegisters(warp, product);
  if (!product.form.registersA)
    product.a = readA(block, warp, product);
  product.b = readB(block, warp, product);
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    std::fill_n(warp.threads[lane].collective.words, product.form.numSums(),
                product.token);
  async.products.push_back(std::move(product));
}

void linattn::emulator::executeWgmmaFence(Block &block, Warp &warp,
                                          uint32_t lanes) {
  warp.async.registersFenced = true;
}

void linattn::emulator::executeWgmmaCommit(Block &block, Warp &warp,
                                           uint32_t lanes) {
  warp.async.groupEnds.push_back(warp.async.products.size());
}

/// Executes the first `count` products.
static void complete(Block &block, Warp &warp, size_t count) {
  AsyncProducts &async = warp.async;
  for (size_t i = 0; i < count; ++i) {
    AsyncProduct &product = async.products[i];
    bool changed = readB(block, warp, product) != product.b;
    if (!product.form.registersA)
      changed |= readA(block, warp, product) != product.a;
    if (changed)
      block.note(Check::EarlyRead, warp.threads[0], product.site,
                 "its operands changed while it may still have been under way");
    std::vector<float> sums = std::move(product.sums);
    if (product.continues) {
      sums = std::move(async.sums[product.continues]);
      async.sums.erase(product.continues);
    }
    async.sums[product.token] = multiply(product, std::move(sums));
  }
  async.products.erase(async.products.begin(), async.products.begin() + count);
}

void linattn::emulator::executeWgmmaWait(Block &block, Warp &warp,
                                         uint32_t lanes) {
  Thread &first = warp.threads[0];
  const Collective &call = first.collective;
  AsyncProducts &async = warp.async;
  async.registersFenced = false;
  if (async.groupEnds.size() > call.variant) {
    size_t groups = async.groupEnds.size() - call.variant;
    size_t count = async.groupEnds[groups - 1];
    complete(block, warp, count);
    async.groupEnds.erase(async.groupEnds.begin(),
                          async.groupEnds.begin() + groups);
    for (size_t &end : async.groupEnds)
      end -= count;
  }
  unsigned numSums = call.address;
  uint32_t token = numSums ? call.words[0] : 0;
  auto found = async.sums.find(token);
  if (found == async.sums.end()) {
    for (const AsyncProduct &product : async.products)
      if (product.token == token)
        block.note(Check::EarlyRead, first, call.site,
                   "uses sums that it does not wait for");
    return;
  }
  forEachSum(2 * numSums,
             [&](unsigned row, unsigned column, unsigned lane, unsigned word) {
               std::memcpy(&warp.threads[lane].collective.words[word],
                           &found->second[row * 2 * numSums + column], 4);
             });
  async.sums.erase(found);
}

void linattn::emulator::checkProducts(Block &block, Warp &warp) {
  Thread &last = warp.threads[0];
  if (!warp.async.products.empty())
    block.note(Check::EarlyRead, last, warp.async.products.front().site,
               "was never waited for");
  Warp &leader = *(&warp - warp.index % kWarpsOfGroup);
  if (leader.async.numIssued != warp.async.numIssued)
    block.note(Check::Divergence, last, last.site,
               "its warp issued " + llvm::Twine(warp.async.numIssued) +
                   " products, the first of its warpgroup " +
                   llvm::Twine(leader.async.numIssued));
}
