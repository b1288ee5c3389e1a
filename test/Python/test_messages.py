"""Messages of errors: the operand and what was expected of it, in the words of the API."""

import inspect
import re

import numpy as np
import pytest
import test_families
import test_fla
from conftest import INTERNAL

import linattn
from linattn import State, StatePool, costs

WRONG = [None, "x", 3, 2.5, [1, 2], {}, object(), np.ones(3), np.ones((1, 2, 1, 4), np.float32), b"x", True, -1,
         float("nan"), 10**30, 10**400]  # fmt: skip


def refuse(function, *args, **kwargs):
    """Calls it; an error must be of a kind that users expect, and speak to them."""
    try:
        function(*args, **kwargs)
    except (ValueError, TypeError, NotImplementedError) as error:
        assert not INTERNAL.search(str(error)), str(error)
    except (FileNotFoundError, MemoryError):
        pass


FUNCTIONS = sorted(
    name for name in linattn.__all__
    if inspect.isfunction(getattr(linattn, name)) and name not in ("compile", "explain", "set_num_threads")
)  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    function = getattr(linattn, name)
    q = np.ones((1, 4, 2, 8), np.float32)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        parameters = []
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    # Refusals take no compilation, but numbers that are legal do.
    rest = [p.name for p in parameters if p.default is not p.empty]
    for wrong in WRONG:
        refuse(function, *[wrong] * len(needed))
        refuse(function, *[q] * (len(needed) - 1), wrong)
    for option in rest:
        for wrong in (object(), "x", 10**400):
            refuse(function, *[q] * len(needed), **{option: wrong})


@pytest.mark.parametrize("name", costs.__all__)
def test_costs(name):
    for wrong in WRONG:
        for count in range(5):
            refuse(getattr(costs, name), *[wrong] * count)
    try:
        count = sum(p.default is p.empty for p in inspect.signature(getattr(costs, name)).parameters.values())
    except ValueError:  # of C
        count = 2
    with pytest.raises(TypeError, match=rf"^({name}: expected the arguments .*|\w+: expected a number.*), but got "):
        getattr(costs, name)(*[object()] * count)


def test_kernels():
    kernel = linattn.compile("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n return %x : tensor<4xf32> }")
    x = np.ones(4, np.float32)
    for wrong in WRONG:
        for method in ("mlir", "asm", "explain", "stages", "llvm_ir"):
            refuse(getattr(kernel, method), wrong)
        refuse(kernel, wrong)
        refuse(kernel, x, out=wrong)
        refuse(kernel, x, num_threads=wrong)
        for function in (linattn.set_num_threads, linattn.get_num_threads, linattn.Kernel, linattn.explain):
            refuse(function, wrong)
        refuse(linattn.compile, wrong)
        refuse(linattn.compile, "x{}", wrong)
    linattn.set_num_threads(None)
    for function, message in [
        (lambda: kernel.mlir(3), "stage: expected a string or None, but got int"),
        (lambda: kernel.asm(3), "asm: expected no arguments, but got int"),
        (lambda: kernel(x, threads=1), "'f': expected the keywords out and num_threads, but got threads"),
        (lambda: linattn.get_num_threads(1), "get_num_threads: expected no arguments, but got int"),
    ]:
        with pytest.raises(TypeError, match="^" + re.escape(message) + "$"):
            function()
    with pytest.raises(ValueError, match="text_or_path: expected Unicode text"):
        linattn.compile("\ud800{}")


def test_states():
    q = np.ones((1, 4, 2, 8), np.float32)
    for wrong in WRONG:
        refuse(State, wrong)
        refuse(State.zeros, 1, 2, 3, 4, like=wrong)
        refuse(StatePool, "x", wrong, 3, 4)
        state = State.zeros(1, 2, 8, 8)
        for option in ("decay", "state_indices", "out", "form", "num_threads", "scale"):
            refuse(state.step, q, q, q, **{option: wrong})
        refuse(state.step, wrong, q, q)
        refuse(state.update, wrong, q)
        refuse(state.query, wrong)


@pytest.mark.parametrize("eps", [-1.0, float("nan"), float("inf"), 10**400])
def test_eps_of_families(eps):
    q = np.ones((1, 4, 2, 8), np.float32)
    with pytest.raises(ValueError, match="eps: expected a (finite )?number"):
        linattn.linear_attention(q, q, q, eps=eps)


# ----------------------------------------------------------------------------
# Operands that do not fit, one at a time
# ----------------------------------------------------------------------------

LIBRARIES = ["numpy", "torch", "jax"]


def spoil(x, tokens=True):
    """Arrays that may not be in the place of x: of another dtype, rank or, perhaps, number of tokens."""
    yield x.astype(np.int16)
    yield x.astype(np.complex64)
    yield x.reshape((1,) * 6 + x.shape)
    if tokens and x.ndim > 2:
        yield np.concatenate([x, x[:, :1]], axis=1)


def convert(x, library):
    if library == "numpy" or not isinstance(x, np.ndarray):
        return x
    if library == "torch":
        return pytest.importorskip("torch").from_numpy(np.ascontiguousarray(x))
    return pytest.importorskip("jax.numpy").asarray(x)


def refuse_each(call, operands, library="numpy", alone=()):
    """Calls it with each operand in turn spoilt: an error that names what was expected. Those that
    are `alone` have a number of tokens of their own."""
    operands = {name: convert(x, library) for name, x in operands.items()}
    for name, x in operands.items():
        for wrong in spoil(np.asarray(x), name not in alone):
            with pytest.raises((ValueError, TypeError)) as error:
                call(**{**operands, name: convert(wrong, library)})
            message = str(error.value)
            assert re.match(r"^[\w.\[\]]+: expected ", message) and not INTERNAL.search(message), (name, wrong.shape, message)


def draw(*shape):
    return np.random.default_rng(sum(shape)).random(shape).astype(np.float32)


B, T, H, D = 2, 5, 2, 8


def tokens():
    return {name: draw(B, T, H, D) for name in "qkv"}


@pytest.mark.parametrize("case, name", test_fla.ALL, ids=test_fla.IDS)
def test_operands_of_fla(case, name, rng):
    refuse_each(lambda **operands: case.call(name, operands), case.draw(rng))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("case", test_families.PLAIN)
def test_operands_of_families(case, library):
    name, make = test_families.CASES[case]
    operands = make(test_families.Draw(T=T))
    arrays = {key: x for key, x in operands.items() if isinstance(x, np.ndarray)}
    rest = {key: x for key, x in operands.items() if key not in arrays}
    refuse_each(lambda **given: getattr(linattn, name)(**given, **rest), arrays, library)


@pytest.mark.parametrize("library", LIBRARIES)
def test_operands_of_scans(library):
    gates = {
        "decay": -draw(B, T, H, D), "beta": draw(B, T, H), "erase": draw(B, T, H, D), "write": draw(B, T, H, D),
        "initial_state": draw(B, H, D, D),
    }  # fmt: skip
    refuse_each(lambda **given: linattn.scan(update="delta", **given), tokens() | gates, library)
    ab = {"a": draw(B, T, H, D), "b": draw(B, T, H, D), "bonus": draw(H, D)}
    refuse_each(lambda **given: linattn.scan(update="dplr", readout="exclusive", **given), tokens() | ab, library)
    refuse_each(lambda **given: linattn.attention(causal=True, **given), tokens() | {"mask": draw(B, T) > 0.5}, library)
    refuse_each(linattn.bidirectional, tokens(), library)


@pytest.mark.parametrize("library", LIBRARIES)
def test_operands_of_states(library):
    like = convert(np.zeros(0, np.float32), library)
    state = State.zeros(B, H, D, D, like=like)
    refuse_each(state.step, tokens() | {"decay": -draw(B, T, H)}, library)
    refuse_each(state.update, {name: x for name, x in tokens().items() if name != "q"}, library)
    refuse_each(state.query, {"q": draw(B, T, H, D)}, library, alone="q")


@pytest.mark.parametrize("library", LIBRARIES)
def test_operands_of_convolutions(library):
    parameters = {"weight": draw(D, 4), "bias": draw(D)}
    refuse_each(linattn.causal_conv1d, {"x": draw(B, T, D), **parameters, "initial_state": draw(B, D, 3)}, library, alone="x")
    refuse_each(linattn.conv.causal_conv1d_fn, {"x": draw(B, D, T), **parameters}, library)
    if library != "jax":  # whose arrays are constant
        refuse_each(linattn.conv.causal_conv1d_update, {"x": draw(B, D), "conv_state": draw(B, D, 3), **parameters}, library)
