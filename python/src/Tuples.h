//===- Tuples.h - Tuples in any C API of Python -----------------*- C++ -*-===//
// Macros if the module is for one version of Python. The stable ABI has checked
// functions instead, and no view of a tuple's items.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_TUPLES_H
#define LINATTN_PYTHON_TUPLES_H

#include "llvm/ADT/SmallVector.h"

#include <nanobind/nanobind.h>

namespace linattn::python {

#ifdef Py_LIMITED_API
inline size_t getTupleSize(nanobind::handle tuple) {
  return static_cast<size_t>(PyTuple_Size(tuple.ptr()));
}
inline PyObject *getTupleItem(nanobind::handle tuple, size_t i) {
  return PyTuple_GetItem(tuple.ptr(), static_cast<Py_ssize_t>(i));
}
/// Sets an item of a tuple without other references; takes ownership of it.
inline void setTupleItem(nanobind::handle tuple, size_t i, PyObject *item) {
  PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), item);
}
#else
inline size_t getTupleSize(nanobind::handle tuple) {
  return static_cast<size_t>(PyTuple_GET_SIZE(tuple.ptr()));
}
inline PyObject *getTupleItem(nanobind::handle tuple, size_t i) {
  return PyTuple_GET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i));
}
/// Sets an item of a tuple without other references; takes ownership of it.
inline void setTupleItem(nanobind::handle tuple, size_t i, PyObject *item) {
  PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), item);
}
#endif

/// The items of a tuple, borrowed.
inline llvm::SmallVector<PyObject *, 8> itemsOf(nanobind::tuple tuple) {
  llvm::SmallVector<PyObject *, 8> items(getTupleSize(tuple));
  for (size_t i = 0; i < items.size(); ++i)
    items[i] = getTupleItem(tuple, i);
  return items;
}

} // namespace linattn::python

#endif // LINATTN_PYTHON_TUPLES_H
