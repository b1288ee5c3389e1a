"""Reports: their numbers by formulas of their own, their page in a browser."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import linattn
from linattn import cli

pytest.importorskip("matplotlib")
from linattn._report import _calls, _figures, _measures  # noqa: E402

BROWSER = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
# Says in the page's title what a browser found: errors, and elements beside the screen.
PROBE = """<script>
const problems = [];
addEventListener("error", (event) => problems.push(String(event.message)));
for (const name of ["error", "warn"]) console[name] = (...words) => problems.push(words.join(" "));
addEventListener("load", () => {
  const slider = document.querySelector(".stepper input"), canvas = document.querySelector(".stepper canvas");
  const before = canvas.toDataURL();
  slider.value = 1;
  slider.dispatchEvent(new Event("input"));
  const root = document.documentElement, style = getComputedStyle(document.body);
  document.title = JSON.stringify({
    problems, width: innerWidth, needs: root.scrollWidth, ink: style.color, paper: style.backgroundColor,
    steps: canvas.toDataURL() !== before, token: document.querySelector(".stepper output").textContent,
    loaded: performance.getEntriesByType("resource").length,
    type: Math.min(...[...document.querySelectorAll(".picture:not([hidden]) text")].map((text) => {
      const svg = text.ownerSVGElement, scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      return scale * parseFloat(getComputedStyle(text).fontSize);
    })),
  });
});
</script>"""


@pytest.fixture(scope="module")
def tokens():
    rng = np.random.default_rng(0)
    return [rng.standard_normal((2, 40, 2, 16)).astype(np.float32) for _ in range(3)]


@pytest.fixture(scope="module")
def page():
    torch = pytest.importorskip("torch")
    from linattn.cli.report import hybrid

    model = hybrid(size=32)
    return linattn.report(model, torch.randint(256, (2, 40)))


def record(function, *args, **kwargs):
    function = _calls.watched(function)
    (call,) = _calls.record(lambda: function()(*args, **kwargs))
    return call


# ----------------------------------------------------------------------------
# Numbers
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"causal": True}, {"feature_map": "relu"}, {"causal": True, "weights": "softmax"}])
def test_weights_are_those_of_the_oracle(tokens, options):
    q, k, v = tokens
    call = record(linattn.attention, q, k, v, **options)
    np.testing.assert_allclose(call.weights(), linattn.reference.weights(q, k, **options)[0], atol=2e-6)
    if options.get("weights") == "softmax":
        np.testing.assert_allclose(_measures.softmax_weights(call), call.weights(), atol=1e-6)


def test_weights_of_a_family_are_its_formula(tokens):
    q, k, v = tokens
    g = -np.random.default_rng(1).random(q.shape[:3]).astype(np.float32)
    call = record(linattn.simple_gla, q, k, v, g, output_final_state=True)
    sums = g[0].astype(np.float64).cumsum(0).T
    decays = np.tril(np.exp(np.minimum(sums[:, :, None] - sums[:, None], 0)))
    expected = np.einsum("thd,uhd->htu", q[0], k[0], dtype=np.float64) / 4 * decays
    np.testing.assert_allclose(call.weights(), expected, atol=1e-5)


def test_outputs_that_are_not_sums_of_values_have_no_weights(tokens):
    q, k, v = tokens
    gates = -np.random.default_rng(1).random(v.shape).astype(np.float32)
    with pytest.raises(ValueError):
        record(linattn.gla, q, k, v, gv=gates).weights()


def test_states_are_those_of_the_loop(tokens):
    q, k, v = tokens
    states = record(linattn.retnet, q, k, v).states()
    S, decay = np.zeros((16, 16)), 1 - 2.0**-5
    for t in range(40):
        S = decay * S + np.outer(k[0, t, 0], v[0, t, 0])
        np.testing.assert_allclose(states[t], S, atol=1e-4)


def test_entropy_and_rank():
    uniform = np.full((1, 8, 8), 1 / 8)
    np.testing.assert_allclose(_measures.entropy(uniform), 3)
    np.testing.assert_allclose(_measures.effective_rank(uniform), 1)
    np.testing.assert_allclose(_measures.entropy(np.eye(8)[None]), 0, atol=1e-12)
    np.testing.assert_allclose(_measures.effective_rank(np.eye(8)[None]), 8)


def test_errors_of_random_features_fall(tokens):
    q, k, v = (0.5 * x for x in tokens)
    errors = _measures.feature_errors(record(linattn.attention, q, k, v, causal=True))
    for kind in errors.values():
        mean = kind.mean(1)
        assert mean[-1] < 0.4 * mean[0]


def test_rules_read_their_operands():
    copied, recalled = _measures.copying(32), _measures.overwriting(32)
    assert min(copied["softmax"][1]) > 0.95
    assert copied["sum"][1][0] == 1 and copied["sum"][1][-1] < 0.6
    assert min(recalled["delta"][1]) > 0.98
    assert recalled["sum"][1][-1] < 0.3


def test_growth_of_a_hybrid(tokens):
    q, k, v = tokens
    calls = [record(linattn.retnet, q, k, v), record(linattn.attention, q, k, v, causal=True, weights="softmax")]
    growth = _measures.grow(calls, 1000)
    n = np.array(_measures.CONTEXTS)
    np.testing.assert_allclose(growth.states, 4 * 2 * 16 * 16)
    np.testing.assert_allclose(growth.cache, 2 * 2 * 2 * 16 * n)
    np.testing.assert_allclose(growth.all_softmax, 2 * growth.cache)
    softmax = 2 * np.array([linattn.costs.softmax_flops(t, 16) for t in n])
    np.testing.assert_allclose(growth.flops, softmax + 4 * 2 * 16 * 16 * n + 2000 * n)
    window = record(linattn.attention, q, k, v, causal=True, weights="softmax", window=8)
    assert set(_measures.grow([window], 0).cache) == {2 * 2 * 2 * 16 * 8}


# ----------------------------------------------------------------------------
# The report
# ----------------------------------------------------------------------------


def test_a_model_has_all_pictures(page):
    kinds = {name.split(".")[0] for name in page.figures}
    assert kinds == {"weights", "entropy", "rank", "state", "features", "copy", "recall", "memory", "time", "roofline"}
    assert page.left_out == {"state.4.layer": "softmax keeps all keys and values instead of a state"}
    assert [call.title for call in page.calls][:2] == ["1.layer · LinearAttention", "2.layer · GatedDeltaNet"]
    assert len(page.html.encode()) < 5e6
    assert "passed: select-form" in page.html and "chunks of" in page.html
    assert not re.search(r'(src|href)="?https?:', page.html)


def test_names_of_a_page_are_there_once(page):
    names = re.findall(r'\bid="([^"]+)"', page.html)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_figures_are_files(page, tmp_path, ending):
    path = tmp_path / f"rank.{ending}"
    page.figures["rank"].save(path)
    first = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[ending]
    assert path.read_bytes().startswith(first)
    if ending == "svg":
        texts = "".join(ElementTree.parse(path).getroot().itertext())
        assert "effective rank" in texts
        again = tmp_path / "again.svg"
        page.figures["rank"].save(again)
        assert again.read_bytes() == path.read_bytes()


def test_calls_are_as_before(tokens, page):
    q, k, v = tokens
    assert linattn.attention.__module__ == "linattn._recurrence._attention"
    page = linattn.report(linattn.delta_rule, q, k, v, np.ones((2, 40, 2), np.float32), title="Delta & rule")
    assert "<title>Delta &amp; rule · linattn</title>" in page.html
    assert list(page.figures)[:4] == ["weights", "entropy", "rank", "state"]


def test_calls_above_the_ceiling_of_memory_say_so(tokens):
    call = record(linattn.retnet, *tokens)
    assert "comes closest to this machine's ceiling: 50 %" in _figures.roofline((100, 10), [(call, 4, 20)]).title
    assert "2.5 times above the ceiling of memory: its operands lie in a cache" in _figures.roofline((100, 2), [(call, 4, 20)]).title


def test_figures_of_the_caller_are_shown(tokens):
    page = linattn.report(linattn.retnet, *tokens, curves={"copy": {"mine": ([4, 8], [1.0, 0.5])}})
    assert page.figures["copy"].caption == "Figures of the caller."
    assert "mine" in page.figures["copy"].title


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: linattn.report(3), TypeError, "expected a function or a module, but got int"),
        (lambda: linattn.report(lambda: None), ValueError, "expected a call with queries, keys and values"),
        (lambda: linattn.report(abs, 1, curves={"speed": {}}), ValueError, "but got 'speed'"),
        (lambda: linattn.report(abs, 1, curves={"copy": {"a": ([1], [1, 2])}}), ValueError, "of one length for a"),
        (lambda: _figures.Figure("a", "a", "a", None).save("a.gif"), ValueError, "an ending of .svg, .png or .pdf"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.skipif(BROWSER is None, reason="no Chromium: tools/setup.sh installs chromium-headless-shell")
@pytest.mark.parametrize("width, scheme", [(1200, 1), (390, 1), (390, 0)])
def test_browser(page, tmp_path, width, scheme):
    """Nothing is wider than the screen, type is legible, the slider steps, the theme is the system's."""
    path = tmp_path / "page.html"
    path.write_text(page.html.replace("</head>", PROBE + "</head>"))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", "--virtual-time-budget=5000"]
    command += [f"--blink-settings=preferredColorScheme={scheme}", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.S)
    assert title and title[1].startswith("{"), done.stdout[:2000] + done.stderr
    found = json.loads(title[1].replace("&quot;", '"').replace("&amp;", "&"))
    assert found["problems"] == [] and found["loaded"] == 0
    assert found["width"] == width and found["needs"] <= width
    assert found["steps"] and found["token"] == "1"
    assert found["type"] >= 9
    ink, paper = (sum(map(int, re.findall(r"\d+", found[name])[:3])) for name in ("ink", "paper"))
    assert (ink > paper) == (scheme == 0)


def test_command(page, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(linattn, "report", lambda model, title: (type(model).__name__, title) == ("RetNet", "model") and page)
    pytest.importorskip("torch")
    monkeypatch.setattr(page, "figures", {name: page.figures[name] for name in ("rank", "memory")})
    (tmp_path / "mine.py").write_text(
        "from linattn.torch import nn\ndef model():\n    return nn.RetNet(32, heads=2)\n"
    )
    path = tmp_path / "page.html"
    arguments = ["report", f"{tmp_path}/mine.py:model", "-o", str(path), "--figures", str(tmp_path / "figures"), "--format", "png"]
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out.startswith(f"{path}: 2 pictures")
    assert len(list((tmp_path / "figures").glob("*.png"))) == 2
    assert cli.main(["report", f"{tmp_path}/mine.py:other"]) == 1
    assert "expected other in" in capsys.readouterr().err
