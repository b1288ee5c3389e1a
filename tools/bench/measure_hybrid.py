#!/usr/bin/env python3
"""`linattn.hybrid`, whose passes follow one another, beside one pass over blocks of tokens.

    PYTHONPATH=build/python tools/bench/measure_hybrid.py [--repetitions 12]

Prints a table in Markdown: the CPU time of one pass over that of `linattn.hybrid`, one thread, f32, 8 heads of 64, the least
of several calls in turn.
"""

import argparse

import numpy as np
from turns import race

import linattn

H, D = 8, 64
MIX = f"""linalg.generic {{indexing_maps = [affine_map<(b, h, t, d) -> (h)>, {", ".join(["affine_map<(b, h, t, d) -> (b, h, t, d)>"] * 3)}],
        iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}"""


def one_pass(window, rows):
    """The function as a loop over blocks of tokens, which carries the state of the linear attention."""
    x, s, z, share = f"tensor<1x{H}x?x{D}xf32>", f"tensor<1x{H}x{D}x{D}xf32>", f"tensor<1x{H}x{D}xf32>", f"tensor<{H}xf32>"

    def part(of, first, count):
        return f"tensor.extract_slice {of}[0, 0, {first}, 0] [1, {H}, {count}, {D}] [1, 1, 1, 1] : {x} to {x}"

    return f"""
func.func @hybrid(%q: {x}, %k: {x}, %v: {x}, %share: {share}) -> {x} {{
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %rows = arith.constant {rows} : index
  %reach = arith.constant {window - 1} : index
  %zero = arith.constant 0.0 : f32
  %T = tensor.dim %q, %c2 : {x}
  %dest = tensor.empty(%T) : {x}
  %s_empty = tensor.empty() : {s}
  %s0 = linalg.fill ins(%zero : f32) outs(%s_empty : {s}) -> {s}
  %z_empty = tensor.empty() : {z}
  %z0 = linalg.fill ins(%zero : f32) outs(%z_empty : {z}) -> {z}
  %o, %s_last, %z_last = scf.for %first = %c0 to %T step %rows
      iter_args(%done = %dest, %s_now = %s0, %z_now = %z0) -> ({x}, {s}, {z}) {{
    %left = arith.subi %T, %first : index
    %n = arith.minsi %left, %rows : index
    %behind = arith.subi %first, %reach : index
    %begin = arith.maxsi %behind, %c0 : index
    %end = arith.addi %first, %n : index
    %m = arith.subi %end, %begin : index
    %qp = {part("%q", "%first", "%n")}
    %kp = {part("%k", "%first", "%n")}
    %vp = {part("%v", "%first", "%n")}
    %kw = {part("%k", "%begin", "%m")}
    %vw = {part("%v", "%begin", "%m")}
    %part = tensor.empty(%n) : {x}
    %near = linattn.quadratic %qp, %kw, %vw weights(softmax) into(%part)
        {{causal, scale = {D**-0.5}, pattern = #linattn.pattern<window = {window}>}} : ({x}, {x}, {x}, {x}) -> {x}
    %far, %s1, %z1 = linattn.scan %qp, %kp, %vp into(%part) init(%s_now) normalizer(%z_now)
        {{feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}}
        : ({x}, {x}, {x}, {x}, {s}, {z}) -> ({x}, {s}, {z})
    %into = {part("%done", "%first", "%n")}
    %mixed = {MIX}
        ins(%share, %near, %far : {share}, {x}, {x}) outs(%into : {x}) {{
    ^bb0(%a: f32, %x: f32, %y: f32, %old: f32):
      %0 = arith.subf %x, %y : f32
      %1 = arith.mulf %a, %0 : f32
      %2 = arith.addf %y, %1 : f32
      linalg.yield %2 : f32
    }} -> {x}
    %next = tensor.insert_slice %mixed into %done[0, 0, %first, 0] [1, {H}, %n, {D}] [1, 1, 1, 1] : {x} into {x}
    scf.yield %next, %s1, %z1 : {x}, {s}, {z}
  }}
  return %o : {x}
}}"""


def ratio(T, window, rows, repetitions):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, T, H, D), dtype=np.float32) for _ in range(3))
    share = np.full(H, 0.5, np.float32)
    kernel = linattn.compile(one_pass(window, rows))
    blocks = [x.swapaxes(1, 2) for x in (q, k, v)]

    def passes():
        return linattn.hybrid(q, k, v, share, window=window)

    assert np.abs(kernel(*blocks, share).swapaxes(1, 2) - passes()).max() <= 1e-5
    one, three = race([lambda: kernel(*blocks, share), passes], repetitions)
    return one / three


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=12)
    arguments = parser.parse_args()
    linattn.set_num_threads(1)
    print("| tokens | window | blocks of 64 | 256 | 1024 |")
    print("|---|---|---|---|---|")
    for tokens, window in ((4096, 64), (4096, 256), (16384, 64), (16384, 256)):
        cells = [f"{ratio(tokens, window, rows, arguments.repetitions):.2f}" for rows in (64, 256, 1024)]
        print(f"| {tokens} | {window} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
