"""One small run whose labels try to get out of the page, and a browser."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aang_core.cli import main
from tests.one_layer_encoder import write_one_layer_encoder

EVIL = "<script>alert(1)</script>"
QUOTED = "\"><img src=x onerror='window.caught=1'>"
ACTING = (
    "<b>bold</b>",
    '<a href="https://example.org">link</a>',
    "<i>x</i>",
    "one<br>line",
    "&lt;",
    "$x^2$",
)
"""What plotly acts upon, unlike other tags."""

LABELS = (EVIL, QUOTED, *ACTING, "plain")


@pytest.fixture(scope="session")
def hostile_labels() -> set[str]:
    """The names of all classes; all but one would act if they were not text."""
    return set(LABELS)


def train(*arguments: object) -> None:
    with pytest.raises(SystemExit) as end:
        main(["train", *map(str, arguments)])
    assert not end.value.code


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory, report_encoder: Path) -> Path:
    """Twelve steps of factored on td, over classes with names that are HTML or formulas."""
    folder = tmp_path_factory.mktemp("report")
    lines = []
    for i in range(48):
        label = LABELS[i % len(LABELS)]
        words = ("alpha beta", "gamma delta", "omega psi")[i % 3]
        lines.append(json.dumps({"text": f"{words} number {i} of {EVIL}", "label": label}))
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    train(
        *("--train", folder / "train.jsonl", "--test", folder / "train.jsonl"),
        *("--space", "td", "--weighter", "factored"),
        *("--model", report_encoder, "--max-length", 24, "--steps", 12, "--eval-every", 3),
        *("--batch-size", 8, "--aux-batch-size", 8, "--dev-batch-size", 8),
        *("--out", folder / "run", "--quiet", "--json"),
    )
    return folder / "run"


@pytest.fixture(scope="session")
def report_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_one_layer_encoder(folder)
    return folder


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMEDRIVER = shutil.which("chromedriver")


@pytest.fixture(params=[(1200, False), (400, True)], ids=["wide", "phone"])
def browser(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Headless Chromium at two widths, in a light and a dark scheme, without a network."""
    if CHROMIUM is None or CHROMEDRIVER is None:
        pytest.skip("needs chromium and chromedriver")
    from selenium import webdriver

    width, dark = request.param
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
        *("--disable-sync", f"--window-size={width},900", f"--user-data-dir={tmp_path / 'user'}"),
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(CHROMEDRIVER))
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    yield driver
    driver.quit()
