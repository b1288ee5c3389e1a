"""Calls that end before they are done: by Ctrl-C, by other signals, by a deadline.

Nothing is timed: a call that is not ended runs for minutes or forever, and the limits
only keep a broken build from hanging.
"""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import linattn
from linattn import State, StatePool

LIMIT = 120


def tokens(T, H=1, K=64, V=4, seed=0):
    """As many tokens as one likes, in the memory of one."""
    rng = np.random.default_rng(seed)
    rows = [rng.standard_normal((1, 1, H, D)).astype(np.float32) / 8 for D in (K, K, V)]
    return [np.broadcast_to(row, (1, T, H, row.shape[-1])) for row in rows]


def repeat(array, T):
    return np.broadcast_to(np.float32(array), (1, T, 1))


# Outputs take memory where they are written alone.
MANY = 1 << 26


def scan(T=MANY, **options):
    q, k, v = tokens(T)
    return linattn.scan(q, k, v, **options)


def delta(T=1 << 24, **options):
    return scan(T, update="delta", beta=repeat(0.5, T), decay=repeat(-0.1, T), **options)


def write_forever(T=1 << 42, **options):
    _, k, v = tokens(T, K=4, V=4)
    state = State.zeros(1, 1, 4, 4)
    state.update(k, v, **options)
    return state.S


FORMS = {
    "token": lambda **o: scan(form="token", **o),
    "state-tile": lambda **o: scan(form="state-tile", **o),
    "chunk": lambda **o: scan(form="chunk", decay=np.float32([-0.1]), **o),
    "segments": lambda **o: scan(form="segments", **o),
    "packed": lambda **o: scan(form="chunk", cu_seqlens=[0, 5, MANY], **o),
    "delta": lambda **o: delta(form="chunk", **o),
    "delta by token": lambda **o: delta(form="token", **o),
    "reference": lambda **o: scan(target="reference", **o),
    "softmax": lambda **o: linattn.attention(*tokens(1 << 20), weights="softmax", **o),
    "quadratic": lambda **o: linattn.attention(*tokens(1 << 20), causal=True, form="quadratic", **o),
    "reads and writes": lambda **o: linattn.attention(*tokens(MANY), **o),
    "update": write_forever,
}


def expect_right():
    """A later call is what it would have been."""
    q, k, v = np.random.default_rng(1).standard_normal((3, 1, 40, 2, 8)).astype(np.float32)
    for threads in (1, 2):
        o = linattn.scan(q, k, v, num_threads=threads)
        np.testing.assert_allclose(o, linattn.reference.scan(q, k, v), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_a_deadline_ends_every_form(form, threads):
    for seconds in (0, 0.03):  # the first one compiles, and begins no call
        with pytest.raises(TimeoutError, match="ended by its deadline before it was done"):
            with linattn.deadline(seconds):
                FORMS[form](num_threads=threads)
    expect_right()


def test_a_deadline_ends_modules():
    text = """
    func.func @f(%x: tensor<?xf32>) -> f32 {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      %r = scf.while (%a = %zero) : (f32) -> f32 {
        %e = tensor.extract %x[%c0] : tensor<?xf32>
        %more = arith.cmpf one, %e, %zero : f32
        %sum = arith.addf %a, %e : f32
        scf.condition(%more) %sum : f32
      } do {
      ^bb0(%a: f32):
        scf.yield %a : f32
      }
      return %r : f32
    }
    """
    kernel = linattn.compile(text)
    assert kernel(np.zeros(1, np.float32)) == 0
    with pytest.raises(TimeoutError), linattn.deadline(0.03):
        kernel(np.ones(1, np.float32))


def test_blocks_of_deadlines():
    with linattn.deadline(0):
        with pytest.raises(TimeoutError):
            expect_right()
        with pytest.raises(TimeoutError), linattn.deadline(3600):  # the earlier one counts
            expect_right()
    expect_right()
    deadline = linattn.deadline(3600)
    with deadline:
        expect_right()
        with deadline:
            expect_right()
        with pytest.raises(TimeoutError), linattn.deadline(0.01):
            scan()
        expect_right()


def test_a_deadline_is_of_one_thread():
    errors = []

    def run():
        try:
            expect_right()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    with linattn.deadline(0):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert not errors


@pytest.mark.parametrize(
    "seconds, error, message",
    [
        (-1, ValueError, "seconds: expected a number of at least 0.0, but got -1.0"),
        (float("nan"), ValueError, "seconds: expected a finite number, but got nan"),
        ("1", TypeError, "seconds: expected a number or None, but got str"),
        (None, TypeError, "seconds: expected a number, but got None"),
    ],
)
def test_deadlines_that_are_none(seconds, error, message):
    with pytest.raises(error, match=message):
        linattn.deadline(seconds)


# ----------------------------------------------------------------------------
# States
# ----------------------------------------------------------------------------


def end_step(call):
    with pytest.raises(TimeoutError), linattn.deadline(0.02):
        call()


def small_step(N=1, T=1):
    return np.random.default_rng(2).standard_normal((3, N, T, 1, 4)).astype(np.float32)


@pytest.mark.parametrize("way", ["step", "update"])
def test_a_state_that_was_half_written_refuses(way):
    state = State.zeros(1, 1, 4, 4)
    state.step(*small_step())
    q, k, v = tokens(1 << 26, K=4, V=4)
    end_step(lambda: state.step(q, k, v, form="token") if way == "step" else state.update(k, v))
    lost = "state: expected one whose last step was done, but got one whose step was ended before"
    for use in (
        lambda: state.step(*small_step()),
        lambda: state.update(*small_step()[1:]),
        lambda: state.query(small_step()[0]),
        state.copy,
        state.snapshot,
        lambda: state.save(os.devnull),
    ):
        with pytest.raises(ValueError, match=lost):
            use()
    # Until it has other contents.
    state.S = np.zeros((1, 1, 4, 4), np.float32)
    expected = State.zeros(1, 1, 4, 4).step(*small_step())
    np.testing.assert_array_equal(state.step(*small_step()), expected)


def test_errors_before_the_kernel_lose_nothing():
    state = State.zeros(1, 1, 4, 4)
    state.step(*small_step())
    with pytest.raises(ValueError):
        state.step(*small_step(), scale=float("nan"))
    with pytest.raises(TimeoutError), linattn.deadline(0):
        linattn.scan(*small_step())
    state.step(*small_step())


def test_a_first_step_is_not_in_place():
    S = np.zeros((1, 1, 4, 4), np.float32)
    state = State(S)
    q, k, v = tokens(1 << 26, K=4, V=4)
    end_step(lambda: state.step(q, k, v, form="token"))
    assert not S.any()
    state.step(*small_step())


def test_a_history_survives():
    state = State.zeros(1, 1, 4, 4, history=2)
    kept = [state.S.copy()]
    for _ in range(3):
        state.step(*small_step())
        kept.append(state.S.copy())
    q, k, v = tokens(1 << 26, K=4, V=4)
    end_step(lambda: state.step(q, k, v, form="token"))
    # The memory of the oldest state was to be that of the new one.
    np.testing.assert_array_equal(state.S, kept[3])
    state.rollback(1)
    np.testing.assert_array_equal(state.S, kept[2])
    with pytest.raises(ValueError):
        state.rollback(1)


def test_rows_of_a_pool_are_lost_alone():
    pool = StatePool(4, 1, 4, 4)
    rows = pool.allocate(3)
    pool.step(*small_step(3), rows)
    before = pool.read(rows[2:]).S.copy()
    q, k, v = (np.broadcast_to(x, (2, *x.shape[1:])) for x in tokens(1 << 26, K=4, V=4))
    end_step(lambda: pool.step(q, k, v, rows[:2], form="token"))
    for use in (lambda: pool.step(*small_step(2), rows[1:]), lambda: pool.read(rows[:1])):
        with pytest.raises(ValueError, match="expected rows whose last step was done, but got row"):
            use()
    np.testing.assert_array_equal(pool.read(rows[2:]).S, before)
    pool.step(*small_step(1), rows[2:])
    # A row that is written, or given back and taken anew, is as good as any.
    pool.write(rows[:1], State.zeros(1, 1, 4, 4))
    pool.step(*small_step(1), rows[:1])
    pool.free(rows[1:2])
    again = pool.allocate(1)
    assert again == rows[1:2]
    expected = State.zeros(1, 1, 4, 4).step(*small_step(1))
    np.testing.assert_array_equal(pool.step(*small_step(1), again), expected)


# ----------------------------------------------------------------------------
# Signals
# ----------------------------------------------------------------------------


def run_child(code, signals=(signal.SIGINT,), **environment):
    """Runs code that prints a line and then calls; sends it a signal in the middle of each call."""
    prelude = f"""
    import os, signal, sys, threading
    sys.path.insert(0, {os.path.dirname(__file__)!r})
    import numpy as np
    import linattn
    from test_interrupt import FORMS, MANY, expect_right, scan, tokens, write_forever

    def begin():
        print("calling", flush=True)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    timer = threading.Timer(LIMIT, child.kill)
    timer.start()
    lines = []
    try:
        for number in signals:
            line = child.stdout.readline()
            while line and line != "calling\n":
                lines.append(line)
                line = child.stdout.readline()
            if not line:
                break
            threading.Event().wait(0.3)  # the call has begun by now; at any time else the result is the same
            child.send_signal(number)
        out, err = child.communicate()
    finally:
        timer.cancel()
    assert child.returncode == 0, err[-3000:]
    return "".join(lines) + out


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_ends_a_call(threads):
    names = ["update", "chunk", "delta by token", "packed", "softmax"]
    out = run_child(
        f"""
        expect_right()
        for name in {names}:
            try:
                begin()
                FORMS[name](num_threads={threads})
                print("not ended")
            except KeyboardInterrupt as error:
                print("ended", name)
            expect_right()
        """,
        [signal.SIGINT] * len(names),
    )
    assert out.splitlines() == [f"ended {name}" for name in names]


def test_handlers_run_in_the_middle_of_a_call():
    """One that raises nothing leaves the call as it is; what another raises ends it."""
    out = run_child(
        """
        seen = []

        def note(number, frame):
            seen.append(number)
            expect_right()  # which calls kernels
            if len(seen) == 1:
                begin()
            else:
                raise LookupError("enough")

        signal.signal(signal.SIGUSR1, note)
        try:
            begin()
            write_forever()
        except LookupError as error:
            print(error, len(seen))
        expect_right()
        """,
        [signal.SIGUSR1] * 2,
    )
    assert out == "enough 2\n"


def test_another_wakeup_descriptor_is_notified_and_restored():
    out = run_child(
        """
        import socket
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno())
        try:
            begin()
            write_forever()
        except KeyboardInterrupt:
            pass
        assert signal.set_wakeup_fd(-1) == theirs.fileno()
        print(set(ours.recv(10)) == {signal.SIGINT})
        """
    )
    assert out == "True\n"


def test_calls_of_other_threads_are_left_alone():
    """As Python has it: the main thread is interrupted."""
    out = run_child(
        """
        done = threading.Event()

        def run():
            q, k, v = tokens(1 << 22)
            begin()
            for _ in range(5):
                linattn.scan(q, k, v)
            done.set()

        threading.Thread(target=run).start()
        try:
            done.wait()
        except KeyboardInterrupt:
            print("interrupted")
        print(done.wait())
        """
    )
    assert out == "interrupted\nTrue\n"


def test_a_forked_child_is_interrupted_too():
    out = run_child(
        """
        expect_right()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                write_forever()
            except KeyboardInterrupt:
                expect_right()
                os._exit(7)
            os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        [],
    )
    assert out == "7\n"
