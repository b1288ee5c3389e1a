#!/usr/bin/env python3
"""Feeds linattn malformed and random input, and looks for anything but an answer or an error.

    test/Fuzz/fuzz.py [TARGET...] [--seed N] [--count N | --seconds S] [--findings FOLDER]

Targets: modules, npy, bundles, states, api, onnx; all if none is named. Each runs in a process of
its own. An input that ends that process, or on which the results disagree with the oracle, is
written to the folder of findings, with its number and seed; a finding is run again by
`fuzz.py TARGET --seed N --only NUMBER`.
"""

import argparse
import ast
import atexit
import contextlib
import functools
import io
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "test/Python"))
BUILD = pathlib.Path(os.environ.get("LINATTN_BUILD", ROOT / "build"))

# Exceptions that an input may raise.
REFUSALS = (ValueError, TypeError)

# Calls of one kernel in the target `api`: compiling it takes as long as many of them.
DRAWS = int(os.environ.get("LINATTN_FUZZ_DRAWS", "8"))


def check_refusal(error, data=b""):
    """An error says something, in the words of the API; it may quote its input."""
    from conftest import INTERNAL

    message = str(error)
    assert message, "an error without a message"
    internal = INTERNAL.search(message)
    assert not internal or internal.group().encode() in data, message


@functools.cache
def scratch():
    """A folder for files, which is removed in the end."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return folder.name


def mutate(data, rng, words):
    """Bytes like these: changed, cut, doubled, or with a word from the format."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at, size = rng.randrange(len(data) + 1), rng.choice((1, 2, 5, 20, 100))
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + size]
        elif kind == 2:
            data[at:at] = data[at : at + size]
        elif kind == 3:
            source = rng.randrange(len(data) + 1)
            data[at : at + size] = data[source : source + size]
        elif kind == 4:
            data[at : at + rng.choice((0, 0, size))] = rng.choice(words)
        else:
            data[at:at] = rng.choice(words) * rng.choice((1, 1, 2, 50, 3000))
    return bytes(data)


# ----------------------------------------------------------------------------
# Targets: functions that make something of `rng`; a crash or another exception is a finding
# ----------------------------------------------------------------------------


def read_words(name):
    """The words of a format, as libFuzzer reads them: quoted, one on a line."""
    lines = (HERE / "dictionaries" / f"{name}.dict").read_text().splitlines()
    return [ast.literal_eval("b" + line) for line in lines if line.startswith('"')]


def read_corpus(*patterns):
    files = [file for folder, pattern in patterns for file in sorted((ROOT / folder).glob(pattern))]
    assert files, patterns
    return [file.read_bytes() for file in files]


def fuzz_modules(rng):
    import linattn

    corpus = read_corpus(
        ("test/Fuzz/corpus/module", "*.mlir"), ("examples", "*.mlir"), ("test/Unit/Runner/Inputs", "*.mlir")
    )
    words = read_words("module")

    def run():
        text = mutate(rng.choice(corpus), rng, words).decode("utf-8", "replace").replace("\r", "\n") + "\n"
        yield text.encode()
        linattn.compile(text, target=rng.choice(("cpu", "cpu", "reference")))

    return run


def fuzz_states(rng):
    from linattn import State

    state = State(*(rng_array(rng, *shape) for shape in ((1, 2, 3, 4), (1, 2, 3), (1, 2))))
    folder = scratch()
    corpus = []
    for suffix in (".npz", ".safetensors"):
        path = pathlib.Path(folder, "state" + suffix)
        state.save(path)
        corpus.append((path, path.read_bytes()))
    packed = io.BytesIO()
    np.savez_compressed(packed, S=state.S, z=state.z)
    corpus.append((corpus[0][0], packed.getvalue()))
    words = read_words("state")

    def run():
        path, whole = rng.choice(corpus)
        data = mutate(whole, rng, words)
        yield data
        path.write_bytes(data)
        State.load(path)

    return run


def fuzz_npy(rng):
    """Files for --arg of linattn-run, which reads them without NumPy."""
    folder = pathlib.Path(scratch())
    module = folder / "identity.mlir"
    module.write_text("func.func @f(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {\n  return %x : tensor<?x?xf32>\n}\n")
    corpus = []
    for array in (np.ones((3, 4), np.float32), np.ones((3, 4), np.float32, order="F"), np.ones((0, 4), np.float16)):
        file = io.BytesIO()
        np.save(file, array)
        corpus.append(file.getvalue())
    words = read_words("npy")

    def run():
        data = mutate(rng.choice(corpus), rng, words)
        yield data
        path = folder / "x.npy"
        path.write_bytes(data)
        command = [BUILD / "bin/linattn-run", module, "--trusted", f"--arg={path}", f"--out={folder / 'o.npy'}"]
        done = subprocess.run(command, capture_output=True, timeout=60)
        assert done.returncode in (0, 1), f"exit code {done.returncode}: {done.stderr[-400:]}"

    return run


def fuzz_bundles(rng):
    """Manifests. The code behind them is machine code, which nothing can check."""
    os.environ.setdefault("LINATTN_CUDA_DRIVER", str(BUILD / "test/FakeDriver/liblinattn_fake_cuda.so"))
    os.environ.setdefault("LINATTN_RUNNER_LIBRARY", str(BUILD / "lib/liblinattn_runner.so"))
    import linattn_runner

    corpus = [file.read_bytes() for file in sorted((BUILD / "test/Unit/Bundles").glob("*.lab"))]
    words = read_words("bundle")
    folder = pathlib.Path(scratch())

    def run():
        whole = rng.choice(corpus)
        manifest = whole.find(b'"operands"')
        end = rng.randrange(max(manifest, 1), min(len(whole), manifest + 6000))
        data = mutate(whole[:end], rng, words) + whole[end:]
        yield data
        path = folder / "x.lab"
        path.write_bytes(data)
        try:
            kernel = linattn_runner.load(path)
            repr(kernel), kernel.manifest
        except linattn_runner.Error:
            pass

    return run


def rng_array(rng, *shape):
    return np.random.default_rng(rng.randrange(2**32)).standard_normal(shape)


def compare(out, expected, tolerance=1e-4):
    out, expected = np.asarray(out, np.float64), np.asarray(expected, np.float64)
    assert out.shape == expected.shape, (out.shape, expected.shape)
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=1e-3)
    difference = np.abs(out - expected)
    assert (difference <= tolerance * scale).all(), f"off by {difference.max() / scale:.3g}"


def fuzz_api(rng):
    """Calls of one kernel, with other sizes and data each time (calls.py)."""
    import calls

    import linattn

    kind = rng.choice(calls.KINDS)
    description, call = kind(rng)
    # Threads that wait for one another take long beside other programs.
    linattn.set_num_threads(rng.choice((1, 1, 1, 1, 2)))

    def run():
        # Hardly two odd scans have a kernel in common.
        for number in range(min(DRAWS, 8) if kind is calls.odd_scan else DRAWS):
            yield f"{kind.__name__} {description}, call {number}".encode()
            try:
                results = call(rng)
            except REFUSALS as error:
                check_refusal(error)
                assert kind is calls.odd_scan, f"a legal call was refused: {error}"
            else:
                count(results)
                if not results and kind is calls.scan:
                    return  # in a form that its rule has not

    return run


def fuzz_onnx(rng):
    """The attributes and shapes of ONNX's LinearAttention."""
    import linattn

    def run():
        B, T, Hq, Hk = rng.choice((1, 2)), rng.choice((1, 4, 9)), rng.choice((1, 2, 4)), rng.choice((1, 2, 3))
        K, V = rng.choice((1, 4, 8)), rng.choice((1, 4, 8))
        attributes = {
            "q_num_heads": rng.choice((Hq, Hq, Hq, 0, -1, 3)), "kv_num_heads": rng.choice((Hk, Hk, Hk, 0, 2**40)),
            "update_rule": rng.choice(("linear", "gated", "delta", "gated_delta", "other", "")),
            "scale": rng.choice((0.0, 1.0, -2.0, float("nan"), 1e20)), "chunk_size": rng.choice((0, 4, 64, -1, 2**40)),
        }  # fmt: skip
        odd = rng.choice((0, 0, 0, 1))
        q, k, v = (rng_array(rng, B, T, n + odd * rng.choice((0, 1))) for n in (Hq * K, Hk * K, Hk * V))
        inputs = [x.astype(np.float32) for x in (q, 0.3 * k, v)]
        state = rng.choice((None, rng_array(rng, B, Hk, K, V).astype(np.float32)))
        decay = -np.abs(rng_array(rng, B, T, rng.choice((Hk, Hk * K)))).astype(np.float32)
        beta = rng_array(rng, B, T, Hk).astype(np.float32)
        extra = {
            "past_state": state, "decay": rng.choice((None, decay, decay)), "beta": rng.choice((None, beta, beta))
        }  # fmt: skip
        yield repr((attributes, [x.shape for x in inputs], [n for n in extra if extra[n] is not None])).encode()
        out, present = linattn.onnx_linear_attention(*inputs, **extra, **attributes)
        expected, last = linattn.reference.onnx_linear_attention(*inputs, **extra, **attributes)
        compare(out, expected)
        compare(present, last)
        count(1)

    return run


def count(number):
    """Results that were compared with the oracle."""
    global compared
    compared += number


compared = 0
TARGETS = {name[5:]: function for name, function in list(globals().items()) if name.startswith("fuzz_")}


# ----------------------------------------------------------------------------
# Running
# ----------------------------------------------------------------------------


def run_target(name, seed, count, seconds, only, current):
    """Runs inputs one after another. The input is on disk before it is tried."""
    with contextlib.redirect_stdout(sys.stderr):
        number, end = 0, time.monotonic() + seconds if seconds else None
        while (time.monotonic() < end) if end else number < count:
            # Every input has a seed of its own, so that one can be run alone.
            if only is None or number == only:
                data = b""
                try:
                    for data in TARGETS[name](random.Random(f"{name} {seed} {number}"))():
                        current.write_bytes(f"{name} --seed {seed} --only {number}\n".encode() + data)
                except REFUSALS as error:
                    check_refusal(error, data)
            number += 1
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100, help="inputs for each target")
    parser.add_argument("--seconds", type=float, help="how long for each target, instead")
    parser.add_argument("--only", type=int, help="this input alone")
    parser.add_argument("--findings", type=pathlib.Path, default=BUILD / "fuzz")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"expected {', '.join(TARGETS)}, but got {', '.join(sorted(unknown))}")
    options.findings.mkdir(parents=True, exist_ok=True)
    if options.only is not None:
        options.count = options.only + 1
    failed = False
    for name in options.targets or TARGETS:
        current = options.findings / f"{name}-{options.seed}"
        if options.child:
            number = run_target(name, options.seed, options.count, options.seconds, options.only, current)
            current.unlink(missing_ok=True)
            print(f"{name}: {number} inputs, {compared} results compared", flush=True)
            continue
        # A crash ends the child, and leaves its input.
        command = [sys.executable, __file__, "--child", name, "--seed", str(options.seed), "--findings", str(options.findings)]
        command += ["--seconds", str(options.seconds)] if options.seconds else ["--count", str(options.count)]
        command += ["--only", str(options.only)] if options.only is not None else []
        code = subprocess.run(command).returncode
        if code:
            failed = True
            print(f"{name}: a finding (exit code {code}); the input is {current}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
