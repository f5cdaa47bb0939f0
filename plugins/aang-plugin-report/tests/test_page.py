"""The page, in a real browser."""

from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

pytestmark = pytest.mark.release


def opened(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())
    drawn = "return document.documentElement.dataset.drawn === 'yes'"
    WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(drawn))


def test_it_loads_alone_and_draws_everything(browser: Any, run: Path) -> None:
    """No network, no message on the console, every plot drawn and within the page."""
    page = run / "report.html"
    assert page.stat().st_size < 5_000_000
    opened(browser, page)
    assert browser.get_log("browser") == []
    charts = browser.find_elements(By.CSS_SELECTOR, "[data-chart]")
    keys = {chart.get_attribute("data-chart") for chart in charts}
    assert keys == {
        "scores",
        "losses",
        "weights",
        *(f"factors-{stage}" for stage in ("transform", "representation", "output")),
        "ranking",
        "cosines",
        "confusion-dev",
        "confusion-test",
    }
    for chart in charts:
        assert chart.find_elements(By.CSS_SELECTOR, "svg.main-svg"), chart.get_attribute("id")
        assert chart.get_attribute("role") == "img"
        assert len(chart.get_attribute("aria-label")) > 40
    curves = "#chart-factors-transform .scatterlayer path.js-line"
    assert len(browser.find_elements(By.CSS_SELECTOR, curves)) == 4
    counts = browser.find_elements(By.CSS_SELECTOR, "#chart-confusion-test .heatmap-label")
    assert sum(int(count.text) for count in counts) == 48
    inside = "return document.documentElement.scrollWidth <= window.innerWidth"
    assert browser.execute_script(inside)


def test_labels_stay_text(browser: Any, run: Path, hostile_labels: set[str]) -> None:
    """A label that is a script, and one that breaks out of an attribute, are shown as they are."""
    opened(browser, run / "report.html")
    assert browser.execute_script("return window.caught") is None
    cells = {cell.text for cell in browser.find_elements(By.CSS_SELECTOR, "td")}
    assert hostile_labels <= cells
    assert not browser.find_elements(By.CSS_SELECTOR, "img")
    scripts = browser.execute_script(
        "return [...document.scripts].filter(s => s.textContent.startsWith('alert')).length"
    )
    assert scripts == 0
    assert drawn_text(browser, "#chart-confusion-dev .ytick text") == hostile_labels


def phone(browser: Any) -> bool:
    return bool(browser.execute_script("return window.innerWidth") < 600)


def drawn_text(browser: Any, selector: str) -> set[str]:
    found = browser.find_elements(By.CSS_SELECTOR, selector)
    return {element.get_attribute("textContent") for element in found}


def test_labels_in_charts_do_not_act(browser: Any, run: Path, hostile_labels: set[str]) -> None:
    """No link, style, line break or formula comes from a label, in axes and in a tooltip."""
    opened(browser, run / "report.html")
    assert drawn_text(browser, "#chart-confusion-test .xtick text") <= hostile_labels
    link = next(label for label in hostile_labels if label.startswith("<a "))
    browser.execute_script(HOVER, sorted(hostile_labels).index(link))
    tooltip = "#chart-confusion-test .hovertext text.nums"
    WebDriverWait(browser, 60).until(lambda driver: drawn_text(driver, tooltip))
    (text,) = drawn_text(browser, tooltip)
    assert text.startswith(f"true {link}predicted {link}: ")
    assert browser.execute_script(ACTS) == []


HOVER = """const place = {xval: arguments[0], yval: arguments[0]};
Plotly.Fx.hover('chart-confusion-test', place, 'xy');"""
ACTS = """return [...document.querySelectorAll('[data-chart] svg')].flatMap((svg) => [
    ...svg.querySelectorAll('a, img, script, foreignObject, text[style*="bold"]'),
    ...svg.querySelectorAll('tspan[style*="bold"], tspan[style*="italic"], .ytick tspan'),
]).map((element) => element.outerHTML)"""
"""Elements of charts that come from markup or formulas; the names of ticks have one line each."""


def test_tables_sort(browser: Any, run: Path) -> None:
    """A click sorts, another turns it round; numbers by value and names by letters."""
    opened(browser, run / "report.html")
    table = next(
        table
        for table in browser.find_elements(By.CSS_SELECTOR, "table")
        if "last half" in table.find_element(By.CSS_SELECTOR, "thead").text
    )
    buttons = table.find_elements(By.CSS_SELECTOR, "th button")

    def column(index: int) -> list[str]:
        cells = table.find_elements(By.CSS_SELECTOR, f"tbody td:nth-child({index + 1})")
        return [cell.get_attribute("data-value") or cell.text for cell in cells]

    names = column(0)
    assert len(names) == 24
    browser.execute_script("arguments[0].click()", buttons[2])
    values = [float(value) for value in column(2)]
    assert values == sorted(values)
    browser.execute_script("arguments[0].click()", buttons[2])
    assert [float(value) for value in column(2)] == sorted(values, reverse=True)
    assert sorted(column(0)) == sorted(names)
    browser.execute_script("arguments[0].click()", buttons[0])
    assert column(0) == sorted(names)
    header = table.find_elements(By.CSS_SELECTOR, "th")[0]
    assert header.get_attribute("aria-sort") == "ascending"


def test_what_is_out_of_sight_is_told(browser: Any, run: Path) -> None:
    """A hint above whatever is wider than the window, and no other; no word of a head is broken."""
    opened(browser, run / "report.html")
    wide = (
        "return [...document.querySelectorAll('.wide')].map((w) => [w.scrollWidth > w.clientWidth"
    )
    wide += " + 1, w.previousElementSibling.offsetHeight > 0])"
    found = browser.execute_script(wide)
    assert all(cut == hinted for cut, hinted in found)
    assert any(cut for cut, _ in found) == phone(browser)
    lines = (
        "return [...document.querySelectorAll('th button')].map((b) => b.getClientRects().length)"
    )
    assert set(browser.execute_script(lines)) == {1}


def test_zero_has_the_colour_of_the_page_and_tooltips_are_short(browser: Any, run: Path) -> None:
    """In both themes what stands out is not zero; three decimals, one box for all curves."""
    opened(browser, run / "report.html")
    panel = "return getComputedStyle(document.documentElement).getPropertyValue('--panel').trim()"
    for _ in range(2):
        scale = "return document.getElementById('chart-cosines').data[0].colorscale"
        middle = [colour for place, colour in browser.execute_script(scale) if place == 0.5]
        assert middle == [browser.execute_script(panel)]
        browser.find_element(By.ID, "theme").click()
    layout = "return document.getElementById('chart-factors-output').layout.hovermode"
    assert browser.execute_script(layout) == "x unified"
    curves = (
        "return document.getElementById('chart-factors-output').data.map((t) => t.hovertemplate)"
    )
    assert set(browser.execute_script(curves)) == {"%{y:.3f}"}
    ends = "return document.getElementById('chart-weights').layout.yaxis.range"
    assert browser.execute_script(ends)[0] == 0


def test_both_themes(browser: Any, run: Path) -> None:
    """It begins in the scheme of the system, and the button changes it, plots included."""
    opened(browser, run / "report.html")

    def paper() -> str:
        body = browser.find_element(By.TAG_NAME, "body")
        return str(body.value_of_css_property("background-color"))

    def mark() -> str:
        line = browser.find_element(By.CSS_SELECTOR, "#chart-scores .shapelayer path")
        return str(line.value_of_css_property("stroke"))

    def ink() -> str:
        text = browser.find_element(By.CSS_SELECTOR, "#chart-scores .xtick text")
        return str(text.value_of_css_property("fill"))

    first = paper(), ink(), mark()
    browser.find_element(By.ID, "theme").click()
    second = paper(), ink(), mark()
    assert all(here != there for here, there in zip(first, second, strict=True))
    browser.find_element(By.ID, "theme").click()
    assert (paper(), ink(), mark()) == first
