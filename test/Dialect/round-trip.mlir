// RUN: linattn-opt %s | linattn-opt | FileCheck %s
// CHECK-LABEL: @f
func.func @f() { return }
