"""Every family for a GPU: a bundle that launches on the fake driver, and the same kernels in the emulator."""

import ctypes
import os
import pathlib
import subprocess

import pytest

import linattn

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.path.abspath(linattn.__file__)).parents[2]
DRIVER = BUILD / "test" / "FakeDriver" / "liblinattn_fake_cuda.so"
FAMILIES = sorted(path.stem for path in (ROOT / "test" / "Families").glob("*.mlir"))
TOKENS = 5

pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="the package is not in its build")


class CudaArray:
    """Host memory that passes for a device's."""

    def __init__(self, operand):
        shape = tuple(TOKENS if extent is None else extent for extent in operand.shape)
        types = {"f32": ("<f4", 4), "i32": ("<i4", 4), "f16": ("<f2", 2), "i1": ("|i1", 1)}
        typestr, size = types[operand.dtype]
        for extent in shape:
            size *= extent
        self.memory = ctypes.create_string_buffer(size + 256)
        start = ctypes.addressof(self.memory)
        data = (start + -start % 256, False)
        self.interface = {"shape": shape, "typestr": typestr, "data": data, "strides": None, "version": 3}

    @property
    def __cuda_array_interface__(self):
        return self.interface


def test_there_are_all_of_them():
    assert len(FAMILIES) == 33


@pytest.mark.parametrize("family", FAMILIES)
def test_bundle(family, tmp_path, monkeypatch):
    monkeypatch.setenv("LINATTN_CUDA_DRIVER", str(DRIVER))
    import linattn_runner

    path = tmp_path / "family.lab"
    source = ROOT / "test" / "Families" / f"{family}.mlir"
    command = [BUILD / "bin" / "linattn-compile", source, "--target=nvvm", "--chip=sm_90", "-o", path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kernel = linattn_runner.load(path)
    arrays = [CudaArray(operand) for operand in kernel.arguments + kernel.results]
    driver = ctypes.CDLL(str(DRIVER))
    driver.fakeCudaCalls.restype = driver.fakeCudaComplaints.restype = ctypes.c_char_p
    driver.fakeCudaReset()
    kernel.prepare()
    kernel.launch(*arrays)
    assert b"cuLaunchKernel" in driver.fakeCudaCalls()
    assert driver.fakeCudaComplaints() == b""


@pytest.mark.parametrize("family", FAMILIES)
def test_emulated(family):
    source = ROOT / "test" / "Families" / f"{family}.mlir"
    # More than a tile of 16, except for RFA: its denominators of random numbers come close to 0.
    tokens = TOKENS if family == "rfa" else 20
    command = [BUILD / "bin" / "linattn-run", source, "--target=nvvm-emulated", f"--open-size={tokens}", "--compare=reference"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "no findings" in done.stdout, done.stdout[-2000:] + done.stderr
