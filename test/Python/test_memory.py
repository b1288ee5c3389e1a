"""Sizes that overflow, and memory that is missing: errors, never a crash."""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from conftest import assert_agrees

import linattn
from linattn import reference


def run_limited(code):
    """Runs code in a process of its own; `limit(n)` leaves it n MiB of address space."""
    prelude = """
    import resource

    def limit(mebibytes):
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (mebibytes << 20), resource.RLIM_INFINITY))

    def unlimit():
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def expand(shape):
    return np.broadcast_to(np.float32(1), shape)


HUGE = 1 << 31

# The 2^64 bytes of a state of K = 2^40 by V = 2^22 wrap around to none; tokens and output are small.
KEYS, VALUES = (1, 1, 1, 1 << 40), (1, 1, 1, 1 << 22)


def test_a_state_that_overflows():
    k, v = expand(KEYS), expand(VALUES)
    with pytest.raises(ValueError, match="result: expected an array of at most 9223372036854775807 bytes"):
        linattn.scan(k, k, v, return_state=True)


def test_a_state_of_the_call_that_overflows():
    """Without `return_state` only the compiled code multiplies its sizes. Token by token
    it keeps the state, where one chunk would not."""
    k, v, one = expand(KEYS), expand(VALUES), expand((1, 1, 1, 1))
    with pytest.raises(MemoryError, match="expected memory for a workspace of more than 9223372036854775807 bytes"):
        linattn.scan(k, k, v, form="token")
    assert linattn.scan(one, one, one).shape == (1, 1, 1, 1)


def test_operands_and_outputs_that_overflow():
    torch = pytest.importorskip("torch")
    B, T = 1 << 21, 1 << 20
    v = torch.ones(1, 1, 1, 1).expand(B, T, 1, 1 << 20)
    k = v[..., :1]
    with pytest.raises(ValueError, match=r"(v|result): expected an array of at most 9223372036854775807 bytes, but got"):
        linattn.scan(k, k, v)
    k = expand((B, T, 1, 1))
    with pytest.raises(MemoryError, match="expected memory for a result of shape"):
        linattn.scan(k, k, expand((B, T, 1, 1 << 18)))


def test_torch_expands_without_a_check():
    torch = pytest.importorskip("torch")
    k, v = torch.ones(1, 1, 1, 1).expand(KEYS), torch.ones(1, 1, 1, 1).expand(VALUES)
    with pytest.raises(ValueError, match="expected an array of at most"):
        linattn.scan(k, k, v, return_state=True)


def test_a_long_head_that_torch_expands():
    """A state of 2^64 bytes, of which the products of 64 bits have none."""
    torch = pytest.importorskip("torch")
    q = torch.ones(1, 1, 1, 1).expand(1, 2, 1, 1 << 31)
    with pytest.raises(ValueError, match="result: expected an array of at most 9223372036854775807 bytes, but got"):
        linattn.scan(q, q, q, return_state=True)


def test_states_and_pools_that_overflow():
    with pytest.raises(ValueError, match=r"state: expected an array of at most \d+ bytes, but got shape \(4, 2, "):
        linattn.State.zeros(4, 2, HUGE, HUGE)
    with pytest.raises(MemoryError):
        linattn.State.zeros(1, 1, 1 << 22, 1 << 22)


def test_a_workspace_without_memory():
    """K = V = 8192: a head's state has 256 MiB, and 100 are left."""
    print(
        run_limited(
            """
            import numpy as np, linattn
            x = np.ones((1, 200, 1, 8192), np.float32) * 0.01  # several chunks
            expected, _ = linattn.scan(x, x, x, return_state=True)
            linattn.scan(x, x, x)
            for threads in (1, 2):
                limit(100)
                try:
                    linattn.scan(x, x, x, num_threads=threads)
                    raise SystemExit("expected a MemoryError")
                except MemoryError as error:
                    message = str(error)
                unlimit()
                assert "expected memory for a workspace of 268435456 bytes, but the system gave none" in message, message
                assert (linattn.scan(x, x, x, num_threads=threads) == expected).all()
            limit(100)
            try:
                linattn.scan(x, x, x, return_state=True)
                raise SystemExit("expected a MemoryError")
            except MemoryError as error:
                message = str(error)
            assert "expected memory for a result of shape" in message, message
            """
        )
    )


def test_steps_without_memory():
    """Of a state of 256 MiB, and of one of two rows of a pool. Either nothing has happened,
    or the state says that it is lost; the other row is as it was."""
    run_limited(
        """
        import numpy as np, linattn
        D = 8192
        x = np.random.default_rng(0).random((1, 200, 1, D), np.float32) * 0.01
        x[:, :, :, 64:] = 0  # few pages of a state are touched

        def check(step, read, others):
            step()
            before, kept = read(), others()
            limit(100)
            try:
                step()
                raise SystemExit("expected a MemoryError")
            except MemoryError as error:
                assert "expected memory for a workspace of" in str(error), error
            unlimit()
            assert (others() == kept).all()
            try:
                assert (read() == before).all(), "a state that changed, and does not say so"
                step()
                assert not (read() == before).all()
            except ValueError as error:
                assert "its contents are lost" in str(error), error

        state = linattn.State.zeros(1, 1, D, D)
        part = lambda S: S[0, 0, :64, :64].copy()
        check(lambda: state.step(x, x, x), lambda: (state._check_kept(), part(state.S))[1], lambda: np.zeros(1))
        del state
        pool = linattn.StatePool(2, 1, D, D)
        rows = pool.allocate(2)
        pool.states.S[rows[1], 0, :64, :64] = 3.0
        check(
            lambda: pool.step(x, x, x, rows[:1]),
            lambda: (pool.states._check_kept(rows[:1]), part(pool.states.S[rows[0] :][:1]))[1],
            lambda: part(pool.states.S[rows[1] :][:1]),
        )
        """
    )


def test_a_compilation_without_memory():
    run_limited(
        """
        import os
        os.environ["LINATTN_CACHE"] = "off"
        import numpy as np, linattn
        x = np.ones((1, 2, 1, 8), np.float32)
        limit(100)
        try:
            linattn.scan(x, x, x)
            raise SystemExit("expected a MemoryError")
        except MemoryError as error:
            assert "MiB of memory to compile in" in str(error), error
        unlimit()
        assert linattn.scan(x, x, x).shape == x.shape
        """
    )


def test_threads_without_memory_for_their_stacks():
    """The call computes on its own thread instead."""
    run_limited(
        """
        import numpy as np, linattn
        x = np.random.default_rng(0).random((4, 64, 4, 16), np.float32)
        expected = linattn.scan(x, x, x, num_threads=1)
        limit(64)
        assert (linattn.scan(x, x, x, num_threads=37) == expected).all()
        unlimit()
        assert (linattn.scan(x, x, x, num_threads=37) == expected).all()
        """
    )


def test_kernels_that_were_not_used_for_longest_go():
    """Each value of an eps has a kernel of its own; all plans together hold a bounded number, and a call
    that goes on between them keeps its own."""
    x = np.random.default_rng(0).standard_normal((1, 4, 1, 8), np.float32)
    options = {"feature_map": "elu", "normalize": True}
    module = linattn._linattn
    former = module.bound_kernels(4)
    try:
        steady = linattn.scan(x, x, x, eps=0.5, **options)
        for index in range(6):
            o = linattn.scan(x, x, x, eps=1.0 + index, **options)
            assert_agrees(o, reference.scan(x, x, x, eps=1.0 + index, **options))
            before = dict(module.cache_stats())
            np.testing.assert_array_equal(linattn.scan(x, x, x, eps=0.5, **options), steady)
            assert dict(module.cache_stats()) == before
            assert module.count_kernels() <= 4
        again = linattn.scan(x, x, x, eps=1.0, **options)  # whose kernel was dropped
        assert_agrees(again, reference.scan(x, x, x, eps=1.0, **options))
        assert module.count_kernels() <= 4
    finally:
        module.bound_kernels(former)


def test_a_kernel_that_is_dropped_while_it_runs():
    x = np.random.default_rng(0).standard_normal((1, 1 << 16, 1, 64), np.float32)
    expected = linattn.scan(x, x, x)
    former, results = linattn._linattn.bound_kernels(1), []
    try:
        thread = threading.Thread(target=lambda: results.extend(linattn.scan(x, x, x) for _ in range(8)))
        thread.start()
        for index in range(8):
            linattn.scan(x[:, :4], x[:, :4], x[:, :4], normalize=True, eps=3.0 + index % 2)
        thread.join()
    finally:
        linattn._linattn.bound_kernels(former)
    assert len(results) == 8 and all((result == expected).all() for result in results)


def test_plans_that_were_not_used_for_longest_go():
    class Plan:
        def __init__(self, last_use):
            self.last_use = last_use

    plans = {name: Plan(use) for name, use in zip("abcd", (7, 1, 9, 3))}
    linattn._recurrence._plans.remember_in(plans, 4, "e", Plan(10))
    assert list(plans) == ["a", "c", "e"]
