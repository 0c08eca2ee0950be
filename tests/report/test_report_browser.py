"""Reports in a real browser: no error, no network, readable on a screen of any width, in the dark and on paper.

Skipped without the extra `browser` or a Chromium: the one that ``BAYESJPT_BROWSER`` names, that of Playwright, or the
one on the path.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj

sync_api = pytest.importorskip("playwright.sync_api")

WIDE, NARROW = 1280, 390
SECTIONS = ("look", "columns", "pairs", "parts", "outliers", "gaps", "trust", "again")
EVIL = "<img src=https://example.org/x onerror=alert(1)>"


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    """Return a page of a table whose names and labels ask for the network, were they markup."""
    rng = np.random.default_rng(1)
    kind = np.where(rng.random(120) < 0.5, EVIL, "plain")
    size = (rng.gamma(3.0, 1.0, 120) + 6.0 * (kind == "plain")).round(1)
    frame = pd.DataFrame({"size": size, EVIL: kind, "a_rather_long_name_of_a_column": rng.poisson(9.0, 120)})
    frame["result"] = [f"{a}:{b}" for a, b in rng.integers(0, 5, (120, 2))]
    frame.loc[::7, "size"] = np.nan
    table = bj.as_table(frame)
    post = bj.fit(table, n_structures=2, draws=4, tune=2, seed=1, cores=1, progress=False)
    return post.report(tmp_path_factory.mktemp("page") / "report.html", table=table, name=EVIL)


@pytest.fixture(scope="module")
def browser() -> Iterator:
    with sync_api.sync_playwright() as playwright:
        program = os.environ.get("BAYESJPT_BROWSER")
        if program is None and not Path(playwright.chromium.executable_path).exists():
            program = shutil.which("chromium")
        try:
            started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        except sync_api.Error as error:
            pytest.skip(f"no Chromium: {error.message.splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture
def opened(browser, path, request) -> Iterator:
    """Return the page at a width, and what it said and asked for."""
    page = browser.new_page(viewport={"width": getattr(request, "param", WIDE), "height": 800})
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda sent: asked.append(sent.url))
    page.on("dialog", lambda dialog: (said.append("dialog"), dialog.dismiss()))
    page.goto(path.as_uri())
    yield page, said, asked
    page.close()


@pytest.mark.parametrize("opened", [WIDE, NARROW], indirect=True)
def test_page_shows_its_sections_without_errors_or_network(opened, path, tmp_path):
    page, said, asked = opened
    assert [page.locator(f"#{name} h2").is_visible() for name in SECTIONS] == [True] * len(SECTIONS)
    assert said == []
    assert asked == [path.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    picture = page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert picture[1:4] == b"PNG"
    assert page.locator("img").count() == 0
    assert page.locator("h1").inner_text() == f"{EVIL}: what is in this table?"


def test_any_pair_is_drawn_on_demand(opened):
    page, said, _ = opened
    assert page.locator("#drawn circle").count() > 50
    page.select_option("#across", "0")
    page.select_option("#up", "2")
    told = page.locator("#told").inner_text()
    assert told.startswith("size and a_rather_long_name_of_a_column: 0.")
    names = page.locator("#drawn text[font-size='12']").all_inner_texts()
    assert names == ["size", "a_rather_long_name_of_a_column"]
    n_row = int(told.removesuffix(" rows.").split(" ")[-1])
    assert page.locator("#drawn circle").count() == n_row == 120 - len(range(0, 120, 7))
    page.select_option("#up", "0")
    assert page.locator("#told").inner_text() == "Choose two different columns."
    assert said == []


def test_names_of_many_labels_do_not_cover_each_other(opened):
    page, _, _ = opened
    page.select_option("#across", "3")
    page.select_option("#up", "0")
    drawn = page.locator("#drawn text[text-anchor=middle]")
    boxes = [drawn.nth(k).bounding_box() for k in range(drawn.count() - 2)]  # the last ones are the names of both
    assert 4 <= len(boxes) < 25
    assert all(one["x"] + one["width"] <= other["x"] for one, other in pairwise(boxes))


def test_colours_follow_the_reader_and_paper_is_white(opened):
    page, _, _ = opened
    colour = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(colour)
    page.emulate_media(media="print", color_scheme="dark")
    assert (light, page.evaluate(colour)) == ("rgb(255, 255, 255)", "rgb(255, 255, 255)")
    assert dark != light
    assert page.locator("#pairs table").first.is_visible()
    assert not page.locator("#across").is_visible()


def test_screen_readers_find_names(opened):
    page, _, _ = opened
    assert page.get_by_role("navigation", name="Sections").count() == 1
    assert page.get_by_role("img", name="Distribution of size").count() == 1
    assert page.get_by_role("combobox", name="Across").count() == 1
    assert page.get_by_role("table", name="Missing cells by column").count() == 1
