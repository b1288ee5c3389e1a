"""Messages of errors: the operand and what was expected of it, in the words of the API."""

import inspect
import re

import numpy as np
import pytest

import linattn
from linattn import State, StatePool, costs

WRONG = [None, "x", 3, 2.5, [1, 2], {}, object(), np.ones(3), np.ones((1, 2, 1, 4), np.float32), b"x", True, -1,
         float("nan"), 10**30, 10**400]  # fmt: skip
# Of generated modules, of bindings, of C++.
INTERNAL = re.compile(r"<(?!string)\w+>:|incompatible function|std::|bad_cast|nanobind|__\w+__\(")


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
    with pytest.raises(TypeError, match=rf"{name}: expected the arguments .*, but got "):
        getattr(costs, name)(object(), object())


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
