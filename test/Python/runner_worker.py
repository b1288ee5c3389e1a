"""Common recurrences by the runner's package alone, beside their formula in float64; test_wheel.py runs
it on another processor.

Prints the machine, the number of bundles and the library of threads.
"""

import platform

import linattn_runner
import numpy as np

B, T, H, D = 1, 50, 2, 64


def oracle(q, k, v, decay, beta):
    S, o = np.zeros((H, D, D)), np.zeros((T, H, D))
    q, k, v = (np.float64(x[0]) for x in (q, k, v))
    for t in range(T):
        for h in range(H):
            if decay is not None:
                S[h] *= np.exp(np.float64(decay[0, t, h])).reshape(-1, 1)
            written = v[t, h] if beta is None else beta[0, t, h] * (v[t, h] - k[t, h] @ S[h])
            S[h] += np.outer(k[t, h], written)
            o[t, h] = q[t, h] @ S[h] / D**0.5
    return o


def main():
    generator = np.random.default_rng(0)
    q, k, v = (generator.standard_normal((B, T, H, D)).astype(np.float32) for _ in range(3))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    beta = generator.random((B, T, H)).astype(np.float32)
    decays = [None, -generator.random((B, T, H)).astype(np.float32), -generator.random((B, T, H, D)).astype(np.float32)]
    for decay in decays:
        for gate in (None, beta):
            o = linattn_runner.scan(q, k, v, decay=decay, beta=gate, update="add" if gate is None else "delta")
            error = np.abs(o[0] - oracle(q, k, v, decay, gate)).max()
            assert error < 1e-5, (None if decay is None else decay.shape, gate is None, error)
    libraries = {line.split()[-1].split("/")[-1] for line in open("/proc/self/maps") if "pthreadpool" in line}
    print(platform.machine(), len(linattn_runner.kernels()), *libraries)


if __name__ == "__main__":
    main()
