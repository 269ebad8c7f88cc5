"""The report as a reader has it: in a browser without a network, on a desk and a phone, in the light and the dark."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from reporting_records import dense_study, write_records

from longca.cases import Case
from longca.files import write_atomically
from longca.masks.mask import draw_mask, mask_to_json
from longca.reporting.figures.drawing import draw
from longca.reporting.names import figure_file, figure_names, pictured_masks, table_names
from longca.reporting.report import write_report
from longca.reporting.tables import write_table

STUDY = dense_study(
    kernels=["naive", "sdpa", "segments"], seqlens=[512, 1024, 2048], passes=["forward", "backward"]
)
SCREENS = {"light": (1280, 900), "dark": (1280, 900), "phone": (390, 844)}


def told(case: Case) -> dict[str, object]:
    """sdpa is fastest, naive has no memory at the longest, segments crashes once with what would be a script."""
    if case.kernel == "naive" and case.seqlen == 2048:
        return {"status": "out_of_memory", "reason": "64 GiB asked"}
    if case.kernel == "segments" and case.seqlen == 512 and case.pattern == "causal":
        return {"status": "crashed", "reason": "</script><script>document.title = 'run'</script>"}
    speed = {"naive": 1, "sdpa": 4, "segments": 2}[case.kernel]
    return {"milliseconds": case.seqlen / 512 / speed, "area": case.seqlen**2 / 2.0, "density": 0.5}


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a report of synthetic records."""
    folder, before = tmp_path_factory.mktemp("report"), Path.cwd()
    os.chdir(folder)
    try:
        write_records(STUDY, told)
        for name in table_names(STUDY):
            write_table(STUDY, name)
        for file in pictured_masks(STUDY):
            write_atomically(file, mask_to_json(draw_mask(file.parts[-3], int(file.parts[-2]))))
        for name in figure_names(STUDY):
            write_atomically(figure_file(STUDY, name, "json"), json.dumps(draw(STUDY, name)))
        yield write_report(STUDY, Path("tiny.yaml")).resolve().as_uri()
    finally:
        os.chdir(before)


class Reader:
    """Someone who reads the report on a screen."""

    def __init__(self, browser, report: str, screen: str) -> None:
        width, height = SCREENS[screen]
        self.browser = browser
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": screen == "phone"}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if screen == "dark" else "light"}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        browser.get_log("browser")
        browser.get(report)

    def run(self, script: str, *arguments: object):
        """What a script of the page returns."""
        return self.browser.execute_script(script, *arguments)

    def until(self, script: str, *arguments: object):
        """What a script of the page returns once that is true."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.browser, 60).until(lambda _: self.run(script, *arguments))

    def draw_figures(self) -> None:
        """Come by every figure, and wait until it is drawn."""
        self.run("document.documentElement.style.scrollBehavior = 'auto'")
        for name in figure_names(STUDY):
            self.run("document.getElementById(arguments[0]).scrollIntoView()", f"figure-{name}")
            self.until("return document.querySelector(`#figure-${arguments[0]} .chart svg`) !== null", name)

    def click(self, element) -> None:
        """Move to an element and click there: what is hit is what a reader hits."""
        from selenium.webdriver import ActionChains

        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.browser).move_to_element(element).click().perform()

    @property
    def errors(self) -> list[str]:
        """The errors on the console."""
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.mark.parametrize("screen", SCREENS)
def test_it_opens_without_a_network_and_without_an_error(
    browser, report: str, screen: str, tmp_path: Path
) -> None:
    reader = Reader(browser, report, screen)
    reader.draw_figures()
    marks = "return document.querySelectorAll('#figure-dense_throughput_over_length .chart .mark-symbol path').length"
    assert reader.run(marks) >= 2 * 2 * 8
    assert reader.run("return performance.getEntriesByType('resource').length") == 0
    assert reader.run("return document.title") == "longca: study tiny"
    # Nothing wider than the screen: a wide table scrolls in a frame of its own.
    assert reader.run("return document.documentElement.scrollWidth <= innerWidth")
    ground = reader.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(16, 19, 23)") == (screen == "dark")
    folder = Path(os.environ.get("LONGCA_SCREENSHOTS", tmp_path))
    reader.run("scrollTo(0, 0)")
    assert browser.save_screenshot(str(folder / f"{screen}.png"))
    assert reader.errors == []


def test_a_figure_turns_dark_with_the_screen(browser, report: str) -> None:
    reader = Reader(browser, report, "light")
    reader.draw_figures()
    title = "return document.querySelector('#figure-peak_memory .chart .role-axis-title text').getAttribute('fill')"
    assert reader.run(title) != "#E4E7EB"
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})
    assert reader.until(f"{title} === '#E4E7EB'")


def test_a_pick_in_the_legend_fades_the_other_kernels(browser, report: str) -> None:
    reader = Reader(browser, report, "light")
    reader.draw_figures()
    opacities = (
        "return [...document.querySelectorAll('#figure-dense_throughput_over_length .chart .mark-line path')]"
        ".map((line) => line.getAttribute('opacity') + line.getAttribute('stroke'))"
    )
    assert {text.partition("#")[0] for text in reader.run(opacities)} == {"1"}
    from selenium.webdriver.common.by import By

    labels = browser.find_elements(
        By.CSS_SELECTOR, "#figure-dense_throughput_over_length .role-legend-label text"
    )
    reader.click(next(label for label in labels if label.text == "sdpa"))
    assert reader.until(f"{opacities}.some((text) => text.startsWith('0.15'))")
    assert {text.partition("#")[2] for text in reader.run(opacities) if text.startswith("1#")} == {"E69F00"}


def test_a_table_is_sorted_from_its_header_with_the_keyboard_too(browser, report: str) -> None:
    from selenium.webdriver.common.keys import Keys

    reader = Reader(browser, report, "light")
    # What is drawn above it would move the header away from under the pointer.
    reader.draw_figures()
    column = (
        "const table = document.querySelector('#tables table.sortable');"
        "const at = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === arguments[0]);"
    )
    texts = f"{column} return [...table.tBodies[0].rows].map((row) => row.cells[at].textContent.trim())"
    before = reader.run(texts, "naive")
    button = reader.run(f"{column} return table.tHead.rows[0].cells[at].querySelector('button')", "naive")
    reader.click(button)
    largest_first = reader.run(texts, "naive")
    numbers = [float(text) for text in largest_first if text != "out of memory"]
    assert len(numbers) == 4 and numbers == sorted(numbers, reverse=True)
    assert largest_first[4:] == ["out of memory"] * 2 == [text for text in before if text == "out of memory"]
    assert reader.run(f"{column} return table.tHead.rows[0].cells[at].ariaSort", "naive") == "descending"
    button.send_keys(Keys.ENTER)
    assert [float(text) for text in reader.run(texts, "naive")[:4]] == sorted(numbers)
    # A row stays whole: the same patterns and lengths go with the same numbers.
    assert sorted(zip(reader.run(texts, "Pattern"), reader.run(texts, "naive"), strict=True)) == sorted(
        zip(["full"] * 3 + ["causal"] * 3, before, strict=True)
    )


def test_a_table_is_filtered_by_words(browser, report: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    reader = Reader(browser, report, "phone")
    field = browser.find_element(By.CSS_SELECTOR, "#tables .filter input")
    field.send_keys("causal 2048")
    shown = (
        "return [...document.querySelector('#tables table.sortable').tBodies[0].rows]"
        ".filter((row) => row.offsetParent !== null).map((row) => row.cells[0].textContent + row.cells[1].textContent)"
    )
    assert reader.run(shown) == ["causal2048"]
    assert browser.find_element(By.CSS_SELECTOR, "#tables .filter output").text == "1 of 6 rows"
    field.send_keys(Keys.CONTROL, "a", Keys.BACKSPACE)
    assert len(reader.run(shown)) == 6


def test_the_contents_list_leads_to_every_part_and_the_keyboard_to_the_findings(browser, report: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    reader = Reader(browser, report, "light")
    parts = reader.run("return [...document.querySelectorAll('main > section')].map((part) => part.id)")
    links = reader.run(
        "return [...document.querySelectorAll('nav > ol > li > a')].map((link) => link.hash.slice(1))"
    )
    assert links == parts and len(parts) >= 8
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB, Keys.ENTER)
    assert reader.until("return location.hash") == "#findings"


def test_advice_is_of_what_is_chosen(browser, report: str) -> None:
    reader = Reader(browser, report, "light")
    names = "return [...document.querySelectorAll('#advice-ranking tbody tr')].map((row) => row.cells[0].textContent)"
    assert reader.run(names) == ["sdpa", "segments", "naive"]
    choose = (
        "const select = document.querySelector(`#advice-question [name=${arguments[0]}]`);"
        "select.value = arguments[1]; select.dispatchEvent(new Event('change', {bubbles: true}));"
    )
    reader.run(choose, "pattern", "causal")
    assert reader.run(names) == ["sdpa", "naive", "segments"]
    why = "return [...document.querySelectorAll('#advice-ranking tbody tr')].at(-1).lastChild.textContent"
    assert reader.run(why).startswith("forward: crashed: </script>")
    reader.run(choose, "seqlen", "2048")
    assert reader.run(names) == ["sdpa", "segments", "naive"]
    assert reader.errors == []
