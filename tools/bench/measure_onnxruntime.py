#!/usr/bin/env python3
"""LinearAttention in ONNX Runtime: its own ways beside linattn's library.

    tools/bench/measure_onnxruntime.py [--rule=gated_delta|gated] [--repeats=N]

Sessions have one thread and take turns; times are the least CPU time of the turns, which other
programs on the machine disturb least. The model file is the same in the first and the third session;
the second one has the node of com.microsoft in its place. Outputs are bound to buffers; "in place" binds
one buffer to both states, as a program that decodes does.
"""

import argparse
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import linattn.onnxruntime

SIZES = [
    (1, 1024, 32, 128, False), (1, 1024, 16, 64, False),
    *((B, 1, 32, D, in_place) for B, D in ((8, 128), (1, 128), (1, 64)) for in_place in (False, True)),
]  # fmt: skip


def model(domain, rule, B, T, H, D):
    gates = ["past" if T == 1 else "", "decay", *(["beta"] if rule == "gated_delta" else [])]
    node = helper.make_node(
        "LinearAttention", ["q", "k", "v", *gates], ["o", "state"], domain=domain,
        q_num_heads=H, kv_num_heads=H, update_rule=rule, scale=D**-0.5,
    )  # fmt: skip
    shapes = {"q": (B, T, H * D), "k": (B, T, H * D), "v": (B, T, H * D), "past": (B, H, D, D), "decay": (B, T, H), "beta": (B, T, H)}
    rng = np.random.default_rng(0)
    feeds = {name: rng.standard_normal(shapes[name]).astype(np.float32) for name in ["q", "k", "v", *gates] if name}
    k = feeds["k"].reshape(B, T, H, D)
    feeds["k"] = (k / np.linalg.norm(k, axis=-1, keepdims=True)).reshape(B, T, H * D)
    feeds["decay"] = -np.abs(feeds["decay"]) / 8
    if "beta" in feeds:
        feeds["beta"] = 1 / (1 + np.exp(-feeds["beta"]))
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape) for name, array in feeds.items()]
    results = [helper.make_tensor_value_info("o", TensorProto.FLOAT, (B, T, H * D)),
               helper.make_tensor_value_info("state", TensorProto.FLOAT, (B, H, D, D))]  # fmt: skip
    opsets = [helper.make_opsetid("", 27), *([helper.make_opsetid(domain, 1)] if domain else [])]
    graph = helper.make_graph([node], "g", infos, results)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), feeds


def session(data, ours):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    if ours:
        linattn.onnxruntime.register(options)
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def bound(it, feeds, shape, in_place):
    """A call with buffers of its own, whose new state may take the memory of the old one."""
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array.copy()) for name, array in feeds.items()}
    binding = it.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    state = values["past"] if in_place else onnxruntime.OrtValue.ortvalue_from_numpy(np.empty(shape, np.float32))
    binding.bind_ortvalue_output("state", state)
    output = onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(feeds["v"]))
    binding.bind_ortvalue_output("o", output)
    return lambda: it.run_with_iobinding(binding)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--rule", choices=["gated_delta", "gated"], default="gated_delta")
    options = parser.parse_args()
    print("| B | T | heads | size | ONNX Runtime alone | its com.microsoft node | with linattn | times alone | times com.microsoft |")
    print("|---|---|---|---|---|---|---|---|---|")
    for *sizes, is_in_place in SIZES:
        official, feeds = model("", options.rule, *sizes)
        contributed, _ = model("com.microsoft", options.rule, *sizes)
        sessions = [session(official, False), session(contributed, False), session(official, True)]
        results = [it.run(None, feeds) for it in sessions]
        for other in results[:2]:
            for mine, theirs in zip(results[2], other):
                assert np.abs(mine - theirs).max() <= 1e-5 * np.abs(theirs).max()
        runs = [bound(it, feeds, results[0][1].shape, is_in_place) for it in sessions]
        best, calls = [np.inf] * 3, 1 if sizes[1] > 1 else 50
        for _ in range(options.repeats):
            for i, run in enumerate(runs):
                start = time.process_time()
                for _ in range(calls):
                    run()
                best[i] = min(best[i], (time.process_time() - start) / calls)
        times = " | ".join(f"{1e3 * seconds:.3g} ms" for seconds in best)
        length = f"{sizes[1]} in place" if is_in_place else sizes[1]
        print(f"| {sizes[0]} | {length} | {sizes[2]} | {sizes[3]} | {times} | {best[0] / best[2]:.1f} | {best[1] / best[2]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
