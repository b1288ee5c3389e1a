"""The lessons run, and print what they show."""

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("tutorial", ROOT / "tools/tutorial.py")
tutorial = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tutorial)


@pytest.mark.parametrize("page", tutorial.pages(), ids=lambda page: page.stem)
def test_lesson(page):
    if "import torch" in page.read_text():
        pytest.importorskip("torch")
    _, differences = tutorial.run(page)
    assert not differences, "\n".join(differences)


def test_agreement_of_printed_numbers():
    assert tutorial.agrees("loss 0.501\n", "loss 0.500\n")
    assert not tutorial.agrees("loss 0.6\n", "loss 0.500\n")
    assert not tutorial.agrees("loss 0.500\n", "gain 0.500\n")
    assert not tutorial.agrees("128 tokens\n", "144 tokens\n")
    assert tutorial.agrees("1.1e-07\n", "1.1e-07\n") and not tutorial.agrees("1.1e-03\n", "1.1e-07\n")


def test_pages_that_print_something_else(tmp_path):
    page = tmp_path / "1-page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\n```python\nx = 2\n```\n")
    text, (difference,) = tutorial.run(page)
    assert "1-page.md:1: expected\n3\nbut got\n2" in difference
    assert text == "```python\nprint(1 + 1)\n```\n\n```text\n2\n```\n\n```python\nx = 2\n```\n"
