"""A figure's page with menus: another choice is drawn at once, and stays when the screen turns dark."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from reporting_records import sparse_study, write_records

from longca.cases import Case
from longca.reporting.figures.drawing import write_figure
from longca.reporting.names import figure_file
from longca.reporting.tables import write_table

NAME = "sparse_throughput_over_density"
# 2 blocks x 2 passes x 3 lengths x 4 shapes of heads: 48 panels, 12 of one shape.
STUDY = sparse_study(
    blocks={"uniform_block": [64, 128]},
    seqlens=[2048, 4096, 8192],
    heads=["4-2", "4-4", "8-4", "8-8"],
    passes=["forward", "backward"],
)
LINES = "return document.querySelectorAll('.mark-line path').length"


def told(case: Case) -> dict[str, Any]:
    """flex has no numbers with 8 key-value heads."""
    lost = case.kernel == "flex" and case.kv_heads == 8
    return {"status": "unsupported"} if lost else {"density": case.density_nominal}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a figure of synthetic records."""
    folder, before = tmp_path_factory.mktemp("figure"), Path.cwd()
    os.chdir(folder)
    try:
        write_records(STUDY, told)
        write_table(STUDY, "sparse")
        write_figure(STUDY, NAME)
        yield figure_file(STUDY, NAME, "html").resolve().as_uri()
    finally:
        os.chdir(before)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_choice_is_drawn_and_stays_when_the_screen_turns_dark(browser, page: str, width: int) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select, WebDriverWait

    def until(script: str, wanted: object) -> None:
        WebDriverWait(browser, 60).until(lambda _: browser.execute_script(script) == wanted)

    def turn(scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    turn("light")
    browser.get_log("browser")
    browser.get(page)
    until(LINES, 2 * 12)
    heads = browser.find_element(By.CSS_SELECTOR, ".menus select")
    assert heads.accessible_name == "heads"
    assert [option.text for option in Select(heads).options] == ["4-2", "4-4", "8-4", "8-8"]
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    Select(heads).select_by_visible_text("8-8")
    until(LINES, 12)
    drawn = "return document.querySelector('#figure svg').clientWidth"
    as_wide = browser.execute_script(drawn)
    turn("dark")
    until("return document.querySelector('.role-axis-title text').getAttribute('fill')", "#E4E7EB")
    until("return [...document.querySelectorAll('.menus select')].map((menu) => menu.value)", ["8-8"])
    until(LINES, 12)
    assert browser.execute_script(drawn) == as_wide
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    folder = os.environ.get("LONGCA_SCREENSHOTS")
    if folder:
        browser.save_screenshot(str(Path(folder, f"menus_{width}.png")))
