"""Modules of unknown origin end in a kernel or in a ValueError."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import linattn

IDENTITY = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32>{attributes} {{\n{body}  return %x : tensor<4xf32>\n}}\n"


def module(body="", attributes="", before=""):
    return before + IDENTITY.format(body=body, attributes=attributes)


def apply_map(expression):
    return module(f"  %c = arith.constant 0 : index\n  %i = affine.apply affine_map<(d0) -> ({expression})>(%c)\n")


def fails(text, message, **options):
    with pytest.raises(ValueError, match=message):
        linattn.compile(text, **options)


def test_signs_in_a_row():
    fails(apply_map("-" * 200_000 + "d0"), r"^<string>:3:\d+: error: signs are nested more than 1000 deep")


@pytest.mark.parametrize("pair", ["()", "[]", "{}", "<>"])
def test_brackets(pair):
    text = module(attributes=f" attributes {{a = {pair[0] * 100_000}{pair[1] * 100_000}}}")
    fails(text, r"^<string>:1:\d+: error: brackets are nested more than 1000 deep")


def test_brackets_in_strings_close_nothing():
    text = module(attributes=' attributes {a = ' + '["]]]]", ' * 100_000 + "1" + "]" * 100_000 + "}")
    fails(text, "brackets are nested more than 1000 deep")


@pytest.mark.parametrize("number", ["1." + "7" * 60_000, "7" * 60_000 + ".0", "1.0e" + "7" * 60_000, "0x" + "7" * 60_000])
def test_numbers_without_an_end(number):
    """LLVM writes behind its own array for some."""
    fails(module(attributes=f" attributes {{a = {number}}}"), r"^<string>:1:\d+: error: expected a number of at most 1000 digits")


def test_long_names_are_not_numbers():
    x = np.arange(4, dtype=np.float32)
    name = "f" + "7" * 5000
    np.testing.assert_array_equal(linattn.compile(module(before=f"func.func private @{name}() {{ return }}\n"), "f")(x), x)


@pytest.mark.parametrize("text", [
    module(attributes=' attributes {a = "' + "[" * 2000 + '"}'),
    module("  // " + "(" * 2000 + "\n"),
    module(attributes=' attributes {a = "\\"' + "{" * 2000 + '"}'),
    apply_map("-".join(["d0"] * 2000)),
])  # fmt: skip
def test_brackets_in_strings_and_comments_do_not_count(text):
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(linattn.compile(text)(x), x)


def test_a_parser_that_crashes_is_an_error_where_it_stood():
    text = """func.func @f(%x: tensor<4x5xf32>) -> tensor<5x4xf32> {
  %e = tensor.empty() : tensor<5x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x5xf32>) outs(%e : tensor<5x4xf32>) permutation = [1, ?]
  return %t : tensor<5x4xf32>
}
"""
    column = text.splitlines()[2].index("[")
    with pytest.raises(ValueError, match=r"^<string>:3:\d+: error: ") as caught:
        linattn.compile(text)
    # It cannot do without a list after the sign either.
    assert abs(int(str(caught.value).split(":")[2]) - column) <= 3


def test_aliases_that_nest():
    deep = "!a0 = tuple<i1>\n" + "".join(f"!a{i + 1} = tuple<!a{i}>\n" for i in range(100_000))
    try:  # a stack that is large enough may take it
        linattn.compile(module(attributes=" attributes {a = !a100000}", before=deep))
    except ValueError as error:
        assert "<string>" in str(error)


def test_time_is_limited(monkeypatch):
    monkeypatch.setenv("LINATTN_COMPILE_SECONDS", "1")
    lines = "".join(f"  %v{i + 1} = arith.addf %v{i}, %v0 : f32\n" for i in range(100_000))
    text = f"func.func @f(%v0: f32) -> f32 {{\n{lines}  return %v100000 : f32\n}}\n"
    fails(text, r"took more than 1 seconds \(LINATTN_COMPILE_SECONDS\)")
    monkeypatch.setenv("LINATTN_COMPILE_SECONDS", "soon")
    # A text of its own: the cache answers for those compiled before.
    fails(module(attributes=" attributes {limit = 1}"), "expected LINATTN_COMPILE_SECONDS to be a number from 1 to 1000000, but got 'soon'")


SYSTEM = """llvm.func @system(!llvm.ptr) -> i32
llvm.mlir.global internal constant @s("true\\00")
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %p = llvm.mlir.addressof @s : !llvm.ptr
  %r = llvm.call @system(%p) : (!llvm.ptr) -> i32
  return %x : tensor<4xf32>
}
"""
ASSEMBLY = module('  llvm.inline_asm has_side_effects "nop", "" : () -> ()\n')
ABORT = module('  %c = arith.constant false\n  cf.assert %c, "no"\n')


def test_foreign_functions_are_refused():
    fails(SYSTEM, "^<string>:1:1: error: expected no op of the llvm dialect .* but got 'llvm.func'")
    fails(ASSEMBLY, "^<string>:2:3: error: expected no op of the llvm dialect .* but got 'llvm.inline_asm'")
    fails(ABORT, "expected a module that is not trusted to call no function outside of itself, but got 'abort'")
    fails(
        module("  func.call @getpid() : () -> ()\n", before="func.func private @getpid()\n"),
        "'getpid' is only declared",
    )


def test_trusted_text_may_call_them_and_others_may_not_afterwards():
    x = np.arange(4, dtype=np.float32)
    for text in (SYSTEM, ASSEMBLY):
        np.testing.assert_array_equal(linattn.compile(text, trusted=True)(x), x)
        fails(text, "expected no op of the llvm dialect")
    with pytest.raises(TypeError, match="trusted: expected True or False, but got 'yes'"):
        linattn.compile(module(), trusted="yes")


def test_children_of_many_threads():
    x = np.arange(4, dtype=np.float32)
    results = []

    def compile_both(i):
        text = module(attributes=f" attributes {{a = {i}}}")
        results.append(linattn.compile(text, trusted=i % 2 == 0)(x).tolist())

    threads = [threading.Thread(target=compile_both, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [x.tolist()] * 12


def test_hosts_that_ignore_their_children():
    program = f"import signal, linattn; signal.signal(signal.SIGCHLD, signal.SIG_IGN); linattn.compile({module()!r})"
    subprocess.run([sys.executable, "-c", program], check=True, env=None)
