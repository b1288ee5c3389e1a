"""Tokens on several devices of a mesh: `linattn.jax.SequenceParallel` beside one device."""

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import XLA_FLAGS

pytest.importorskip("jax")

PRELUDE = f"""
import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import jax, jax.numpy as jnp, numpy as np
import linattn, linattn.jax
from jax.sharding import AxisType, PartitionSpec as P

B, T, H, K, V = 2, 24, 4, 8, 6
rng = np.random.default_rng(0)
draw = lambda *shape: jnp.asarray(rng.standard_normal(shape), jnp.float32)
q, k, v, S = draw(B, T, H, K), draw(B, T, H, K), draw(B, T, H, V), draw(B, H, K, V)
k = k / jnp.linalg.norm(k, axis=-1, keepdims=True)
g, beta, heads = -abs(draw(B, T, H)), abs(jnp.tanh(draw(B, T, H))), -abs(draw(H))
tokens = P(None, "seq")

def mesh_of(devices):
    return jax.make_mesh((devices,), ("seq",), axis_types=(AxisType.Auto,), devices=jax.devices()[:devices])

def divide(function, devices, specs, results, panels=None, **options):
    parallel = linattn.jax.SequenceParallel("seq", panels=panels)
    return jax.shard_map(lambda *x: function(parallel, *x), mesh=mesh_of(devices), in_specs=specs, out_specs=results, **options)

def plain(function, *arrays, **options):
    return function(*arrays, **options)

def largest(found, expected):
    pairs = list(zip(*(map(np.asarray, jax.tree.leaves(x)) for x in (found, expected)), strict=True))
    assert all(x.shape == y.shape and x.dtype == y.dtype for x, y in pairs)
    return max(float(abs(x - y).max() / max(1e-30, abs(y).max())) for x, y in pairs)

def gradients(function, arrays):
    loss = lambda *x: sum((y**2).sum() for y in jax.tree.leaves(function(*x)))
    return jax.jit(jax.grad(loss, argnums=tuple(range(len(arrays)))))(*arrays)
"""


def run(code, devices=4, **environment):
    flags = {"XLA_FLAGS": f"{XLA_FLAGS} --xla_force_host_platform_device_count={devices}", "LINATTN_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, "-c", PRELUDE + code], capture_output=True, text=True, env={**os.environ, **flags, **environment}
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_bits_and_gradients_are_those_of_one_device():
    """Token by token the sums are continued, so that outputs and states have the same bits."""
    run("""
def step(call, q, k, v, g, beta, S):
    o, final = call(linattn.scan, q, k, v, decay=g, beta=beta, update="delta", initial_state=S, return_state=True, form="token")
    return o, final.S

arrays = (q, k, v, g, beta, S)
divided = divide(step, 4, (tokens,) * 5 + (P(),), (tokens, P()), panels=2)
whole = lambda *x: step(plain, *x)
assert largest(jax.jit(divided)(*arrays), whole(*arrays)) == 0
assert largest(gradients(divided, arrays), gradients(whole, arrays)) < 1e-6
""")


def test_families_convolutions_and_sequences():
    """Borders of parts are borders of chunks: equal to rounding. Operands without tokens are
    the same on both devices, and get the gradient of all tokens."""
    run("""
cases = [
    (lambda call, q, k, v, d: call(linattn.scan, q, k, v, decay=d, reverse=True), (q, k, v, heads), (tokens,) * 3 + (P(),)),
    (lambda call, q, k, v, g: call(linattn.gla, q, k, v, g, form="chunk"), (q, k, v, -abs(q)), (tokens,) * 4),
    (lambda call, q, k, v: call(linattn.retnet, q, k, v), (q, k, v), (tokens,) * 3),
    (lambda call, q, k, v: call(linattn.scan, abs(q), abs(k), v, normalize=True), (q[:, :, :, :], k[:, :, :2], v[:, :, :2]), (tokens,) * 3),
]
for step, arrays, specs in cases:
    divided, whole = divide(step, 2, specs, tokens), lambda *x: step(plain, *x)
    assert largest(jax.jit(divided)(*arrays), whole(*arrays)) < 1e-5
    assert largest(gradients(divided, arrays), gradients(whole, arrays)) < 1e-5
# Without the check of what differs between devices, too.
step, arrays, specs = cases[0]
assert largest(jax.jit(divide(step, 2, specs, tokens, check_vma=False))(*arrays), step(plain, *arrays)) < 1e-5

# The short convolution.
x, weight, bias = draw(B, T, 5), draw(5, 4), draw(5)
for options in ({"activation": "silu"}, {"reverse": True}, {"dilation": 3}):
    step = lambda parallel, *x: parallel.causal_conv1d(*x, **options)
    divided, whole = divide(step, 2, (tokens, P(), P()), tokens), lambda *x: linattn.causal_conv1d(*x, **options)
    assert largest(jax.jit(divided)(x, weight, bias), whole(x, weight, bias)) < 1e-6
    assert largest(gradients(divided, (x, weight, bias)), gradients(whole, (x, weight, bias))) < 1e-5

# A call in a function of shard_map, its operands the same on all devices or not.
step = lambda q, d: linattn.scan(q, q, q, decay=d)
divided = jax.shard_map(step, mesh=mesh_of(2), in_specs=(P("seq"), P()), out_specs=P("seq"))
assert largest(jax.jit(divided)(q, heads), step(q, heads)) == 0
assert largest(gradients(divided, (q, heads)), gradients(step, (q, heads))) < 1e-5
""", devices=2)  # fmt: skip


def test_errors():
    out = run("""
def refused(step, *arrays, panels=None):
    try:
        divide(step, 2, (tokens,) * len(arrays), tokens, panels)(*arrays)
    except (TypeError, ValueError, linattn.UnsupportedError) as error:
        print(type(error).__name__, error)

refused(lambda call, q: call(linattn.scan, q, q, q, cu_seqlens=np.array([0, 12])), q)
refused(lambda call, q: call(linattn.scan, q, q, q, initial_state=q[:, 0]), q)
refused(lambda call, q: call(linattn.scan, q, q, q), q, panels=3)
refused(lambda call, q: call(linattn.scan, q, q[:, 1:], q), q)
refused(lambda call, q: call(linattn.scan, q, q, q, out=q), q)
refused(lambda call, q: call(jnp.sin, q), q)
refused(lambda call, x: call.causal_conv1d(x, draw(6, 20)), draw(B, T, 6))
for arguments, options in (((1,), {}), (("seq",), {"panels": 1.5})):
    try:
        linattn.jax.SequenceParallel(*arguments, **options)
    except TypeError as error:
        print(error)
""", devices=2)  # fmt: skip
    for line, expected in zip(out.splitlines(), (
        "UnsupportedError cu_seqlens: expected None on several devices, but got packed sequences",
        "ValueError initial_state: expected shapes [(2, 4, 8, 8)], but got [(2, 4, 8)]",
        "ValueError panels: expected one of 1, 2, 4 for scan, but got 3",
        "ValueError k: expected the sequence length of q, 12, but got 11",
        "UnsupportedError out: expected it only on one process, but got it on several",
        "TypeError function: expected linattn.scan or a named family of linattn, but got sin",
        "ValueError x: expected at least 19 tokens on every device, but got 12",
        "axis_name: expected the name of an axis, but got int",
        "panels: expected an integer, but got float",
    ), strict=True):  # fmt: skip
        assert line == expected
