"""Public calls on a GPU, or in its emulator, against the oracle in float64.

    PYTHONPATH=build/python:tools/gpu python3 -m acceptance.smoke [--emulated] [--only REGEX] [--seconds N]

Prints a line for each call: the largest error of its results over the largest of them, and its bound. On a GPU, whose arrays
are PyTorch's, a second call must give the same bits. In the emulator races and accesses out of bounds are errors. The exit status
is 1 where a call fails or differs. Sizes are odd on purpose: 70 tokens end within a chunk, 2 heads leave most of a GPU
idle, and a wide row ends within a warp.
"""

import argparse
import re
import sys
import time

import numpy as np

__all__ = ["CASES", "Device", "Emulator", "run", "run_all"]

# Half a unit in the last place of an output is 2.4e-4, 2e-3, 3e-8 of it; families round what their preambles make.
BOUNDS = {"float16": 2.5e-3, "bfloat16": 1e-2, "float32": 2e-5}


def dtype_of(name):
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(name).type


class Draw:
    """Seeded operands. Tokens are rounded to `dtype`, gates to `gate`, as names of NumPy's."""

    def __init__(self, dtype="float16", gate="float32", B=1, T=70, heads=(2, 2, 2), K=32, V=32):
        self.rng, self.dtype, self.gate = np.random.default_rng(7), dtype_of(dtype), dtype_of(gate)
        self.B, self.T, self.K, self.V = B, T, K, V
        self.Hq, self.Hk, self.Hv = heads
        self.H = max(heads[1:])

    def tokens(self, *shape):
        return self.rng.standard_normal(shape).astype(self.dtype)

    def unit_tokens(self, *shape):
        x = self.rng.standard_normal(shape)
        return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(self.dtype)

    def qkv(self, n=1):
        """Keys of length 1, as delta rules take them; n of them for a query."""
        q = self.tokens(self.B, self.T, self.Hq, self.K)
        k = self.unit_tokens(self.B, self.T * n, self.Hk, self.K)
        return {"q": q, "k": k, "v": self.tokens(self.B, self.T * n, self.Hv, self.V)}

    def normal(self, *shape):
        return self.rng.standard_normal(shape).astype(self.gate)

    def decay(self, *tail):
        return (-self.rng.random((self.B, self.T, self.H, *tail))).astype(self.gate)

    def unit(self, *tail, n=1):
        return self.rng.random((self.B, self.T * n, self.H, *tail)).astype(self.gate)

    def mask(self):
        return self.rng.random((self.B, self.T)) < 0.7


# ----------------------------------------------------------------------------
# Where a call runs
# ----------------------------------------------------------------------------


class Side:
    """A way to make a call: put its operands somewhere, and fetch its results as float64."""

    options = {}

    def put(self, x):
        return x

    def give(self, x):
        """An operand, or a feature map of a name and its parameters."""
        if isinstance(x, tuple):
            import linattn

            return getattr(linattn.feature_maps, x[0])(*map(self.put, x[1:]))
        return self.put(x) if isinstance(x, np.ndarray) else x

    def call(self, name, **operands):
        function = self.module()
        for part in name.split("."):
            function = getattr(function, part)
        return self.fetch(function(**{key: self.give(x) for key, x in operands.items()}, **self.options))

    def fetch(self, result):
        if result is None:
            return []
        if isinstance(result, (tuple, list)):
            return [x for part in result for x in self.fetch(part)]
        if hasattr(result, "S"):
            return self.fetch([result.S, result.z, result.m])
        return [self.numpy(result)]

    def numpy(self, x):
        return np.asarray(x).astype(np.float64)

    def module(self):
        import linattn

        return linattn


class Oracle(Side):
    """linattn.reference, in float64."""

    def module(self):
        import linattn

        return linattn.reference

    def put(self, x):
        return x.astype(np.float64) if x.dtype.kind not in "iub" else x

    def steps(self, d, normalize, **options):
        """The last output and the state after decoding all tokens at once."""
        operands = d.qkv() | options
        if normalize:
            operands |= {"normalize": True, "feature_map": "elu"}
        o, *state = self.call("scan", **operands, return_state=True)
        return [o[:, -1:], *state]


class Stepping(Side):
    """Decoding, token by token, in states and in rows of a pool."""

    def steps(self, d, normalize, pool=False, **options):
        import linattn

        tokens = d.qkv() | options | ({"feature_map": "elu"} if normalize else {})
        like = self.put(tokens["q"])
        shape = (d.H, d.K, d.V)
        maps = {"normalize": True, "feature_map": "elu"} if normalize else {}
        if pool:
            pool = linattn.StatePool(d.B + 2, *shape, **maps, **self.where(like))
            pool.allocate(d.B + 2)
            rows = list(range(d.B + 1, 1, -1))
        else:
            state = linattn.State.zeros(d.B, *shape, normalize, self.where(like).get("like"), **({"feature_map": "elu"} if normalize else {}))
        for t in range(d.T):
            token = {key: self.give(x[:, t : t + 1]) if isinstance(x, np.ndarray) else x for key, x in tokens.items()}
            o = pool.step(**token, rows=rows, **self.options) if pool else state.step(**token, **self.options)
        return self.fetch([o, pool.read(rows) if pool else state])


class Emulator(Stepping):
    options = {"target": "nvvm-emulated"}

    def where(self, like):
        return {}


class Device(Stepping):
    """PyTorch's current GPU."""

    def __init__(self):
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError(f"expected PyTorch {torch.__version__} to see a GPU, but it sees none")
        self.torch = torch

    def put(self, x):
        narrow = x.dtype.name == "bfloat16"
        on = self.torch.from_numpy(np.ascontiguousarray(x.astype(np.float32) if narrow else x)).cuda()
        return on.bfloat16() if narrow else on

    def numpy(self, x):
        return x.double().cpu().numpy()

    def where(self, like):
        return {"like": like}


# ----------------------------------------------------------------------------
# The calls
# ----------------------------------------------------------------------------

CASES = {}


def case(name, **sizes):
    """Registers `make`: the function's name and its operands, of a Draw of these sizes."""

    def register(make):
        dtype = sizes.get("dtype", "float16")
        CASES[name] = (lambda side: _call(side, make(Draw(**sizes))), BOUNDS[dtype])

    return register


def _call(side, made):
    function, operands = made
    return side.call(function, **operands)


def add(name, function, make=lambda d: {}, state=None, **sizes):
    """The same of a function of queries, keys and values; `state` is the option that returns the final state."""
    more = {state: True} if state else {}
    case(name, **sizes)(lambda d: (function, d.qkv() | make(d) | more))


def scan(name, make=lambda d: {}, **sizes):
    add(name, "scan", make, state="return_state", **sizes)


def family(name, make=lambda d: {}, case_name=None, **sizes):
    add(case_name or name, name, make, state="output_final_state", **sizes)


GROUPED = {"heads": (4, 2, 4)}
PACKED = [0, 7, 7, 40, 70]

# Scans: rules, decays, gates of 16 bits, and what goes with them.
scan("scan")
scan("scan, bf16, D = 64", dtype="bfloat16", K=64, V=64, T=130)
scan("scan, f32", dtype="float32")
scan("decay per head", lambda d: {"decay": -abs(d.normal(d.H))}, **GROUPED)
scan("decay, 16-bit gates", lambda d: {"decay": d.decay()}, gate="float16", B=2)
scan("decay per channel, f32", lambda d: {"decay": d.decay(d.K)}, dtype="float32", V=24)
scan("decay per channel, 16-bit gates", lambda d: {"decay": d.decay(d.K)}, gate="float16", **GROUPED)
scan("decay per value column", lambda d: {"value_decay": d.decay(d.V)})
scan("decay, reverse", lambda d: {"decay": d.decay(), "reverse": True})
scan("decay, mask", lambda d: {"decay": d.decay(), "mask": d.mask()}, B=2)
scan("decay, packed", lambda d: {"decay": d.decay(), "cu_seqlens": PACKED})
scan("exclusive, bonus", lambda d: {"readout": "exclusive", "bonus": d.normal(d.H, d.K), "decay": d.decay(d.K)})
scan("relu, normalized", lambda d: {"feature_map": "relu", "normalize": True, "eps": 0.1})
scan("normalized, packed", lambda d: {"feature_map": "elu", "normalize": True, "cu_seqlens": PACKED})
scan("delta, grouped", lambda d: {"update": "delta", "beta": d.unit()}, **GROUPED)
scan("delta, mask, reverse", lambda d: {"update": "delta", "beta": d.unit(), "mask": d.mask(), "reverse": True})
scan("delta, packed", lambda d: {"update": "delta", "beta": d.unit(), "decay": d.decay(), "cu_seqlens": PACKED})
scan("delta, decay per channel, 16-bit gates", lambda d: {"update": "delta", "beta": d.unit(), "decay": d.decay(d.K)}, gate="float16")
scan("delta, f32", lambda d: {"update": "delta", "beta": d.unit(), "decay": d.decay()}, dtype="float32")
scan("delta, beta per value column", lambda d: {"update": "delta", "beta": d.unit(d.V)})
# Few heads and many tokens: segments.
scan("segments", T=2100, heads=(1, 1, 1), K=16, V=16)
scan("segments, decay", lambda d: {"decay": 0.01 * d.decay()}, T=2100, heads=(1, 1, 1), K=16, V=16)
scan("segments, decay per channel", lambda d: {"decay": 0.01 * d.decay(d.K)}, T=2100, heads=(1, 1, 1), K=16, V=16)
scan("segments, packed", lambda d: {"decay": 0.01 * d.decay(), "cu_seqlens": [0, 100, 2100]}, T=2100, heads=(1, 1, 1), K=16, V=16)
scan("segments, delta", lambda d: {"update": "delta", "beta": d.unit()}, T=2100, heads=(1, 1, 1), K=16, V=16)
add("segments, normalized", "attention", lambda d: {"causal": True}, T=4100, heads=(1, 1, 1), K=16, V=16)

# Attention and its feature maps.
add("attention, causal", "attention", lambda d: {"causal": True})
add("attention", "attention", lambda d: {}, dtype="bfloat16", **GROUPED)
add("softmax, causal", "attention", lambda d: {"weights": "softmax", "causal": True}, **GROUPED)
add("softmax, mask, f32", "attention", lambda d: {"weights": "softmax", "mask": d.mask()}, dtype="float32")
add("exp", "attention", lambda d: {"causal": True, "feature_map": "exp"}, T=9)
add("x² + 1", "attention", lambda d: {"causal": True, "feature_map": lambda x: x * x + 1})
for _name in ("softmax", "l2norm", "dpfp", "taylor"):
    add(_name, "attention", lambda d, name=_name: {"causal": True, "normalize": False, "feature_map": (name,)}, T=20, K=16)
add("favor", "attention", lambda d: {"causal": True, "feature_map": ("favor", d.normal(24, d.K))}, T=20, dtype="float32")
add("hedgehog", "attention", lambda d: {"causal": True, "normalize": False, "feature_map": ("hedgehog", d.normal(d.K, d.K))}, T=20, K=16)

# Norms, convolutions, Mamba-1.
case("rms norm", T=9, B=2)(lambda d: ("output_norm", {"x": d.tokens(d.B, d.T, d.H, 40), "weight": d.normal(40)}))
case("rms norm, gated", T=9, B=2)(
    lambda d: ("output_norm", {"x": d.tokens(d.B, d.T, d.H, 40), "weight": d.normal(40), "gate": d.tokens(d.B, d.T, d.H, 40)})
)
case("layer norm", T=9, dtype="float32")(lambda d: ("output_norm", {"x": d.tokens(d.B, d.T, d.H, 72), "kind": "layer", "bias": d.normal(72)}))
case("convolution", B=2)(
    lambda d: ("causal_conv1d", {"x": d.tokens(d.B, d.T, 19), "weight": d.normal(19, 4), "activation": "silu", "return_state": True})
)
case("convolution, packed")(
    lambda d: ("causal_conv1d", {"x": d.tokens(d.B, d.T, 19), "weight": d.normal(19, 4), "bias": d.normal(19), "cu_seqlens": PACKED})
)


@case("selective_scan", B=2, T=21)
def _(d):
    u = {name: d.tokens(d.B, 37, d.T) for name in ("u", "delta", "z")}
    P = {name: d.tokens(d.B, 16, d.T) for name in "BC"}
    return "selective_scan", u | P | {"A": -abs(d.normal(37, 16)), "delta_softplus": True, "return_last_state": True}


# Named families.
family("linear_attention", lambda d: {"feature_map": "softmax_kernel"})
family("retnet", dtype="bfloat16", **GROUPED)
family("lightning", lambda d: {"layer_idx": 1, "num_layers": 12})
family("simple_gla", lambda d: {"g": d.decay()}, **GROUPED)
family("gla", lambda d: {"g": d.decay(d.K)})
family("gla", lambda d: {"g": d.decay(d.K), "gv": d.decay(d.V)}, "gla, gv")
scan("delta, erase and write gates", lambda d: {"update": "delta", "beta": d.unit(), "erase": d.unit(d.K), "write": d.unit(d.V)}, **GROUPED)
scan(
    "given vectors, decay per channel, f32",
    lambda d: {"update": "dplr", "transition": "before", "decay": d.decay(d.K)} | low_rank(d),
    dtype="float32",
)
family("rfa", lambda d: {"g": d.decay(), "feature_map": "elu"})
family("delta_rule", lambda d: {"beta": d.unit()})
family("gated_delta_rule", lambda d: {"g": d.decay(), "beta": d.unit()}, gate="float16", **GROUPED)
family(
    "gated_delta_rule",
    lambda d: {"g": d.normal(d.B, d.T, d.H), "beta": d.normal(d.B, d.T, d.H), "A_log": d.normal(d.H), "dt_bias": d.normal(d.H)}
    | {"use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True, "use_qk_l2norm_in_kernel": True},
    "gated_delta_rule, gates within",
)
family("kda", lambda d: {"g": d.decay(d.K), "beta": d.unit()}, gate="float16")
family(
    "kda",
    lambda d: {"g": d.normal(d.B, d.T, d.H, d.K), "beta": d.unit(), "A_log": d.normal(d.H), "dt_bias": d.normal(d.H, d.K)}
    | {"use_gate_in_kernel": True, "use_qk_l2norm_in_kernel": True},
    "kda, gates within",
)
family("gdn2", lambda d: {"g": d.decay(d.K), "b": d.unit(d.K), "w": d.unit(d.V)})
family("comba", lambda d: {"g": d.decay(), "beta": d.unit(), "p": d.unit_tokens(d.B, d.T, d.Hk, d.K)})
family("ttt_linear", lambda d: {"eta": d.unit(1)})
family("mlstm", lambda d: {"i": d.normal(d.B, d.T, d.H), "f": d.normal(d.B, d.T, d.H)}, T=9)
family("gated_oja", lambda d: {"gv": d.decay(d.V), "beta": 0.2 * d.unit()}, T=9)
family("gsa", lambda d: {"s": d.tokens(d.B, d.T, d.H, 8), "g": d.decay(8)}, T=9)
family("lightnet", T=9)
case("gated_deltaproduct")(
    lambda d: ("gated_deltaproduct", d.qkv(2) | {"g": d.decay(), "beta": d.unit(n=2), "num_householder": 2, "output_final_state": True})
)


def low_rank(d):
    kappa = d.unit_tokens(d.B, d.T, d.H, d.K).astype(d.gate)
    return {"a": -kappa, "b": kappa * d.unit(d.K)}


def renamed(operands):
    """Queries are RWKV's r."""
    return {"r" if key == "q" else key: x for key, x in operands.items()}


family("iplr", low_rank)
family("dplr", lambda d: low_rank(d) | {"gk": d.decay(d.K)})
for _name, _make in {
    "rwkv5": lambda d: {"w": -abs(d.normal(d.H, d.K)), "u": d.normal(d.H, d.K)},
    "rwkv6": lambda d: {"w": d.decay(d.K), "u": d.normal(d.H, d.K)},
    "rwkv7": lambda d: low_rank(d) | {"w": d.decay(d.K)},
}.items():
    case(_name)(lambda d, name=_name, make=_make: (name, renamed(d.qkv()) | make(d) | {"output_final_state": True}))
case("rwkv4", T=9)(lambda d: ("rwkv4", {key: d.tokens(d.B, d.T, 40) for key in "kv"} | {"w": -abs(d.normal(40)), "u": d.normal(40)}))
case("hgrn", T=9)(lambda d: ("hgrn", {"x": d.tokens(d.B, d.T, 40), "g": -abs(d.normal(d.B, d.T, 40))}))
case("mamba2", **GROUPED)(
    lambda d: ("mamba2", {"x": d.tokens(d.B, d.T, d.H, d.V), "dt": d.normal(d.B, d.T, d.H), "A": -abs(d.normal(d.H)), "dt_softplus": True,
                          "B": d.tokens(d.B, d.T, 1, d.K), "C": d.tokens(d.B, d.T, 1, d.K), "D": d.normal(d.H), "dt_bias": d.normal(d.H)})
)  # fmt: skip


# Decoding.
def steps(name, normalize=False, pool=False, make=lambda d: {}, **sizes):
    def call(side):
        d = Draw(T=2, B=3, **sizes)
        return side.steps(d, normalize, **make(d), **({"pool": True} if pool and not isinstance(side, Oracle) else {}))

    CASES[name] = call, BOUNDS[sizes.get("dtype", "float16")]


steps("step")
steps("step, normalized", normalize=True, dtype="float32")
steps("pool", pool=True, make=lambda d: {"decay": d.decay()}, **GROUPED)
steps("pool, delta", pool=True, make=lambda d: {"decay": d.decay(d.K), "beta": d.unit(), "update": "delta"}, dtype="bfloat16")


# ----------------------------------------------------------------------------
# Comparing
# ----------------------------------------------------------------------------


def error_of(got, expected):
    """The largest difference over the largest number; infinite where shapes or what is finite differ."""
    if got.shape != expected.shape or (np.isfinite(got) != np.isfinite(expected)).any():
        return np.inf
    finite = np.isfinite(expected)
    return abs(got - expected)[finite].max(initial=0) / max(abs(expected[finite]).max(initial=0), 1e-30)


def run(name, side):
    """{case, ok, error, bound, seconds, problem} of one call."""
    call, bound = CASES[name]
    begin = time.monotonic()
    record = {"case": name, "bound": bound, "error": None, "problem": None}
    try:
        got, expected = call(side), call(Oracle())
        record["error"] = max(map(error_of, got, expected)) if len(got) == len(expected) else np.inf
        if isinstance(side, Device) and not all(map(np.array_equal, got, call(side))):
            record["problem"] = "a second call gave other bits"
    except Exception as error:  # noqa: BLE001: one call that fails hides no other
        record["problem"] = f"{type(error).__name__}: {error}".strip().split("\n")[0]
    record["ok"] = record["problem"] is None and record["error"] <= bound
    return record | {"seconds": round(time.monotonic() - begin, 2)}


def run_all(side, only="", seconds=None, say=print):
    """Records of all calls whose names match, as far as the time allows; the rest has `ok` None."""
    begin, records = time.monotonic(), []
    for name in CASES:
        if not re.search(only, name):
            continue
        if seconds is not None and time.monotonic() - begin > seconds:
            records.append({"case": name, "ok": None, "problem": "out of time"})
            continue
        records.append(record := run(name, side))
        shown = "" if record["error"] is None else f"{record['error']:.1e} of {record['bound']:.1e}"
        say(f"{'ok    ' if record['ok'] else 'FAILED'} {record['seconds']:6.2f} s  {name}: {record['problem'] or shown}")
    return records


def main():
    parser = argparse.ArgumentParser(prog="acceptance.smoke", description=__doc__.split("\n\n")[0])
    parser.add_argument("--emulated", action="store_true", help="in the emulator, without a GPU")
    parser.add_argument("--only", default="", help="calls whose names this regular expression is found in")
    parser.add_argument("--seconds", type=float, help="start no call after so many seconds")
    options = parser.parse_args()
    begin = time.monotonic()
    records = run_all(Emulator() if options.emulated else Device(), options.only, options.seconds, lambda line: print(line, flush=True))
    good = [record["ok"] for record in records]
    print(f"{good.count(True)} of {len(good)} calls agree with float64, {good.count(None)} out of time, {time.monotonic() - begin:.0f} s")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
