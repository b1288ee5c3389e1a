# Thin wrappers over LLVM's macros, so that every target of the project gets the
# same warnings, the shared precompiled header and the shared MLIR library.

# The MLIR headers that most of the compiler's sources include.
set(LINATTN_PCH_HEADERS
  <mlir/Dialect/Affine/IR/AffineOps.h>
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/Arith/Utils/Utils.h>
  <mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h>
  <mlir/Dialect/Bufferization/IR/Bufferization.h>
  <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/GPU/IR/GPUDialect.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/LLVMIR/NVVMDialect.h>
  <mlir/Dialect/Linalg/IR/Linalg.h>
  <mlir/Dialect/Math/IR/Math.h>
  <mlir/Dialect/MemRef/IR/MemRef.h>
  <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Dialect/SCF/Transforms/TileUsingInterface.h>
  <mlir/Dialect/Tensor/IR/Tensor.h>
  <mlir/Dialect/Vector/IR/VectorOps.h>
  <mlir/IR/Builders.h>
  <mlir/IR/DialectRegistry.h>
  <mlir/IR/PatternMatch.h>
  <mlir/Interfaces/DestinationStyleOpInterface.h>
  <mlir/Pass/Pass.h>
  <mlir/Pass/PassManager.h>
  <mlir/Transforms/DialectConversion.h>
  <mlir/Transforms/GreedyPatternRewriteDriver.h>)

function(linattn_target_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter
    $<$<BOOL:${LINATTN_ENABLE_WERROR}>:-Werror>)
endfunction()

# Parsing MLIR's headers is most of the compile time: one precompiled header,
# owned by a target of its own, serves all others.
function(linattn_target_pch target)
  if(NOT TARGET LinAttnPrecompiled)
    set(source "${PROJECT_BINARY_DIR}/Precompiled.cpp")
    file(GENERATE OUTPUT "${source}" CONTENT "")
    add_library(LinAttnPrecompiled STATIC "${source}")
    # It names files of this build, which a cache would hand to other builds.
    set_target_properties(LinAttnPrecompiled PROPERTIES CXX_COMPILER_LAUNCHER "")
    llvm_update_compile_flags(LinAttnPrecompiled)
    linattn_target_options(LinAttnPrecompiled)
    target_precompile_headers(LinAttnPrecompiled PRIVATE ${LINATTN_PCH_HEADERS})
  endif()
  target_precompile_headers(${target} REUSE_FROM LinAttnPrecompiled)
endfunction()

# add_linattn_library(name sources... [DEPENDS ...] [MLIR_LIBS ...] [LINK_LIBS ...] [NO_MLIR])
# MLIR_LIBS collapse to the shared libMLIR; LINK_LIBS are our own libraries.
# NO_MLIR: plain C++ without LLVM headers (the oracle).
function(add_linattn_library name)
  cmake_parse_arguments(ARG "NO_MLIR" "" "DEPENDS;MLIR_LIBS;LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  if(NOT ARG_NO_MLIR)
    add_dependencies(${name} LinAttnTableGen ${ARG_DEPENDS})
    llvm_update_compile_flags(${name})
    mlir_target_link_libraries(${name} PUBLIC MLIRIR ${ARG_MLIR_LIBS})
    target_link_libraries(${name} INTERFACE LLVM)
    linattn_target_pch(${name})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS})
  linattn_target_options(${name})
  linattn_export(${name})
endfunction()

# Installs LinAttnX as LinAttn::X.
function(linattn_export name)
  string(REGEX REPLACE "^LinAttn" "" short "${name}")
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  install(TARGETS ${name} EXPORT LinAttnTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  set_property(GLOBAL APPEND PROPERTY LINATTN_EXPORTED ${short})
endfunction()

# add_linattn_tool(name sources... [LINK_LIBS ...])
function(add_linattn_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  add_dependencies(${name} LinAttnTableGen)
  # Executables compile as PIE by default; the precompiled header is PIC.
  target_compile_options(${name} PRIVATE -fPIC)
  llvm_update_compile_flags(${name})
  mlir_target_link_libraries(${name} PRIVATE MLIRIR)
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} LLVM)
  linattn_target_pch(${name})
  linattn_target_options(${name})
  set_property(GLOBAL APPEND PROPERTY LINATTN_TOOLS ${name})
endfunction()

# add_linattn_unittest(name sources... [LINK_LIBS ...] [NO_MLIR])
function(add_linattn_unittest name)
  cmake_parse_arguments(ARG "NO_MLIR" "" "LINK_LIBS" ${ARGN})
  if(ARG_NO_MLIR)
    add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} GTest::gtest GTest::gtest_main)
  else()
    add_linattn_tool(${name} ${ARG_UNPARSED_ARGUMENTS} LINK_LIBS ${ARG_LINK_LIBS} GTest::gtest GTest::gtest_main)
  endif()
  # Inlining is half of the compile time of tests, which run little code of their own.
  target_compile_options(${name} PRIVATE "$<$<CXX_COMPILER_ID:Clang>:SHELL:-mllvm -inline-threshold=0>")
  linattn_target_options(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test/Unit")
  set_property(GLOBAL APPEND PROPERTY LINATTN_UNITTESTS ${name})
endfunction()
