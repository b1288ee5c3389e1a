"""Models of transformers with linattn's functions in the place of their own."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import linattn.transformers as lt  # noqa: E402
from transformers_models import MODELS, make_model, make_tokens  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    lt.disable()


@pytest.mark.parametrize("name", MODELS)
def test_logits(name):
    model = make_model(name)
    tokens, mask = make_tokens()
    with torch.no_grad():
        expected = model(tokens, attention_mask=mask).logits
        with lt.enabled():
            found = model(tokens, attention_mask=mask).logits
            taken = [entry.target for entry in lt.status()[name] if entry.taken]
    assert taken
    assert (found - expected).abs().max() <= 1e-4
