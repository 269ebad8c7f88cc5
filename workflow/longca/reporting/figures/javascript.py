"""The JavaScript that draws figures on a page, out of the package: nothing is fetched."""

from importlib.metadata import version
from pathlib import Path

import vl_convert

from longca.files import write_atomically


def vega_javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script. Bundling them takes seconds."""
    return vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub lacks the default


def kept_javascript(results: Path) -> str:
    """The same script, kept in the folder of all studies' results: each page is made by a process of its own.

    Its file is named by the package's version; whatever else stands under another name is not read.
    """
    file = results / f".vega-{version('vl-convert-python')}.js"
    if not file.exists():
        write_atomically(file, vega_javascript())
    return file.read_text(encoding="utf-8")
