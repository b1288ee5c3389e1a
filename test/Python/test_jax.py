"""Calls that JAX traces: compiled, batched, sharded, exported."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import test_families
from conftest import XLA_FLAGS

import linattn
from linattn import fla

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import linattn.jax  # noqa: E402
from linattn._graph import _calls  # noqa: E402
from linattn._jax import _programs  # noqa: E402

B, T, H, D = 2, 6, 2, 8


def draw(*shape, dtype=jnp.float32, seed=0):
    return jnp.asarray(np.random.default_rng(seed + sum(shape)).standard_normal(shape), dtype)


def operands(dtype=jnp.float32, B=B, T=T):
    q, k, v = draw(B, T, H, D, dtype=dtype), draw(B, T, H, D, dtype=dtype, seed=1), draw(B, T, H, 5, dtype=dtype)
    return q, k, v, -abs(draw(B, T, H)), draw(B, H, D, 5)


def gated(q, k, v, g, S):
    return linattn.simple_gla(q, k, v, g, initial_state=S, output_final_state=True)


def same(found, expected):
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    return len(found) == len(expected) and all(
        x.shape == y.shape and x.dtype == y.dtype and bool((np.asarray(x) == np.asarray(y)).all())
        for x, y in zip(found, expected)
    )


def count_calls(function, *arrays):
    return str(jax.make_jaxpr(function)(*arrays)).count("= linattn_run[")


def run_python(code, **environment):
    code = f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n{code}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment})
    assert found.returncode == 0, found.stderr
    return found.stdout


# ----------------------------------------------------------------------------
# jit
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16, jnp.bfloat16])
def test_compiled_calls_have_the_bits_of_plain_ones(dtype):
    arrays = operands(dtype)
    found = jax.jit(gated)(*arrays)
    assert [x.dtype for x in found] == [dtype, jnp.float32] and same(found, gated(*arrays))


def test_float64():
    with jax.enable_x64(True):
        arrays = [x.astype(jnp.float64) for x in operands()]
        found = jax.jit(gated)(*arrays)
        assert [x.dtype for x in found] == [jnp.float64] * 2 and same(found, gated(*arrays))


FAMILIES = ["gla", "mamba2", "rwkv7", "mlstm", "gated_delta_rule", "gated_deltaproduct", "gsa", "hgrn", "kda", "retnet"]


@pytest.mark.parametrize("name", FAMILIES)
def test_each_family(name):
    function, make = test_families.CASES[name]
    operands = make(test_families.Draw(np.float32))
    arrays = {key: jnp.asarray(x) for key, x in operands.items() if isinstance(x, np.ndarray)}
    rest = {key: x for key, x in operands.items() if key not in arrays}
    call = lambda arrays: getattr(linattn, function)(**arrays, **rest)  # noqa: E731
    expected = call(arrays)
    shapes = jax.eval_shape(call, arrays)
    assert (shapes.shape, shapes.dtype) == (expected.shape, expected.dtype)
    assert same(jax.jit(call)(arrays), expected)


def test_other_functions():
    q, k, v, g, S = operands()
    for function in (
        lambda q, k, v: linattn.attention(q, k, v, causal=True),
        lambda q, k, v: linattn.scan(q[:1], k[:1], v[:1], cu_seqlens=[0, 2, T]),
        lambda q, k, v: linattn.scan(q[:1], k[:1], v[:1], cu_seqlens=np.array([0, 2, T])),
        lambda q, k, v: linattn.scan(q, k, v, decay=np.asarray(g)),  # an operand of NumPy
        lambda q, k, v: fla.chunk_simple_gla(q, k, v, g, initial_state=S, output_final_state=True),
        lambda q, k, v: linattn.causal_conv1d(q[:, :, 0], k[0, :4, 0].T, activation="silu"),
        lambda q, k, v: linattn.scan(q[0, :, 0], k[0, :, 0], v[0, :, 0]),  # one head of one sequence
    ):
        assert same(jax.jit(function)(q, k, v), function(q, k, v))


def test_no_tokens_and_no_sequences():
    for B, T in ((2, 0), (0, 6)):
        q, k, v, g, S = operands(B=B, T=T)
        o, final = jax.jit(gated)(q, k, v, g, S)
        assert o.shape == (B, T, H, 5) and same(final, S)


def test_offsets_are_checked_where_they_are_known():
    q, k, v, _, _ = operands(B=1)
    packed = jax.jit(lambda q, offsets: linattn.scan(q, k, v, cu_seqlens=offsets))
    assert same(packed(q, jnp.array([0, 2, T])), linattn.scan(q, k, v, cu_seqlens=[0, 2, T]))
    for offsets, complaint in (([0, 4, 2], "not to decrease"), ([0, 4, 9], "to end at the sequence length 6, but got 9")):
        with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match=complaint):
            jax.block_until_ready(packed(q, jnp.array(offsets)))


def test_a_donated_state_is_updated_where_it_is():
    q, k, v, g, S = operands()
    expected = gated(q, k, v, g, S)
    step = jax.jit(gated, donate_argnums=4)
    state = S + 0
    address = state.unsafe_buffer_pointer()
    found = step(q, k, v, g, state)
    assert state.is_deleted() and found[1].unsafe_buffer_pointer() == address and same(found, expected)
    kept = S + 0
    assert same(jax.jit(gated)(q, k, v, g, kept), expected) and same(kept, S)


def test_states():
    q, k, v, g, S = operands()

    def steps(state, q, k, v, g):
        outputs = [state.step(*(x[:, t] for x in (q, k, v)), decay=g[:, t]) for t in (slice(0, 1), slice(1, T))]
        return jnp.concatenate(outputs, 1), state

    before = linattn.State(S)
    o, state = jax.jit(steps)(before, q, k, v, g)
    expected, final = steps(linattn.State(S), q, k, v, g)
    assert isinstance(state, linattn.State) and same((o, state.S), (expected, final.S)) and before.S is S
    assert same(jax.jit(lambda state, q: state.query(q))(state, q), state.query(q))

    def body(state, x):
        q, k, v, g = (x[:, None] for x in x)
        return state, state.step(q, k, v, decay=g)[:, 0]

    tokens = tuple(jnp.moveaxis(x, 1, 0) for x in (q, k, v, g))
    state, o = jax.jit(lambda S, x: jax.lax.scan(body, linattn.State(S), x))(S, tokens)
    one_by_one = [linattn.State(S), []]
    for t in range(T):
        one_by_one[1].append(one_by_one[0].step(*(x[:, t : t + 1] for x in (q, k, v)), decay=g[:, t : t + 1]))
    assert same((jnp.moveaxis(o, 0, 1), state.S), (jnp.concatenate(one_by_one[1], 1), one_by_one[0].S))


# ----------------------------------------------------------------------------
# vmap
# ----------------------------------------------------------------------------


def stack(x, axis=0):
    return jnp.stack([x, x / 2, -x], axis)


def test_a_batch_is_one_call():
    q, k, v, g, S = operands()
    arrays = stack(q), stack(k, 1), v, jnp.stack([g, g / 2, 2 * g]), stack(S)
    many = jax.vmap(gated, (0, 1, None, 0, 0))
    assert count_calls(many, *arrays) == 1
    expected = [gated(arrays[0][i], arrays[1][:, i], v, arrays[3][i], arrays[4][i]) for i in range(3)]
    expected = [jnp.stack(x) for x in zip(*expected)]
    assert same(jax.jit(many)(*arrays), expected) and same(many(*arrays), expected)
    twice = jax.vmap(jax.vmap(gated, (0, 0, 0, 0, None)), (0, 0, None, None, None))
    nested = stack(stack(q)), stack(stack(k)), stack(v), stack(-abs(g)) ** 2 * -1, S
    assert same(jax.jit(twice)(*nested)[0][2, 1], gated(nested[0][2, 1], nested[1][2, 1], nested[2][1], nested[3][1], S)[0])


def test_a_batch_of_operands_without_sequences():
    q, k, v, g, _ = operands()
    heads = -abs(stack(draw(H)))
    decays = lambda q, heads: linattn.scan(q, k, v, decay=heads)  # noqa: E731
    found = jax.jit(jax.vmap(decays))(stack(q), heads)
    assert same(found, jnp.stack([decays(x, y) for x, y in zip(stack(q), heads)]))
    packed = lambda q: linattn.scan(q, k[:1], v[:1], cu_seqlens=[0, 2, T])  # noqa: E731
    assert same(jax.vmap(packed)(stack(q[:1])), jnp.stack([packed(x) for x in stack(q[:1])]))


# ----------------------------------------------------------------------------
# Devices and processes
# ----------------------------------------------------------------------------

SHARDED = """
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from test_jax import gated, jnp, linattn, operands, same
plain = operands(B=4)
mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("x"))
sharded = [jax.device_put(x, rows) for x in plain]
loss = lambda *x: sum((y**2).sum() for y in gated(*x))
for function in (jax.jit(gated), jax.jit(jax.grad(loss, (0, 1, 2, 3, 4)))):
    compiled = function.lower(*sharded).compile()
    assert "all-gather" not in compiled.as_text()
    found = compiled(*sharded)
    assert same(found, function(*plain)) and all(x.sharding.spec[0] == "x" for x in found)
mapped = jax.shard_map(lambda *x: gated(*x)[0], mesh=mesh, in_specs=P("x"), out_specs=P("x"))
assert same(jax.jit(mapped)(*sharded), gated(*plain)[0])
# Its gradient is a sum over all sequences.
heads = -abs(plain[3][0, 0])
decays = jax.jit(jax.grad(lambda q, g: (linattn.scan(q, q, q, decay=g) ** 2).sum(), (0, 1)))
compiled = decays.lower(sharded[0], heads).compile()
assert "all-gather" not in compiled.as_text() and "all-reduce" in compiled.as_text()
(dq, dg), expected = compiled(sharded[0], heads), decays(plain[0], heads)
assert same(dq, expected[0]) and abs(dg - expected[1]).max() < 1e-5 * abs(expected[1]).max()
packed = jax.jit(lambda q: linattn.scan(q, q, q, cu_seqlens=np.array([0, 2, 6])))
sharded_tokens = jax.device_put(plain[0][:1], NamedSharding(mesh, P(None, "x")))
assert same(packed(sharded_tokens), packed(plain[0][:1]))
with jax.set_mesh(jax.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,))) as _:
    explicit = [jax.device_put(x, P("x")) for x in plain]
    assert same(jax.jit(gated)(*explicit), gated(*plain))
print("done")
"""


def test_each_device_has_some_sequences():
    flags = {"XLA_FLAGS": f"{XLA_FLAGS} --xla_force_host_platform_device_count=2"}
    assert run_python(SHARDED, **flags).strip() == "done"


def test_exported_programs_run_in_another_process(tmp_path):
    loss = jax.grad(lambda *x: sum((y**2).sum() for y in gated(*x)), (0, 1, 2, 3, 4))
    skipped = [jax.export.DisabledSafetyCheck.custom_call("linattn")]
    sizes = jax.export.symbolic_args_specs(operands(), ("b, t, ...",) * 4 + ("b, ...",))
    for name, function, arrays in (("one", gated, operands()), ("any", gated, sizes), ("loss", loss, sizes)):
        exported = jax.export.export(jax.jit(function), disabled_checks=skipped)(*arrays)
        (tmp_path / name).write_bytes(exported.serialize())
    code = f"""
import pathlib, jax, linattn.jax
from jax import export
one, some, loss = (
    export.deserialize(bytearray((pathlib.Path({str(tmp_path)!r}) / name).read_bytes())) for name in ("one", "any", "loss")
)
from test_jax import gated, operands, same
assert same(one.call(*operands()), gated(*operands()))
for sizes in ({{"B": 1, "T": 9}}, {{"B": 3, "T": 2}}):
    arrays = operands(**sizes)
    assert same(some.call(*arrays), gated(*arrays))
    expected = jax.grad(lambda *x: sum((y**2).sum() for y in gated(*x)), (0, 1, 2, 3, 4))(*arrays)
    assert same(loss.call(*arrays), expected)
print("done")
"""
    assert run_python(code).strip() == "done"


def test_programs_are_made_of_their_names():
    _calls._calls.clear()
    _programs._programs.clear()
    jax.jit(lambda *x: gated(*x))(*operands())
    (name,) = _programs._programs
    _calls._calls.clear()
    assert _programs.make_program(name).aliases == [(4, 1)]
    for unknown in ('["run", "[]", null, []]\n[]', '["run", "scan #9", null, []]\n[]'):
        with pytest.raises(ValueError, match="call: expected the name of a call, but got"):
            _programs.make_program(unknown)


def test_linattn_itself_needs_no_jax():
    code = "import sys; sys.modules['jax'] = None; import linattn; print(sorted(x for x in sys.modules if 'jax' in x))"
    assert run_python(code).strip() == "['jax']"


# ----------------------------------------------------------------------------
# Refusals
# ----------------------------------------------------------------------------


def test_refusals():
    q, k, v, g, S = operands()
    jit = lambda function: jax.jit(function)(q)  # noqa: E731
    with pytest.raises(linattn.UnsupportedError, match="inplace: expected False where JAX traces a call, but got True for scan"):
        jit(lambda q: linattn.scan(q, k, v, initial_state=S, inplace=True))
    with pytest.raises(linattn.UnsupportedError, match="out: expected None where JAX traces a call"):
        jit(lambda q: linattn.scan(q, k, v, out=np.zeros((B, T, H, 5), np.float32)))
    with pytest.raises(ValueError, match="k: expected the sequence length of q, 6, but got 5"):
        jit(lambda q: linattn.scan(q, k[:, :5], v))
    with pytest.raises(ValueError, match=r"initial_state: expected shape \(2, 2, 8, 5\), but got \(1, 2, 8, 5\)"):
        jit(lambda q: gated(q, k, v, g, S[:1]))
    with pytest.raises(TypeError, match="k: expected the dtype of q, float32, but got bfloat16"):
        jit(lambda q: linattn.scan(q, k.astype(jnp.bfloat16), v))
    with pytest.raises(TypeError, match="k: expected elements of type .*, but got uint32"):
        jit(lambda q: linattn.scan(q, k.astype(jnp.uint32), v))
    with pytest.raises(TypeError, match="k: expected an array of JAX or NumPy where JAX traces a call, but got list"):
        jit(lambda q: linattn.scan(q, [1.0], v))
    with pytest.raises(ValueError, match="num_threads: expected a positive integer, but got 0"):
        jit(lambda q: linattn.scan(q, k, v, num_threads=0))
    kernel = linattn.compile("func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }")
    with pytest.raises(ValueError, match=r"\(%x\): expected a dense array of numbers in memory, but got a .*Tracer of JAX"):
        jit(lambda q: kernel(q[0, 0, 0]))


def test_sizes_that_overflow():
    """XLA's structures by hand: a shape whose product wraps around to that of the operand."""
    import ctypes

    arrays = [np.asarray(x) for x in operands()]
    found = jax.jit(gated)(*arrays)
    name = [known for known in _programs._programs if "simple_gla" in known][-1].encode()
    kept = []

    def words(*values):
        kept.append((ctypes.c_uint64 * len(values))(*values))
        return ctypes.addressof(kept[-1])

    def describe(x, shape):
        return words(0, 0, 11, x.ctypes.data, len(shape), words(*shape))

    def buffers(items):
        kinds = np.ones(len(items), np.int32)
        kept.append(kinds)
        return [0, 0, len(items), kinds.ctypes.data, words(*items)]

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    def refuse(arguments):
        messages.append(ctypes.string_at(arguments[2]).decode())
        return 1

    def run(shape):
        given = [describe(arrays[0], shape), *(describe(x, x.shape) for x in arrays[1:])]
        results = [np.zeros(x.shape, np.float32) for x in found]
        text = ctypes.create_string_buffer(name)
        kinds = np.array([4], np.int32)
        attributes = [
            0, 0, 1, kinds.ctypes.data, words(words(ctypes.addressof(key), 7)),
            words(words(ctypes.addressof(text), len(name))),
        ]  # fmt: skip
        api = words(0, 0, 0, 0, 0, 0, ctypes.cast(refuse, ctypes.c_void_p).value)
        frame = words(0, 0, api, 0, 0, *buffers(given), *buffers([describe(x, x.shape) for x in results]), *attributes)
        handler(frame)
        return results

    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
        ctypes.pythonapi.PyCapsule_GetPointer(linattn._linattn.xla_handler(), None)
    )
    key, messages = ctypes.create_string_buffer(b"program"), []
    assert same(run(arrays[0].shape), found) and messages == []
    assert arrays[0].size == 192
    run(((1 << 58) + 3, 64))  # 2^64 + 192 elements
    assert messages == ["argument 0: expected 192 elements of float32, but got 9223372036854775807 of float32"]
