"""The site of the documents builds without a warning, holds all of them, and loads nothing from a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "docs" / "site" / "mkdocs.yml"
LOADS = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "object": "data",
    "embed": "src",
}
"""Elements whose attribute makes a browser load a file; a link that a reader may follow is none."""

pytestmark = pytest.mark.slow


class Loads(HTMLParser):
    """Collects what a page makes a browser load, and whether something asks for a script that comes from a network."""

    def __init__(self, page: str):
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        if tag in LOADS and named.get(LOADS[tag]):
            self.found.append(named[LOADS[tag]])
        if "mermaid" in (named.get("class") or "").split():
            self.found.append("mermaid: the theme loads its script")
        self.found += re.findall(r"url\(\s*['\"]?([^'\")]+)", named.get("style") or "")


def from_network(found: list[str]) -> list[str]:
    return [each for each in found if re.match(r"(https?:)?//|mermaid", each)]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(CONFIG), "-d", str(folder)]
    environment = {**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_document_and_notebook_is_a_page_and_every_public_name_is_described(site):
    documents = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    notebooks = [path.relative_to(ROOT) for path in (ROOT / "notebooks").glob("*.ipynb")]
    assert notebooks
    missing = [path for path in [*documents, *notebooks] if not (site / path.with_suffix(".html")).exists()]
    assert missing == []
    import bayesjpt

    described = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    assert [name for name in bayesjpt.__all__ if not re.search(rf'id="bayesjpt\.[\w.]*\.{name}"', described)] == []


def test_no_page_and_no_style_sheet_loads_anything_from_a_network(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        assert from_network(Loads(page.read_text(encoding="utf-8")).found) == [], page.name
    for sheet in [*site.rglob("*.css"), *pages]:
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"@import\s*(url\()?\s*['\"]?(https?:)?//", text), sheet.name
        if sheet.suffix == ".css":
            assert from_network(re.findall(r"url\(\s*['\"]?([^'\")]+)", text)) == [], sheet.name


def test_pages_need_no_script_for_their_mathematics(site):
    """MathJax would come from a network, so formulas are text."""
    for path in [*(ROOT / "docs").rglob("*.md")]:
        assert not re.search(r"\$\$|\\\(|\\\[", path.read_text(encoding="utf-8")), path.name
    for page in site.rglob("*.html"):
        assert "mathjax/" not in page.read_text(encoding="utf-8").lower(), page.name


def test_links_between_pages_and_their_files_lead_somewhere(site):
    """mkdocs checks the links of documents; this, those of notebooks, and all files that pages load."""

    class Links(Loads):
        def handle_starttag(self, tag, attrs):
            super().handle_starttag(tag, attrs)
            if tag == "a" and dict(attrs).get("href"):
                self.found.append(dict(attrs)["href"])

    for page in sorted(site.rglob("*.html")):
        if page.name == "404.html":
            continue  # its addresses begin at the root of a server
        for target in Links(page.read_text(encoding="utf-8")).found:
            path = target.split("#")[0].split("?")[0]
            if path and not re.match(r"[a-z]+:", path):
                assert (page.parent / path).exists(), f"{page.relative_to(site)}: {target}"


@pytest.mark.parametrize(
    "planted",
    ['<script src="https://a.b/c.js"></script>', '<link rel="preconnect" href="//a.b">', '<p class="mermaid">'],
)
def test_a_planted_resource_of_a_network_is_found(planted):
    assert from_network(Loads(f"<html>{planted}</html>").found)
