"""Calls of the API, compared with the oracle in float64.

A kind of calls picks what has a kernel of its own (rule, form, dtype, heads and their sizes). It returns
its description and a function that makes one such call, with a batch, lengths and data of its own, and
returns how many results were compared. A legal call that is refused is a finding, as a difference is.
"""

import numpy as np
import test_families
import test_properties
from conftest import TOLERANCE, assert_agrees, relative_error
from test_matrix import REFUSED

import linattn
from linattn import State, StatePool, reference

# A wrong result is looked for, and among so many draws some round worse than those of the tests.
TOLERANCE.update(float64=1e-11, float32=3e-5)

DTYPES = test_properties.DTYPES
HEADS = [(1, 1, 1), (2, 2, 2), (4, 2, 2), (2, 2, 4), (3, 1, 3)]
LENGTHS = [0, 1, 1, 2, 3, 5, 8, 9, 15, 16, 17, 33, 40, 70]

# Families round what their preambles make, and divide by what may be small.
FAMILY_TOLERANCE = {"float64": 1e-11, "float32": 2e-5, "float16": 5e-3, "bfloat16": 2e-2}


def pick_dtype(rng):
    return rng.choice(["float32", "float32", *DTYPES])


def seeded(rng):
    return np.random.default_rng(rng.randrange(2**32))


def pick_offsets(rng, T):
    return [0, *sorted(rng.choices(range(T + 1), k=rng.randrange(4))), T]


def pick_rule(rng):
    """A rule of test_properties.py, and the sizes and the dtype of its kernel."""
    rule = test_properties.make_rule(rng.choice)
    return rule, pick_dtype(rng), {"heads": rng.choice(HEADS), "K": rng.choice([1, 4, 16, 20]), "V": rng.choice([1, 8, 16, 33])}


def scan(rng):
    rule, dtype, sizes = pick_rule(rng)
    form, packed = rng.choice(["auto", "auto", *test_properties.FORMS, "chunk:7", "segments:33"]), rng.random() < 0.3

    def call(rng):
        T = rng.choice(LENGTHS)
        shape = {
            **sizes, "T": T, "B": 1 if packed else rng.choice([1, 1, 2, 3]),
            "cu_seqlens": pick_offsets(rng, T) if packed else None,
        }  # fmt: skip
        return test_properties.check(form, dtype, shape, rule, rng.randrange(2**32))

    return (rule, form, dtype, sizes, packed), call


def attention(rng):
    softmax, causal = rng.random() < 0.3, rng.random() < 0.5
    dtype, (Hq, Hk, Hv), K, V = pick_dtype(rng), rng.choice(HEADS), rng.choice([1, 4, 16, 20, 64]), rng.choice([1, 8, 33, 64])
    options = {"causal": causal, "scale": rng.choice([None, None, 1.0, 0.25])}
    stateful = False
    if softmax:
        options["weights"] = "softmax"
    else:
        normalize = rng.random() < 0.6
        maps = ["elu", "exp", "softmax_kernel"] if normalize else ["identity", "elu", "relu", "relu2", "exp"]
        options |= {"normalize": normalize, "feature_map": rng.choice(maps)}
        stateful = rng.random() < 0.3
        options["return_state"] = stateful
        options["form"] = rng.choice(["auto", "auto", "quadratic", "token", "state-tile", "chunk:8"]) if not stateful else "auto"
    masked, prefixed = rng.random() < 0.3, causal and not stateful and options.get("form", "auto") == "auto" and rng.random() < 0.3

    def call(rng):
        B, T, draw = rng.choice([1, 1, 2, 3]), rng.choice(LENGTHS), seeded(rng)
        keys = T if causal else rng.choice(LENGTHS)
        q, k, v = (
            draw.standard_normal((B, *shape)).astype(DTYPES[dtype]) for shape in ((T, Hq, K), (keys, Hk, K), (keys, Hv, V))
        )
        kw = dict(options)
        if masked:
            kw["mask"] = draw.random((B, keys)) < 0.7
        if prefixed:
            kw["prefix"] = draw.integers(0, T + 1, B)
        o, ref = linattn.attention(q, k, v, **kw), reference.attention(q, k, v, **kw)
        if stateful:
            (o, state), (ref, last) = o, ref
            for part, expected in zip(test_families.parts(state), test_families.parts(last), strict=True):
                finite = np.isfinite(expected)  # the maximum of no keys is −∞
                assert_agrees(part[finite], expected[finite])
        assert_agrees(o.astype(np.float64), ref, dtype)
        return 1

    return (options, dtype, (Hq, Hk, Hv), K, V, masked, prefixed), call


def family(rng):
    case, dtype = rng.choice(sorted(test_families.CASES)), pick_dtype(rng)
    name, make = test_families.CASES[case]
    function, (HQ, HK, HV) = getattr(linattn, name), rng.choice([(4, 2, 4), (2, 2, 2), (1, 1, 1)])
    sizes = {"HQ": HQ, "HK": HK, "HV": HV, "K": rng.choice([4, 16, 20]), "V": rng.choice([8, 24])}
    packed, stateful = case in test_families.PACKABLE and rng.random() < 0.3, rng.random() < 0.3
    options = {}
    if case in test_families.PLAIN and rng.random() < 0.5:
        options["form"] = rng.choice(["token", "state-tile", "chunk:16", "chunk:5", "segments:9"])
        kind = options["form"].split(":")[0]
        if (case, kind) in REFUSED or packed and kind == "segments":
            del options["form"]
    if case in test_families.REVERSIBLE and rng.random() < 0.2:
        options["reverse"] = True

    def make_operands(rng, B, T):
        operands = make(test_families.Draw(DTYPES[dtype], B=B, T=T, seed=rng.randrange(2**32), **sizes))
        # NumPy widens bf16 on the way.
        return operands | {key: operands[key].astype(DTYPES[dtype]) for key in "qkv" if key in operands}

    def call(rng):
        B, T = 1 if packed else rng.choice([1, 1, 2, 3]), rng.choice(LENGTHS[1:])
        operands, more = make_operands(rng, B, T), dict(options)
        if packed:
            more["cu_seqlens"] = pick_offsets(rng, T)
        if stateful:
            rows = len(more["cu_seqlens"]) - 1 if packed else B
            _, more[test_families.state_name(function)] = test_families.run(linattn, name, make_operands(rng, rows, 3))
        o, state = test_families.run(linattn, name, operands, **more)
        ref, last = test_families.run(reference, name, operands, **more)
        assert relative_error(o, ref, dtype) <= FAMILY_TOLERANCE[dtype]
        for part, expected in zip(test_families.parts(state), test_families.parts(last), strict=True):
            # Of 16 bits are the tokens that a preamble makes.
            assert test_families.error(part, expected) <= FAMILY_TOLERANCE[dtype]
        return 1

    return (case, dtype, sizes, options, packed, stateful), call


def make_step(rng):
    """A rule for steps; (state maker's keywords, sizes of a state, function that makes tokens and gates)."""
    rule, dtype, sizes = pick_rule(rng)
    rule |= {"reverse": False, "initial": False}
    made = {
        "normalize": rule["normalize"], "feature_map": rule["feature_map"], "running_max": bool(rule.get("gated")),
        "like": np.zeros(0, DTYPES[dtype]),
    }  # fmt: skip
    heads = max(sizes["heads"][1:]), sizes["K"], sizes["V"]

    def make(rng, B, T):
        return test_properties.make(rule, {**sizes, "B": B, "T": T, "cu_seqlens": None}, DTYPES[dtype], rng.randrange(2**32))

    return rule, dtype, made, heads, make


def check_step(dtype, o, parts, tokens, kw, before):
    """An output and the state after it, against the oracle from the state before."""
    ref, last = reference.scan(*tokens, initial_state=before, return_state=True, **kw)
    assert_agrees(o.astype(np.float64), ref, dtype)
    written = np.abs(tokens[2].astype(np.float64)).max(initial=0.0)
    for part, expected in zip(parts, test_families.parts(last), strict=True):
        finite = np.isfinite(expected)
        assert_agrees(part[finite], expected[finite], scale=written)
    return 1


def step(rng):
    rule, dtype, made, heads, make = make_step(rng)

    def call(rng):
        B = rng.choice([1, 1, 2, 3])
        state, compared = State.zeros(B, *heads, **made), 0
        for T in rng.choices([1, 1, 1, 2, 3, 8, 9, 20], k=4):
            (tokens, kw), before = make(rng, B, T), state.copy()
            o = state.step(*tokens, **kw)
            compared += check_step(dtype, o, test_families.parts(state), tokens, kw, before)
        return compared

    return (rule, dtype, heads), call


def pool(rng):
    rule, dtype, made, heads, make = make_step(rng)

    def call(rng):
        rows, compared = StatePool(5, *heads, **made), 0
        rows.allocate(5)
        for T in rng.choices([1, 1, 1, 3, 9], k=4):
            chosen = rng.sample(range(5), rng.choice([1, 2, 3, 5]))
            others = [row for row in range(5) if row not in chosen]
            (tokens, kw), before = make(rng, len(chosen), T), rows.read(chosen)
            kept = [part.copy() for part in test_families.parts(rows.read(others))] if others else []
            o = rows.step(*tokens, chosen, **kw)
            compared += check_step(dtype, o, test_families.parts(rows.read(chosen)), tokens, kw, before)
            after = test_families.parts(rows.read(others)) if others else []
            assert all(np.array_equal(x, y) for x, y in zip(after, kept, strict=True)), "a row of another sequence"
        return compared

    return (rule, dtype, heads), call


def conv(rng):
    dtype, C, W, dilation = pick_dtype(rng), rng.choice([1, 7, 16, 33]), rng.choice([1, 2, 4, 8]), rng.choice([1, 1, 3])
    options = {"activation": rng.choice([None, "silu"]), "dilation": dilation, "reverse": rng.random() < 0.2}
    packed, biased, stateful = rng.random() < 0.3, rng.random() < 0.5, not options["reverse"] and rng.random() < 0.5

    def call(rng):
        B, T, draw = 1 if packed else rng.choice([1, 2, 3]), rng.choice(LENGTHS), seeded(rng)

        def normal(*shape):
            return draw.standard_normal(shape).astype(DTYPES[dtype])

        x, weight, kw = normal(B, T, C), normal(C, W), dict(options)
        bias = normal(C) if biased else None
        if packed:
            kw["cu_seqlens"] = pick_offsets(rng, T)
        if stateful:
            rows = len(kw["cu_seqlens"]) - 1 if packed else B
            kw |= {"initial_state": normal(rows, C, (W - 1) * dilation), "return_state": True}
        y, ref = linattn.causal_conv1d(x, weight, bias, **kw), reference.causal_conv1d(x, weight, bias, **kw)
        if stateful:
            (y, state), (ref, last) = y, ref
            assert np.array_equal(state.astype(np.float64), np.asarray(last, np.float64)), "the last inputs"
        assert_agrees(y.astype(np.float64), ref, dtype)
        return 1

    return (dtype, C, W, options, packed, biased, stateful), call


def odd_scan(rng):
    """Of operands, shapes and options that are legal or nearly so; a refusal says why."""
    sizes = (1, 1, 2, 3, 7, 16)

    def call(rng):
        B, T, H, K, V = rng.choice((1, 2)), rng.choice((0, 1, 2, 9, 33)), rng.choice((1, 2)), *rng.choices(sizes, k=2)
        shapes = {
            "decay": [(H,), (B, T, H), (B, T, H, K)], "beta": [(B, T, H)], "a": [(B, T, H, K)], "b": [(B, T, H, K)],
            "bonus": [(H, K)], "initial_state": [(B, H, K, V)], "value_decay": [(B, T, H, V)],
        }  # fmt: skip
        options = {
            "update": rng.choice(("add", "add", "delta", "dplr")), "readout": rng.choice(("inclusive", "exclusive")),
            "feature_map": rng.choice((None, None, "elu", "relu", "exp", "softmax")), "reverse": rng.random() < 0.2,
            "normalize": rng.random() < 0.2, "scale": rng.choice((None, 1.0, -0.5, 0.0, rng.uniform(-4, 4))),
            "form": rng.choice(("auto", "auto", "token", "state-tile", "chunk:5", "segments:4", "quadratic")),
        }  # fmt: skip
        given = rng.sample(sorted(shapes), rng.choice((0, 1, 1, 2, 3)))
        if options["update"] != "add" and rng.random() < 0.9:
            given = {*given, *({"delta": ("beta",), "dplr": ("a", "b")}[options["update"]])}
        operands = {}
        for name in sorted(given):
            shape = list(rng.choice(shapes[name]))
            if rng.random() < 0.05:
                shape[rng.randrange(len(shape))] += rng.choice((-1, 1, 5))
            array = seeded(rng).standard_normal([max(size, 0) for size in shape]).astype(np.float32)
            operands[name] = -np.abs(array) if "decay" in name else 0.3 * array
        q, k, v = ((0.5 * seeded(rng).standard_normal((B, T, H, n))).astype(np.float32) for n in (K, K, V))
        o, state = linattn.scan(q, k, v, return_state=True, **options, **operands)
        del options["form"]
        expected, last = reference.scan(q, k, v, return_state=True, **options, **operands)
        if options["normalize"] and options["feature_map"] is None:
            return 0  # a denominator that may vanish
        assert np.isfinite(expected).all() or not np.isfinite(o).all()
        if not np.isfinite(expected).all():
            return 0
        assert relative_error(o, expected) <= 1e-4
        assert relative_error(state.S, last.S) <= 1e-4
        return 1

    return "", call


# How often each is picked.
KINDS = [scan, scan, scan, attention, attention, family, family, family, step, pool, conv, odd_scan]
