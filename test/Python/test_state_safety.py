"""States that two threads step at once, files that are damaged or cut short, masked arrays."""

import itertools
import os
import random
import stat
import threading

import numpy as np
import pytest

import linattn
from linattn import State, StatePool


def contend(step, count=60):
    """Calls step(i) from two threads; how often each succeeded, and the refusals."""
    succeeded, refused, errors = [0, 0], [], []
    start = threading.Barrier(2)

    def run(i):
        start.wait()
        for _ in range(count):
            try:
                step(i)
                succeeded[i] += 1
            except RuntimeError as error:
                refused.append(str(error))
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    return succeeded, refused


def ones(*shape):
    return np.ones(shape, np.float32)


def test_two_threads_lose_no_update():
    state = State.zeros(1, 32, 128, 128)
    q = k = v = ones(1, 16, 32, 128)
    state.step(q, k, v)
    for _ in itertools.repeat(None, 20):  # until they have met
        before = state.S[0, 0, 0, 0]
        succeeded, refused = contend(lambda i: state.step(q, k, v, num_threads=1))
        assert state.S[0, 0, 0, 0] - before == 16 * sum(succeeded)
        if refused:
            break
    assert refused and "state: expected no other thread to" in refused[0]
    state.step(q, k, v)  # and it goes on


def test_first_steps_of_a_given_array_lose_no_update():
    given = ones(1, 32, 128, 128)
    q = k = v = ones(1, 16, 32, 128)
    for _ in itertools.repeat(None, 50):
        state = State(given)
        succeeded, refused = contend(lambda i: state.step(q, k, v, num_threads=1), count=1)
        assert state.S[0, 0, 0, 0] == 1 + 16 * sum(succeeded)
        if refused:
            break
    assert refused and given[0, 0, 0, 0] == 1


def test_rows_of_a_pool():
    pool = StatePool(4, 32, 128, 128)
    rows = pool.allocate(4)
    q = k = v = ones(2, 16, 32, 128)
    pool.step(q, k, v, rows[:2])
    total = lambda: pool.states.S[:, 0, 0, 0].sum()  # noqa: E731
    before = total()
    succeeded, refused = contend(lambda i: pool.step(q, k, v, rows[2 * i : 2 * i + 2], num_threads=1))
    assert not refused and total() - before == 2 * 16 * sum(succeeded)
    for _ in itertools.repeat(None, 20):
        before = total()
        succeeded, refused = contend(lambda i: pool.step(q, k, v, rows[i : i + 2], num_threads=1))
        assert total() - before == 2 * 16 * sum(succeeded)
        if refused:
            break
    assert refused and "state_indices: expected rows that no other thread writes now" in refused[0]


def test_saving_replaces(tmp_path, monkeypatch):
    state = State.zeros(1, 2, 3, 4, normalize=True)
    for suffix in (".npz", ".safetensors"):
        path, link = tmp_path / f"state{suffix}", tmp_path / f"link{suffix}"
        state.save(path)
        path.chmod(0o640)
        link.symlink_to(path)
        whole = path.read_bytes()

        def fail(*args, **kwargs):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(KeyboardInterrupt):
                state.save(path)
        assert path.read_bytes() == whole and len(list(tmp_path.iterdir())) == 2
        state.S[...] = 1
        state.save(link)
        assert link.is_symlink() and State.load(path).S.all()
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        link.unlink(), path.unlink()
    with pytest.raises(OSError):
        state.save(tmp_path / "missing" / "state.npz")


def damage(whole, rng):
    """Some bytes changed, removed, repeated or put in."""
    data = bytearray(whole)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(data) or 1)
        kind = rng.randrange(4)
        if kind == 0:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del data[at : at + rng.choice((1, 4, 64, len(data)))]
        elif kind == 2:
            data[at:at] = data[at : at + rng.choice((1, 8, 64))]
        else:
            data[at:at] = rng.randbytes(rng.choice((1, 4)))
    return bytes(data)


@pytest.mark.parametrize("suffix, compressed", [(".npz", False), (".npz", True), (".safetensors", False)])
def test_damaged_files(tmp_path, suffix, compressed):
    path = tmp_path / f"state{suffix}"
    state = State(*(np.random.default_rng(0).random(shape) for shape in ((1, 2, 3, 4), (1, 2, 3), (1, 2))))
    state.save(path)
    if compressed:
        np.savez_compressed(path, S=state.S, z=state.z, m=state.m)
    whole, rng = path.read_bytes(), random.Random(7)
    for _ in range(200):
        path.write_bytes(damage(whole, rng))
        try:
            State.load(path)
        except ValueError as error:
            assert str(error)


@pytest.mark.parametrize("header", [
    "[" * 100_000, '{"S":' * 100_000, '{"S": 1e999}', "[]", "7", "null",
    '{"S": {"dtype": "F32", "shape": [1e400], "data_offsets": [0, 0]}}',
    '{"S": {"dtype": "F32", "shape": [99999999999999999999], "data_offsets": [0, 0]}}',
    '{"S": {"dtype": "F32", "shape": [-1, 0, 1, 1], "data_offsets": [0, 0]}}',
    '{"S": {"dtype": "F32", "shape": [1], "data_offsets": [0, 1e999]}}',
])  # fmt: skip
def test_safetensors_headers(tmp_path, header):
    path = tmp_path / "state.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode())
    with pytest.raises(ValueError, match="state.safetensors|S: expected"):
        State.load(path)


def test_masked_arrays_are_refused(qkv):
    q, k, v = qkv
    masked = np.ma.masked_array(k, mask=k > 0)
    with pytest.raises(TypeError, match="k: expected an array without a mask, but got .*MaskedArray"):
        linattn.scan(q, masked, v)
    with pytest.raises(TypeError, match="k: expected an array without a mask, but got .*MaskedArray"):
        linattn.reference.scan(q, masked, v)
    with pytest.raises(TypeError, match="without a mask"):
        linattn.gla(q, k, v, np.ma.masked_array(-np.abs(k)))
    with pytest.raises(TypeError, match="without a mask"):
        linattn.compile("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n return %x : tensor<4xf32> }")(
            np.ma.masked_array(ones(4))
        )
