#!/usr/bin/env python3
"""Which kernels a call launches, and with how many threads: docs/generated/Launches.md.

    python3 tools/gpu/launches.py > docs/generated/Launches.md

Every public function is called on arrays that say that they are in the memory of a GPU. The driver is
test/FakeDriver, which records launches and runs no kernel, so that elements of the arrays do not matter.
"""

import ctypes
import inspect
import os
import pathlib
import re

B, T, H, D = 2, 1024, 16, 64
SIZES = {"B": B, "T": T, "H": H, "Hq": H, "Hk": H, "Hv": H, "G": 1, "K": D, "V": D, "M": 16, "L": 12, "C": H * D,
         "S": 32, "D": 256, "R": 4, "Tn": 2 * T, "H*K": H * D}  # fmt: skip
MULTIPROCESSORS = 132
# Of the threads that the multiprocessors hold, one in eight.
ENOUGH = 2048 * MULTIPROCESSORS // 8
WARP = 32

# Operands that a call gets only where a variant names them.
OPTIONAL = ("A_log", "dt_bias", "g_gamma", "gv", "p", "D", "Z", "gamma_log")
# By family: (what the table says, options, optional operands).
VARIANTS = {
    "gated_delta_rule": [("l2norm, A_log, sigmoid", {"use_qk_l2norm_in_kernel": True, "use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True}, ("A_log", "dt_bias"))],
    "kda": [("l2norm, A_log", {"use_qk_l2norm_in_kernel": True, "use_gate_in_kernel": True}, ("A_log", "dt_bias"))],
    "gla": [("gv", {}, ("gv",))],
    "mamba2": [("D, dt_softplus", {"dt_softplus": True}, ("D", "dt_bias"))],
    "linear_attention": [("softmax_kernel", {"feature_map": "softmax_kernel"}, ())],
}  # fmt: skip
NEEDED = {"gated_deltaproduct": {"num_householder": 2}, "lightning": {"layer_idx": 1, "num_layers": 12}}
# Public names whose calls launch no kernels of their own on a GPU.
ELSEWHERE = {
    "other names of the functions here": {"conv", "fla"},
    "they run on the CPU": {"onnx_causal_conv_with_state", "onnx_linear_attention", "reference", "weights"},
    "by the Fourier transform of the arrays' library, and by selective_scan": {"fnet", "s4d"},
    "objects; methods of State and StatePool are here": {"Kernel", "RandomProjection", "Report", "State", "StatePool", "UnsupportedError"},
    "settings, models and texts": {"__version__", "block_mask", "compile", "convert", "costs", "deadline", "explain", "feature_maps", "get_num_threads",
                                   "random_projection", "report", "set_num_threads"},
}  # fmt: skip
# Independent results, where they are not B·H·V, the columns of all states.
CHANNELS = {"hgrn": B * D, "rwkv4": B * H * D, "lru": B * 32}


class Device:
    """An array that says that it is on a GPU."""

    def __init__(self, array):
        self.array, self.dtype, self.shape = array, array.dtype, array.shape

    def __dlpack__(self, *, stream=None, max_version=None):
        return self.array.__dlpack__(max_version=max_version)

    def __dlpack_device__(self):
        return 2, 0


class Recorder:
    """The launches of calls."""

    def __init__(self, library):
        self.cuda = ctypes.CDLL(str(library))
        self.cuda.fakeCudaCalls.restype = self.cuda.fakeCudaComplaints.restype = ctypes.c_char_p

    def record(self, call):
        """[(kernel, blocks, threads of a block)], one for each launch."""
        self.cuda.fakeCudaReset()
        call()
        complaints = self.cuda.fakeCudaComplaints().decode()
        assert not complaints, complaints
        launches = []
        for line in self.cuda.fakeCudaCalls().decode().splitlines():
            if match := re.match(r"cuLaunchKernel (\S+) grid (\d+) (\d+) (\d+) block (\d+) (\d+) (\d+)", line):
                x, y, z, bx, by, bz = map(int, match.groups()[1:])
                launches.append((match[1], x * y * z, bx * by * bz))
        return launches


def _array(layout, dtype):
    import numpy as np

    dims = layout.split("|")[0].split("->")[0].split()
    # Untouched pages of zeros cost nothing.
    return Device(np.zeros([SIZES[dim] if dim in SIZES else int(dim) for dim in dims], dtype))


def _families(dtype, gates):
    """(function, options in words, call, independent results) of the named families."""
    import linattn
    from linattn import _linattn

    for name in sorted(linattn._families._named.families):
        function = getattr(linattn, name)
        operands = _linattn.families.describe(name, {})["operands"]
        parameters = inspect.signature(function).parameters
        variants = [("", {}, ()), *VARIANTS.get(name, [])]
        for words, options, given in variants:
            arguments = NEEDED.get(name, {}) | options
            for operand, role, layout, _ in operands:
                optional = operand in OPTIONAL and parameters[operand].default is None
                if operand == "cu_seqlens" or optional and operand not in given:
                    continue
                arguments[operand] = _array(layout, gates if role == "gate" else dtype)
            if name == "mamba3_mimo":
                arguments["MIMO_Z"] = None
            arguments |= {key: None for key, p in parameters.items() if p.default is p.empty and key not in arguments}
            yield name, words, (lambda f=function, a=arguments: f(**a)), CHANNELS.get(name, B * H * D)


def _others(dtype, gates):
    """The same of the functions that no table makes."""
    import linattn
    from linattn import feature_maps as maps

    def tokens(*shape):
        return _array(" ".join(map(str, shape or (B, T, H, D))), dtype)

    q, k, v = tokens(), tokens(), tokens()
    gate, wide = _array("B T H", gates), _array("B T H K", gates)
    rows, columns = B * T * H, B * H * D
    yield "scan", "", lambda: linattn.scan(q, k, v), columns
    yield "scan", "decay", lambda: linattn.scan(q, k, v, decay=gate), columns
    yield "scan", "decay per channel", lambda: linattn.scan(q, k, v, decay=wide), columns
    yield "scan", "delta", lambda: linattn.scan(q, k, v, beta=gate, update="delta"), columns
    yield "attention", "causal", lambda: linattn.attention(q, k, v, causal=True), columns
    yield "attention", "", lambda: linattn.attention(q, k, v), columns
    yield "attention", "softmax", lambda: linattn.attention(q, k, v, weights="softmax", causal=True), rows
    yield "attention", "causal, exp", lambda: linattn.attention(q, k, v, causal=True, feature_map="exp"), columns
    yield "attention", "causal, relu", lambda: linattn.attention(q, k, v, causal=True, feature_map="relu"), columns
    yield "attention", "causal, φ(x) = x²", lambda: linattn.attention(q, k, v, causal=True, feature_map=lambda x: x * x + 1), columns
    for name in ("softmax", "l2norm", "dpfp"):
        phi = getattr(maps, name)()
        yield "attention", f"causal, {name}", lambda phi=phi: linattn.attention(q, k, v, causal=True, feature_map=phi), columns
    favor = maps.favor(_array(f"{D} {D}", "float32"))
    yield "attention", "causal, favor", lambda: linattn.attention(q, k, v, causal=True, feature_map=favor), columns
    weight = _array(str(D), "float32")
    sums, share = _array(f"{T} 256", dtype), _array(str(H), "float32")
    yield "nystrom", "64 landmarks", lambda: linattn.nystrom(q, k, v, landmarks=64), rows
    yield from _groups(q, k, v, dtype)
    yield from _gradients(dtype)
    yield "linformer", "", lambda: linattn.linformer(q, k, v, sums), rows
    yield "hybrid", "", lambda: linattn.hybrid(q, k, v, share, window=128), columns
    yield "output_norm", "", lambda: linattn.output_norm(q, weight=weight), rows
    yield "output_norm", "gate", lambda: linattn.output_norm(q, weight=weight, gate=k), rows
    x, taps = tokens(B, T, H * D), _array(f"{H * D} 4", "float32")
    yield "causal_conv1d", "", lambda: linattn.causal_conv1d(x, taps, activation="silu"), B * T * H * D
    for name in ("rms_norm_gated", "layer_norm_gated"):
        yield name, "", lambda f=getattr(linattn, name): f(q, k, weight), rows
    for name in ("layernorm_fn", "rmsnorm_fn"):
        yield name, "z", lambda f=getattr(linattn, name): f(q, weight, None, k), rows
    yield "bidirectional", "decay", lambda: linattn.bidirectional(q, k, v, decay=gate), columns
    n = 16
    u, A, P = tokens(B, H * D, T), _array(f"{H * D} {n}", "float32"), tokens(B, n, T)
    yield "selective_scan", "softplus", lambda: linattn.selective_scan(u, u, A, P, P, z=u, delta_softplus=True), B * H * D
    yield from _steps(dtype, gates)


def _groups(q, k, v, dtype):
    """Softmax attention whose seed or groups are in the memory of the GPU."""
    import linattn

    def attend(*tokens, **options):
        return linattn.attention(*tokens, weights="softmax", causal=True, **options)

    rows = B * T * H
    seed, counts, pages = _array("1", "int64"), _array("B", "int32"), _array("B 16", "int32")
    packed, offsets = [_array(f"1 {2 * T} {H} {D}", dtype)] * 3, _array("5", "int32")
    pool = [_array(f"32 64 {H} {D}", dtype)] * 2
    yield "attention", "softmax, dropout", lambda: attend(q, k, v, dropout=0.1, seed=seed), rows
    yield "attention", "softmax, packed", lambda: attend(*packed, cu_seqlens=offsets), rows
    yield "attention", "softmax, lengths", lambda: attend(q, k, v, cache_seqlens=counts), rows
    yield "attention", "softmax, pages", lambda: attend(q, *pool, cache_seqlens=counts, block_table=pages), rows


def _gradients(dtype):
    """Of softmax attention with grouped heads: half as many of keys and values."""
    rows = B * T * H
    q, few = _array(f"{B} {H} {T} {D}", dtype), _array(f"{B} {H // 2} {T} {D}", dtype)
    packed, few_packed = _array(f"1 {H} {2 * T} {D}", dtype), _array(f"1 {H // 2} {2 * T} {D}", dtype)
    pool = _array(f"32 {H // 2} 64 {D}", dtype)
    seed, offsets, counts, pages = _array("1", "int64"), _array("5", "int32"), _array("B", "int32"), _array("B 16", "int32")

    def grouped(kind):
        return "grouped", kind, (), None, True, None, None, None, None

    def derive(key, q, k, *others):
        return lambda: _differentiate(key, dtype, (q, k, k, *others), q)

    yield "attention", "softmax, dropout, gradient", derive(("dropout", 0.1, True, True, None, None, None), q, few, seed), rows
    yield "attention", "softmax, packed, gradient", derive(grouped("packed"), packed, few_packed, offsets), rows
    yield "attention", "softmax, lengths, gradient", derive(grouped("lengths"), q, few, counts), rows
    yield "attention", "softmax, pages, gradient", derive(grouped("pages"), q, pool, pages, counts), rows


def _differentiate(key, dtype, operands, cotangent):
    """The gradients of the tokens by a plan's kernel, as a call that PyTorch records has them."""
    import numpy as np

    from linattn import _linattn
    from linattn._recurrence import _plans

    names = {"float16": "f16", "float32": "f32", "int32": "i32", "int64": "i64"}
    recipe = _plans.find(key).build
    q, k, v, *others = operands
    extents = {"Hq": q.shape[1], "Hk": k.shape[1], "Hv": v.shape[1], "K": q.shape[3], "V": v.shape[3], "Tb": k.shape[2]}
    types = [(0, len(array.shape), names[str(array.dtype)]) for array in others]
    text = recipe.device_gradient(names[dtype], extents, types)
    kernel = _linattn.compile(text, "", f"<{recipe.what}>", recipe.resolve(True), differentiate=[0, 1, 2])
    kernel(*operands, cotangent, out=tuple(Device(np.zeros(array.shape, dtype)) for array in (q, k, v)))


def _steps(dtype, gates):
    """Of states: 64 sequences, one token."""
    import numpy as np

    import linattn

    n = 64
    q = _array(f"{n} 1 {H} {D}", dtype)
    decay, wide = _array(f"{n} 1 {H}", gates), _array(f"{n} 1 {H} K", gates)
    rows = Device(np.arange(n, dtype=np.int32))

    def state(pool=n):
        # As one that has been stepped: it is updated in place.
        return linattn.State._own(_array(f"{pool} {H} {D} {D}", "float32"))

    columns = n * H * D
    yield "State.step", "decay", lambda: state().step(q, q, q, decay=decay), columns
    yield "State.step", "decay per channel, delta", lambda: state().step(q, q, q, decay=wide, beta=decay, update="delta"), columns
    # Calls of a pool whose rows are on the GPU.
    yield "StatePool.step", "decay", lambda: state(2 * n).step(q, q, q, decay=decay, state_indices=rows), columns
    yield "State.update", "", lambda: state().update(q, q), columns
    yield "State.query", "", lambda: state().query(q), columns


def calls(dtype="float16", gates="float32"):
    """(function, options in words, call, independent results) of every public function but those of ELSEWHERE."""
    yield from _others(dtype, gates)
    yield from _families(dtype, gates)


def find_driver():
    import linattn

    build = pathlib.Path(os.path.abspath(linattn.__file__)).parents[2]
    return build / "test" / "FakeDriver" / "liblinattn_fake_cuda.so"


def use_driver(library):
    """Before the first call; PTX, whose parameters the driver checks."""
    os.environ |= {"LINATTN_CUDA_DRIVER": str(library), "LINATTN_PTXAS": ""}


DTYPES = (("float16", "float32"), ("float16", "float16"), ("float32", "float32"))


def describe(function, options, dtypes, work, launches):
    """A row of the table; launches of one kernel and size are counted."""
    counted = {}
    for launch in launches:
        counted[launch] = counted.get(launch, 0) + 1
    kernels = ", ".join(
        f"{f'{times} × ' if times > 1 else ''}`{kernel}` {blocks} × {threads}"
        for (kernel, blocks, threads), times in counted.items()
    )
    return f"| `{function}` | {options} | {', '.join(dtypes)} | {work} | {kernels} |"


def main():
    library = find_driver()
    use_driver(library)
    recorder = Recorder(library)
    print(f"""# Launches of each call

Made by `tools/gpu/launches.py` on a driver that records launches and runs nothing. Tokens are `[{B}, {T}, {H}, {D}]`; the chip is sm_90a with
{MULTIPROCESSORS} multiprocessors. *Work* is how many results do not depend on one another: the columns of all states (B · H · V) of a
recurrence, its channels, the rows of a norm, the elements of a convolution. The widest kernel of a call has at least as many threads as
that, or as {ENOUGH} ({MULTIPROCESSORS} · 2048 / 8), and every kernel has a warp.

| function | options | tokens, gates | work | kernels: blocks × threads |
|---|---|---|---|---|""")
    for dtypes in DTYPES:
        for function, options, call, work in calls(*dtypes):
            print(describe(function, options, dtypes, work, recorder.record(call)))


if __name__ == "__main__":
    main()
