"""A paper that takes the tables and a figure in: LaTeX sets them without a complaint."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from reporting_records import by_kernel, dense_study, sparse_study, write_records

from longca.files import write_atomically
from longca.kernels.registry import kernel_names
from longca.masks.mask import draw_mask, mask_to_json
from longca.reporting.figures.drawing import write_figure
from longca.reporting.names import pictured_masks, results_of, table_names
from longca.reporting.tables import write_table

PAPER = r"""\documentclass{article}
\usepackage{array,booktabs,longtable,graphicx}
\begin{document}
%s
\end{document}
"""
# Of a library, as such words are: long, with what LaTeX would read as its own.
REASON = "RuntimeError: 100% of q_heads & {k_heads} ~ #1 $x^2$ <fwd> [fault] \\n at /usr/lib/x_y-z.py|30* …"


@pytest.fixture
def pdflatex() -> str:
    """Debian's; skipped where it is not, an error in CI."""
    found = shutil.which("pdflatex")
    if found:
        return found
    if os.environ.get("CI") == "true":
        pytest.fail("CI has no pdflatex: apt-get install texlive-latex-base texlive-latex-recommended")
    pytest.skip("no pdflatex here: apt-get install texlive-latex-base texlive-latex-recommended")


def test_a_paper_takes_in_every_table_and_a_figure(
    pdflatex: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kernels = [*kernel_names("dense")]
    study = dense_study(
        kernels=kernels,
        patterns=["causal", "block_causal_document", "causal_sliding_window"],
        seqlens=[1024, 2048],
        passes=["forward", "backward"],
    )
    study = study.model_copy(update={"sparse": sparse_study(kernels=[*kernel_names("sparse")]).sparse})
    worst = {"relative_error": {"out": 1e-3, "dq": 0.5, "dk": None, "dv": None}}
    write_records(
        study,
        by_kernel(
            naive={"status": "out_of_memory", "reason": REASON},
            sdpa={"flags": ["noisy", "gradients_unverified"]},
            flex={"status": "wrong", "reason": REASON} | worst,
        ),
    )
    for name in table_names(study):
        write_table(study, name)
    for file in pictured_masks(study):
        write_atomically(file, mask_to_json(draw_mask(file.parts[-3], int(file.parts[-2]))))
    write_figure(study, "masks")
    parts = [rf"\input{{{results_of(study)}/tables/{name}.tex}}" for name in table_names(study)]
    parts.append(rf"\includegraphics{{{results_of(study)}/figures/masks.column.pdf}}")
    (tmp_path / "paper.tex").write_text(PAPER % "\n\n".join(parts))
    # How wide a table's columns are is known after a second run, and where it breaks after a third.
    for _ in range(3):
        command = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "paper.log").read_text(errors="replace")
    assert re.findall(r"^(?:.*Warning.*|Overfull.*)$", log, re.MULTILINE) == []
