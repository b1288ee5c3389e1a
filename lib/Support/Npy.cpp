//===- Npy.cpp - NumPy's array files --------------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
//
//===----------------------------------------------------------------------===//

#include "linattn/Support/Npy.h"
#include "linattn/Support/LargeMemory.h"
#include "linattn/Support/Sizes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace linattn;

static constexpr llvm::StringLiteral kMagic("\x93NUMPY");

namespace {

/// NumPy's name of an element type, without byte order.
struct TypeName {
  llvm::StringLiteral name;
  DType dtype;
};
constexpr TypeName kTypeNames[] = {
    {"f2", DType::F16},  {"f4", DType::F32},  {"f8", DType::F64},
    {"V2", DType::BF16}, {"u2", DType::BF16}, {"b1", DType::I1},
    {"i1", DType::I8},   {"u1", DType::I8},   {"i2", DType::I16},
    {"i4", DType::I32},  {"i8", DType::I64}};

/// Reads the header, a Python dictionary literal of three known keys.
class HeaderParser {
public:
  HeaderParser(llvm::StringRef name, llvm::StringRef file,
               llvm::StringRef header)
      : name(name), file(file), rest(header) {}

  llvm::Error parse(NpyArray &array) {
    bool fortran = false, sawType = false, sawOrder = false, sawShape = false;
    if (llvm::Error error = expect("{"))
      return error;
    while (!consume("}")) {
      if (consume("'descr'")) {
        sawType = true;
        if (llvm::Error error = parseDescr(array.dtype))
          return error;
      } else if (consume("'fortran_order'")) {
        sawOrder = true;
        if (llvm::Error error = parseOrder(fortran))
          return error;
      } else if (consume("'shape'")) {
        sawShape = true;
        if (llvm::Error error = parseShape(array.shape))
          return error;
      } else {
        return fail("expected 'descr', 'fortran_order' or 'shape'");
      }
      if (!consume(",") && !rest.ltrim().starts_with("}"))
        return fail("expected ',' or '}'");
    }
    if (!sawType || !sawOrder || !sawShape)
      return fail("expected 'descr', 'fortran_order' and 'shape'");
    setStrides(array, fortran);
    return llvm::Error::success();
  }

  llvm::Error fail(const llvm::Twine &message) const {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   name + ": byte " +
                                       llvm::Twine(rest.data() - file.data()) +
                                       ": error: " + message);
  }

private:
  bool consume(llvm::StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }

  llvm::Error expect(llvm::StringRef token) {
    if (consume(token))
      return llvm::Error::success();
    return fail("expected '" + token + "'");
  }

  llvm::Error parseDescr(DType &dtype) {
    if (llvm::Error error = expect(":"))
      return error;
    if (!consume("'"))
      return fail("expected a type of one element, not a structure");
    llvm::StringRef descr = rest.take_until([](char c) { return c == '\''; });
    for (const TypeName &type : kTypeNames) {
      if (descr.drop_front(descr.empty() ? 0 : 1) != type.name)
        continue;
      if (descr.front() == '>' && getByteSize(type.dtype) > 1)
        return fail("expected little-endian elements, but got '" + descr + "'");
      dtype = type.dtype;
      rest = rest.drop_front(descr.size());
      return expect("'");
    }
    return fail("expected elements of type f2, f4, f8, b1, i1, i2, i4, i8, u2 "
                "or V2, but got '" +
                descr + "'");
  }

  llvm::Error parseOrder(bool &fortran) {
    if (llvm::Error error = expect(":"))
      return error;
    fortran = consume("True");
    if (!fortran && !consume("False"))
      return fail("expected True or False");
    return llvm::Error::success();
  }

  llvm::Error parseShape(llvm::SmallVectorImpl<int64_t> &shape) {
    if (llvm::Error error = expect(":"))
      return error;
    if (llvm::Error error = expect("("))
      return error;
    while (!consume(")")) {
      rest = rest.ltrim();
      int64_t extent;
      llvm::StringRef next = rest;
      if (next.consumeInteger(10, extent) || extent < 0)
        return fail("expected an extent");
      rest = next;
      shape.push_back(extent);
      if (!consume(",") && !rest.ltrim().starts_with(")"))
        return fail("expected ',' or ')'");
    }
    return llvm::Error::success();
  }

  static void setStrides(NpyArray &array, bool fortran) {
    size_t rank = array.shape.size();
    array.strides.resize(rank);
    int64_t stride = 1;
    for (size_t i = 0; i < rank; ++i) {
      size_t dim = fortran ? i : rank - 1 - i;
      array.strides[dim] = stride;
      // An overflow is detected where the size is computed.
      stride = multiplyWrapping(stride, array.shape[dim]);
    }
  }

  llvm::StringRef name, file, rest;
};

} // namespace

/// The size in bytes; nothing if it overflows.
static std::optional<int64_t> getDataSize(const NpyArray &array) {
  return getByteCount(getByteSize(array.dtype), array.shape);
}

llvm::Expected<NpyArray> linattn::parseNpy(llvm::StringRef bytes,
                                           llvm::StringRef name) {
  HeaderParser start(name, bytes, bytes);
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + 2)
    return start.fail("expected a .npy file");
  unsigned major = static_cast<uint8_t>(bytes[kMagic.size()]);
  if (major < 1 || major > 3)
    return start.fail("expected format version 1, 2 or 3, but got " +
                      llvm::Twine(major));
  size_t lengthOffset = kMagic.size() + 2;
  size_t headerOffset = lengthOffset + (major == 1 ? 2 : 4);
  if (bytes.size() < headerOffset)
    return start.fail("expected a header, but the file ends");
  const char *length = bytes.data() + lengthOffset;
  size_t headerSize = major == 1 ? llvm::support::endian::read16le(length)
                                 : llvm::support::endian::read32le(length);
  if (bytes.size() - headerOffset < headerSize)
    return start.fail("expected a header of " + llvm::Twine(headerSize) +
                      " bytes, but the file ends");

  NpyArray array;
  HeaderParser parser(name, bytes, bytes.substr(headerOffset, headerSize));
  if (llvm::Error error = parser.parse(array))
    return std::move(error);
  llvm::StringRef data = bytes.drop_front(headerOffset + headerSize);
  std::optional<int64_t> size = getDataSize(array);
  if (!size || static_cast<uint64_t>(*size) != data.size())
    return HeaderParser(name, bytes, data)
        .fail("expected " + (size ? llvm::Twine(*size) : llvm::Twine("more")) +
              " bytes of elements, but got " + llvm::Twine(data.size()));
  if (!canAllocate(data.size()))
    return HeaderParser(name, bytes, data)
        .fail("expected memory for " + llvm::Twine(data.size()) +
              " bytes of elements, but the system gave none");
  array.data.assign(data.begin(), data.end());
  return array;
}

llvm::Expected<NpyArray> linattn::readNpy(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return llvm::createStringError(
        buffer.getError(),
        path + ": error: cannot be read: " + buffer.getError().message());
  return parseNpy((*buffer)->getBuffer(), path);
}

llvm::Error linattn::writeNpy(llvm::StringRef path, DType dtype,
                              llvm::ArrayRef<int64_t> shape, const void *data) {
  NpyArray array;
  array.dtype = dtype == DType::Index ? DType::I64 : dtype;
  array.shape.assign(shape.begin(), shape.end());
  const auto *type = llvm::find_if(kTypeNames, [&](const TypeName &type) {
    return type.dtype == array.dtype;
  });
  bool ordered = getByteSize(array.dtype) > 1;
  std::string header = "{'descr': '" + std::string(ordered ? "<" : "|") +
                       type->name.str() +
                       "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : shape)
    header += std::to_string(extent) + ",";
  header += "), }";
  // The data starts at a multiple of 64 bytes.
  size_t prefix = kMagic.size() + 4;
  header.append(63 - (prefix + header.size()) % 64, ' ');
  header += '\n';

  std::error_code code;
  llvm::raw_fd_ostream os(path, code);
  if (code)
    return llvm::createStringError(
        code, path + ": error: cannot be written: " + code.message());
  char length[2];
  llvm::support::endian::write16le(length, header.size());
  os << kMagic << '\x01' << '\x00';
  os.write(length, 2);
  os << header;
  os.write(static_cast<const char *>(data), *getDataSize(array));
  os.flush();
  if (!os.has_error())
    return llvm::Error::success();
  code = os.error();
  os.clear_error();
  return llvm::createStringError(
      code, path + ": error: cannot be written: " + code.message());
}
