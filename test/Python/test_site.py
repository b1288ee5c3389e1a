"""The pages: their links lead somewhere, the site has them all, and it builds where MkDocs is."""

import json
import os
import pathlib
import re
import subprocess

import pytest

import linattn

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "tools/gpu/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]*?)(?:#([^)\s]*))?\)")
SITE = ROOT / "build/site-venv"


def prose(page):
    """The text of a page without its code."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page):
    """The names of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ +(.*)", text, re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page):
    missing = []
    for target, anchor in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path = (page.parent / target) if target else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            missing.append(f"{target}#{anchor}")
    assert not missing


def test_the_site_has_every_page():
    listed = set(re.findall(r"([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    made = {"index.md", "api.md"}
    assert listed - made == {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.is_relative_to(ROOT / "docs")}


def test_the_map_of_texts_names_existing_tests():
    rows = re.findall(r"^\| (?!---|text)(.*?) \|$", (ROOT / "docs/tutorial/README.md").read_text(), re.M)
    assert len(rows) > 25
    for row in rows:
        _, here, tests = row.split(" | ")
        for name in re.findall(r"`linattn\.([\w.]+)", here):
            if name.startswith("torch"):
                continue
            found = linattn
            for part in name.removesuffix(".").split("."):
                found = found if part.startswith("_") else getattr(found, part)
        for file, names in re.findall(r"`(test_\w+\.py)`(?:: ((?:`test_\w+`(?:, )?)+))?", tests):
            source = (ROOT / "test/Python" / file).read_text()
            for name in re.findall(r"test_\w+", names):
                assert f"def {name}(" in source, f"{file}: {name}"


@pytest.mark.skipif(not (SITE / "bin/mkdocs").exists(), reason="no MkDocs: tools/site.sh installs it")
def test_site(tmp_path):
    command = [SITE / "bin/mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    reference = (tmp_path / "api.html").read_text()
    for name in ("linattn.attention", "linattn.report", "linattn.torch.nn.GatedDeltaNet"):
        assert f'id="{name}"' in reference
    assert (tmp_path / "search/search_index.json").exists()


@pytest.mark.skipif(not (SITE / "bin/jupytext").exists(), reason="no jupytext: tools/site.sh installs it")
def test_notebooks(tmp_path):
    subprocess.run([SITE / "bin/python", ROOT / "tools/tutorial.py", "--notebooks", tmp_path], check=True)
    for page in (ROOT / "docs/tutorial").glob("[0-9]*.md"):
        cells = json.loads((tmp_path / f"{page.stem}.ipynb").read_text())["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
        assert [text.strip() for text in code if not text.startswith("%%")] == [block.strip() for block in blocks]
