"""A headless Chromium without a network. Skipped where Debian's is not installed; there has to be one in CI."""

import os
import shutil
from collections.abc import Iterator

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture(scope="session")
def browser() -> Iterator["webdriver.Chrome"]:  # noqa: F821
    """A browser that reaches nothing: every address is sent to a proxy that is not there."""
    if not (CHROMIUM and DRIVER):
        if os.environ.get("CI") == "true":
            pytest.fail("CI has no chromium and chromedriver: apt-get install chromium chromium-driver")
        pytest.skip("no chromium and chromedriver here: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--proxy-server=127.0.0.1:9",
        "--window-size=1280,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()
