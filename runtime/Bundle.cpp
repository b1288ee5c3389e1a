//===- Bundle.cpp - Reading bundles ---------------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"
#include "Failure.h"
#include "linattn/Support/BundleFormat.h"
#include "linattn/Support/DType.h"

#include <cstring>
#include <nlohmann/json.hpp>

using namespace linattn;
using namespace linattn::runner;
using nlohmann::json;

/// The largest count of anything in a bundle.
static constexpr size_t kMaxCount = 1 << 16;
static constexpr size_t kMaxRank = 32;
/// Smaller, because buffers are compared pairwise and nested loops recurse.
static constexpr size_t kMaxBuffers = 1024;
static constexpr int kMaxNesting = 64;

static const std::pair<const char *, Operation> kOperations[] = {
    {"const", Operation::Const},
    {"size", Operation::Size},
    {"stride", Operation::Stride},
    {"add", Operation::Add},
    {"sub", Operation::Sub},
    {"mul", Operation::Mul},
    {"div", Operation::Div},
    {"rem", Operation::Rem},
    {"floordiv", Operation::FloorDiv},
    {"ceildiv", Operation::CeilDiv},
    {"mod", Operation::Mod},
    {"min", Operation::Min},
    {"max", Operation::Max},
    {"and", Operation::And},
    {"or", Operation::Or},
    {"xor", Operation::Xor},
    {"eq", Operation::Eq},
    {"ne", Operation::Ne},
    {"lt", Operation::Lt},
    {"le", Operation::Le},
    {"gt", Operation::Gt},
    {"ge", Operation::Ge},
    {"select", Operation::Select},
    {"address", Operation::Address},
    {"index", Operation::Index}};

namespace {

[[noreturn]] void malformed(const std::string &what) {
  fail("malformed manifest: " + what);
}

/// Fills in a bundle from its manifest. Numbers of operands, values and blobs
/// are checked here once, so that later reads need no checks.
class Reader {
public:
  Reader(Bundle &bundle, std::string_view blobs)
      : bundle(bundle), blobBytes(blobs) {}

  void read(const json &root) {
    bundle.entry = root.at("entry").get<std::string>();
    auto target = root.at("target").get<std::string>();
    if (target != "nvvm" && target != "cpu")
      malformed("expected the target nvvm or cpu, but got '" + target + "'");
    bundle.isCpu = target == "cpu";
    readOperands(root.at("operands"));
    readBlobs(root.at("blobs"));
    readShapes(root.at("shapes"));
    for (const json &variant : list(root.at("variants")))
      bundle.variants.push_back(bundle.isCpu ? readCpu(variant)
                                             : readNvvm(variant));
    if (bundle.variants.empty())
      malformed("expected code for at least one machine");
  }

private:
  const json &list(const json &value) {
    if (!value.is_array() || value.size() > kMaxCount)
      malformed("expected a list");
    return value;
  }

  int64_t number(const json &value, int64_t least, int64_t most) {
    if (!value.is_number_integer())
      malformed("expected an integer");
    auto result = value.get<int64_t>();
    if (result < least || result > most)
      malformed("expected a number from " + std::to_string(least) + " to " +
                std::to_string(most) + ", but got " + std::to_string(result));
    return result;
  }

  /// A number below `count`.
  int32_t index(const json &value, size_t count) {
    return static_cast<int32_t>(
        number(value, 0, static_cast<int64_t>(count) - 1));
  }

  void readOperands(const json &operands) {
    for (const json &it : list(operands)) {
      Operand &operand = bundle.operands.emplace_back();
      operand.name = it.at("name").get<std::string>();
      auto dtype = it.at("dtype").get<std::string>();
      std::optional<DType> parsed = parseDType(dtype);
      if (!parsed)
        malformed("expected a type of elements, but got '" + dtype + "'");
      operand.dtype = static_cast<int32_t>(*parsed);
      operand.isScalar = it.value("scalar", false);
      operand.isStrided = it.value("strided", false);
      // Names of unknown sizes are for readers.
      for (const json &extent : list(it.at("shape")))
        operand.shape.push_back(
            extent.is_string() ? -1 : number(extent, 0, INT64_MAX));
      if (operand.shape.size() > kMaxRank ||
          (operand.isScalar && !operand.shape.empty()))
        malformed("the rank of operand " + operand.name);
      bool isResult = it.at("result").get<bool>();
      if (!isResult && bundle.numArguments + 1 != bundle.operands.size())
        malformed("expected results behind the arguments");
      bundle.numArguments += !isResult;
      if (isResult && it.contains("in_place_of"))
        operand.inPlaceOf = index(it.at("in_place_of"), bundle.numArguments);
    }
  }

  void readBlobs(const json &entries) {
    for (const json &it : list(entries)) {
      auto limit = static_cast<int64_t>(blobBytes.size());
      int64_t offset = number(it.at("offset"), 0, limit);
      int64_t size = number(it.at("size"), 0, limit - offset);
      blobs.push_back(blobBytes.substr(offset, size));
    }
  }

  std::string_view blob(const json &value) {
    return blobs[index(value, blobs.size())];
  }

  /// Instructions over the sizes and strides of the first `numOperands`.
  Program readProgram(const json &values, size_t numOperands) {
    Program program;
    for (const json &it : list(values)) {
      auto name = list(it).at(0).get<std::string>();
      const auto *found =
          std::find_if(std::begin(kOperations), std::end(kOperations),
                       [&](const auto &entry) { return name == entry.first; });
      if (found == std::end(kOperations))
        malformed("unknown operation '" + name + "'");
      Instruction instruction{found->second};
      size_t before = program.instructions.size();
      switch (found->second) {
      case Operation::Const:
        instruction.constant = number(it.at(1), INT64_MIN, INT64_MAX);
        break;
      case Operation::Size:
      case Operation::Stride:
        instruction.a = index(it.at(1), numOperands);
        instruction.b =
            index(it.at(2), bundle.operands[instruction.a].shape.size());
        break;
      case Operation::Address:
        instruction.a = index(it.at(1), numOperands);
        break;
      case Operation::Index:
        instruction.a = index(it.at(1), before);
        instruction.b = index(it.at(2), kMaxCount);
        break;
      case Operation::Select:
        instruction.c = index(it.at(3), before);
        [[fallthrough]];
      default:
        instruction.a = index(it.at(1), before);
        instruction.b = index(it.at(2), before);
      }
      program.instructions.push_back(instruction);
    }
    return program;
  }

  void readShapes(const json &it) {
    ShapeRules &shapes = bundle.shapes;
    shapes.program = readProgram(it.at("values"), bundle.numArguments);
    size_t count = shapes.program.instructions.size();
    for (const json &result : list(it.at("results"))) {
      std::vector<int32_t> &extents = shapes.results.emplace_back();
      for (const json &extent : list(result))
        extents.push_back(index(extent, count));
    }
    if (shapes.results.size() != bundle.operands.size() - bundle.numArguments)
      malformed("expected the shape of every result");
    for (size_t i = 0; i < shapes.results.size(); ++i)
      if (shapes.results[i].size() !=
          bundle.operands[bundle.numArguments + i].shape.size())
        malformed("expected as many extents of a result as it has");
    if (!it.contains("check"))
      return;
    shapes.check = index(it.at("check"), count);
    for (const json &size : list(it.at("sizes")))
      shapes.sizes.push_back(index(size, count));
    for (const json &message : list(it.at("messages")))
      shapes.messages.push_back(message.get<std::string>());
  }

  Variant readCpu(const json &it) {
    Variant variant;
    variant.chip = it.at("chip").get<std::string>();
    variant.image = blob(it.at("image"));
    variant.symbol = it.at("symbol").get<std::string>();
    return variant;
  }

  Variant readNvvm(const json &it) {
    Variant variant;
    variant.chip = it.at("chip").get<std::string>();
    variant.program = readProgram(it.at("values"), bundle.operands.size());
    size_t count = variant.program.instructions.size();
    for (const json &module : list(it.at("modules"))) {
      Module &added = variant.modules.emplace_back();
      added.ptx = blob(module.at("ptx"));
      if (added.ptx.empty() || added.ptx.back() != '\0')
        malformed("expected PTX to end with a null byte");
      if (module.contains("cubin"))
        added.cubin = blob(module.at("cubin"));
    }
    if (it.at("buffers").size() > kMaxBuffers)
      malformed("expected at most " + std::to_string(kMaxBuffers) +
                " buffers, but got " + std::to_string(it.at("buffers").size()));
    for (const json &buffer : list(it.at("buffers"))) {
      Buffer &added = variant.buffers.emplace_back();
      added.elementBytes = number(buffer.at("element_bytes"), 1, 16);
      if (buffer.contains("contents"))
        added.contents = blob(buffer.at("contents"));
      else
        added.bytes = index(buffer.at("bytes"), count);
    }
    const json &launches = list(it.at("launches"));
    readLifetimes(it.at("buffers"), launches.size(), variant.buffers);
    for (const json &launch : launches)
      variant.launches.push_back(readLaunch(launch, variant, count));
    if (it.contains("loops"))
      readLoops(list(it.at("loops")), variant);
    return variant;
  }

  void readLifetimes(const json &items, size_t numLaunches,
                     std::vector<Buffer> &buffers) {
    auto limit = static_cast<int64_t>(numLaunches) - 1;
    for (size_t i = 0; i < buffers.size(); ++i) {
      Buffer &buffer = buffers[i];
      if (buffer.isConstant())
        continue;
      // Without this field the bundle uses the buffer throughout.
      buffer.last = limit;
      if (items[i].contains("last")) {
        buffer.first =
            number(items[i].at("first"), 0, std::max<int64_t>(limit, 0));
        buffer.last = number(items[i].at("last"), -1, limit);
      }
      for (size_t j = 0; j < i; ++j)
        if (!buffers[j].isConstant() && buffers[j].first <= buffer.last &&
            buffer.first <= buffers[j].last)
          buffer.conflicts.push_back(static_cast<int32_t>(j));
    }
  }

  void readLoops(const json &loops, Variant &variant) {
    size_t count = variant.program.instructions.size();
    for (const json &it : loops) {
      Loop &loop = variant.loops.emplace_back();
      loop.index = index(it.at("index"), count);
      loop.lower = index(it.at("lower"), count);
      loop.upper = index(it.at("upper"), count);
      loop.step = index(it.at("step"), count);
      size_t limit = variant.launches.size();
      loop.first = number(it.at("first"), 0, limit);
      loop.count = number(it.at("count"), 0, limit - loop.first);
      size_t others = loops.size() - variant.loops.size();
      loop.inner = number(it.at("inner"), 0, others);
      loop.variable = variant.program.findUsers(loop.index);
      if (variant.program.instructions[loop.index].operation !=
          Operation::Index)
        malformed("expected a loop to count an index");
    }
    checkNesting(variant.loops, 0, variant.loops.size(), 0,
                 variant.launches.size());
  }

  /// Checks that loops follow one another, and lie within the surrounding one.
  void checkNesting(const std::vector<Loop> &loops, size_t next, size_t end,
                    size_t first, size_t last, int depth = 0) {
    if (depth > kMaxNesting)
      malformed("expected loops to be nested at most " +
                std::to_string(kMaxNesting) + " deep");
    while (next < end) {
      const Loop &loop = loops[next];
      size_t behind = loop.first + loop.count;
      if (loop.first < first || behind > last || next + loop.inner >= end)
        malformed("expected loops to be nested");
      checkNesting(loops, next + 1, next + 1 + loop.inner, loop.first, behind,
                   depth + 1);
      next += 1 + loop.inner;
      first = behind;
    }
  }

  Launch readLaunch(const json &it, const Variant &variant, size_t count) {
    Launch launch;
    launch.module = index(it.at("module"), variant.modules.size());
    launch.kernel = it.at("kernel").get<std::string>();
    for (int i = 0; i < 3; ++i) {
      launch.grid[i] = index(it.at("grid").at(i), count);
      launch.block[i] = index(it.at("block").at(i), count);
    }
    launch.sharedBytes = number(it.at("shared"), 0, INT32_MAX);
    size_t numBuffers = bundle.operands.size() + variant.buffers.size();
    for (const json &argument : list(it.at("args")))
      launch.arguments.push_back(readArgument(argument, numBuffers, count));
    return launch;
  }

  KernelArgument readArgument(const json &it, size_t numBuffers, size_t count) {
    using Kind = KernelArgument::Kind;
    KernelArgument argument;
    if (it.contains("pointer")) {
      argument.kind = Kind::Pointer;
      argument.buffer = index(it.at("pointer"), numBuffers);
      argument.align = number(it.at("align"), 1, 4096);
      if (it.contains("offset"))
        argument.value = index(it.at("offset"), count);
      for (const json &dim : list(it.at("strides")))
        argument.dimensions.push_back(
            {index(dim.at(0), count), index(dim.at(1), count)});
    } else if (it.contains("scalar")) {
      argument.kind = Kind::Scalar;
      argument.buffer = index(it.at("scalar"), bundle.operands.size());
      if (!bundle.operands[argument.buffer].isScalar)
        malformed("expected a scalar to be passed by value");
    } else if (it.contains("bits")) {
      argument.kind = Kind::Bits;
      argument.bits = it.at("bits").get<uint64_t>();
    } else {
      argument.kind = it.contains("i32") ? Kind::I32 : Kind::I64;
      argument.value = index(it.at(it.contains("i32") ? "i32" : "i64"), count);
    }
    return argument;
  }

  Bundle &bundle;
  std::string_view blobBytes;
  std::vector<std::string_view> blobs;
};

/// Deep nesting costs the parser no stack, but recursion over its result. The
/// depth is counted in the text, because a callback of the parser would make
/// parsing quadratic in the length of a list.
json parse(std::string_view text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"')
      inString = !inString;
    else if (inString)
      i += c == '\\'; // and what it escapes
    else if (c == '[' || c == '{')
      ++depth;
    else if (c == ']' || c == '}')
      --depth;
    if (depth > kMaxNesting)
      malformed("expected parts to be nested at most " +
                std::to_string(kMaxNesting) + " deep");
  }
  return json::parse(text);
}

/// The parsed manifest. The destructor of a nested JSON value allocates, and
/// ends the process if that fails; parts are destroyed first.
struct Manifest {
  explicit Manifest(std::string_view text) : root(parse(text)) {}
  ~Manifest() { takeApart(root); }

  static void takeApart(json &value) {
    if (!value.is_structured())
      return;
    for (json &part : value) {
      takeApart(part);
      part = nullptr;
    }
    value.clear();
  }

  json root;
};

} // namespace

static BundleHeader readHeader(const std::string &file) {
  BundleHeader header;
  if (file.size() < sizeof(header))
    fail("not a bundle: expected at least " + std::to_string(sizeof(header)) +
         " bytes, but got " + std::to_string(file.size()));
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.magic, kBundleMagic, sizeof(kBundleMagic)) != 0)
    fail("not a bundle: it does not start as one");
  if (header.version != kBundleVersion)
    fail("expected a bundle of version " + std::to_string(kBundleVersion) +
         ", but got version " + std::to_string(header.version) +
         ": compile it again");
  if (header.fileSize != file.size())
    fail("damaged bundle: expected " + std::to_string(header.fileSize) +
         " bytes, but got " + std::to_string(file.size()));
  if (header.checksum != getBundleChecksum(file.data(), file.size()))
    fail("damaged bundle: the checksum does not match");
  if (header.manifestSize > file.size() - sizeof(header))
    fail("damaged bundle: the manifest does not fit");
  return header;
}

Bundle Bundle::parse(std::string contents) {
  BundleHeader header = readHeader(contents);
  Bundle bundle;
  bundle.file = std::make_unique<const std::string>(std::move(contents));
  std::string_view all = *bundle.file;
  bundle.manifest = all.substr(sizeof(header), header.manifestSize);
  try {
    Manifest manifest(bundle.manifest);
    uint64_t start = getBlobStart(header.manifestSize);
    Reader(bundle, all.substr(std::min<uint64_t>(start, all.size())))
        .read(manifest.root);
  } catch (const json::exception &error) {
    malformed(error.what());
  }
  return bundle;
}
