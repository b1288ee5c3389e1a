# The lit configuration: which files are tests, which tools they may call, and
# which features (REQUIRES, %if) this machine has.

import glob
import os
import shutil
import sys

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "linattn"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Fuzz", "Inputs", "Unit", "Python"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.linattn_obj_root, "test")

llvm_config.with_system_environment(["HOME", "TMP", "TEMP", "LINATTN_NUM_THREADS", "LINATTN_MATRIX_UNIT"])


def host_cpu_flags():
    """The flags of this machine's processor, empty where /proc does not say."""
    try:
        with open("/proc/cpuinfo") as cpuinfo:
            for line in cpuinfo:
                if line.startswith("flags"):
                    return set(line.split(":", 1)[1].split())
    except OSError:
        pass
    return set()


flags = host_cpu_flags()
if {"avx2", "fma"} <= flags:
    config.available_features.add("avx2")
if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= flags:
    config.available_features.add("avx512")
if config.linattn_ptxas and not config.linattn_ptxas.endswith("NOTFOUND"):
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", config.linattn_ptxas))
if config.linattn_assertions.upper() in ("1", "ON", "TRUE", "YES"):
    config.available_features.add("asserts")

# Whole matrices instead of one of each kind.
if os.environ.get("LINATTN_MATRIX") == "all":
    config.available_features.add("matrix")

# How directories compile kernels whose optimized code is compared with the oracle elsewhere.
config.optimization = os.environ.get(
    "LINATTN_OPTIMIZATION", "full" if "matrix" in config.available_features else "quick"
)

# A partial build may lack these.
if os.path.exists(config.linattn_plugin):
    config.available_features.add("plugin")
config.substitutions.append(("%linattn_plugin", config.linattn_plugin))
if os.path.exists(os.path.join(config.linattn_tools_dir, "linattn-lsp-server")):
    config.available_features.add("lsp")

# From IR to assembly for a pinned CPU.
if all(
    os.path.exists(os.path.join(config.llvm_tools_dir, tool))
    for tool in ("mlir-translate", "opt", "llc")
):
    config.available_features.add("llc")

package = os.path.join(config.linattn_obj_root, "python")
if glob.glob(os.path.join(package, "linattn", "_linattn.*")):
    config.available_features.add("python-package")
config.substitutions.append(("%package", package))

# Emulators that run objects for other machines.
config.substitutions.append(("%clang", "clang-22"))
for feature, program in (
    ("clang", "clang-22"),
    ("node", "node"),
    ("rustc", "rustc"),
    ("qemu-aarch64", "qemu-aarch64"),
    ("qemu-riscv64", "qemu-riscv64"),
):
    if shutil.which(program):
        config.available_features.add(feature)
for program in ("chromium-headless-shell", "chromium", "google-chrome"):
    if shutil.which(program):
        config.available_features.add("chromium")
        config.substitutions.append(("%chromium", program))
        break

# MPICH, from its wheel or where LINATTN_MPI says.
mpi = os.environ.get("LINATTN_MPI") or sys.prefix
if all(os.path.exists(os.path.join(mpi, path)) for path in ("bin/mpiexec", "include/mpi.h", "lib/libmpi.so")):
    config.available_features.add("mpi")
config.substitutions.append(("%mpi", mpi))

config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%root", os.path.dirname(config.test_source_root)))
config.substitutions.append(("%runner_library", os.path.join(config.linattn_obj_root, "lib", "liblinattn_runner.so")))
onnxruntime_library = os.path.join(config.linattn_obj_root, "lib", "liblinattn_onnxruntime.so")
if os.path.exists(onnxruntime_library):
    config.available_features.add("onnxruntime-library")
config.substitutions.append(("%onnxruntime_library", onnxruntime_library))
config.substitutions.append(
    ("%fake_driver", os.path.join(config.test_exec_root, "FakeDriver", "liblinattn_fake_cuda.so"))
)

# LINATTN_OPT_CHECK_IR_ROUNDTRIP=1 makes every run of linattn-opt also print,
# parse and compare the IR it read.
opt_arguments = []
if os.environ.get("LINATTN_OPT_CHECK_IR_ROUNDTRIP"):
    opt_arguments = ["--verify-roundtrip"]

llvm_config.add_tool_substitutions(
    [
        ToolSubst("linattn-opt", extra_args=opt_arguments),
        # Exact comparisons take one prime field of two.
        ToolSubst(
            "linattn-run", extra_args=[] if "matrix" in config.available_features else ["--fields=1"], unresolved="ignore"
        ),
        ToolSubst("linattn-compile", unresolved="ignore"),
        ToolSubst("linattn-families", unresolved="ignore"),
        ToolSubst("linattn-runner-example", unresolved="ignore"),
        ToolSubst("llvm-nm", unresolved="ignore"),
        ToolSubst("llvm-readelf", unresolved="ignore"),
        ToolSubst("linattn-lsp-server", unresolved="ignore"),
        ToolSubst("linattn-translate", unresolved="ignore"),
        ToolSubst("mlir-opt", unresolved="ignore"),
        ToolSubst("mlir-translate", unresolved="ignore"),
        ToolSubst("opt", unresolved="ignore"),
        ToolSubst("llc", unresolved="ignore"),
        "FileCheck",
        "count",
        "not",
        "split-file",
    ],
    [config.linattn_tools_dir, config.llvm_tools_dir],
)
