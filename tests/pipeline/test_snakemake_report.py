"""Snakemake's own report: figures and tables in it, each with its caption; and what an edited theme makes anew."""

from workspace import Workspace


def test_it_holds_figures_and_tables_with_their_captions(workspace: Workspace) -> None:
    workspace.succeed("--report", "snakemake.html")
    page = (workspace.folder / "snakemake.html").read_text()
    for name in ("dense_throughput_over_length", "roofline", "report.html", "dense.csv"):
        assert name in page, name
    for caption in (
        "Median throughput with p20 to p80, a panel a pattern and pass.",
        "Throughput of the dense kernels by pattern and length.",
        "All of the study on one page that opens offline",
    ):
        assert caption in page, caption


def test_a_changed_theme_redraws_figures_and_report_and_nothing_else(workspace: Workspace) -> None:
    workspace.edit("workflow/longca/reporting/figures/theme.py", '"#0072B2"', '"#0072B3"')
    planned = workspace.succeed("all", "-n").jobs
    assert set(planned) == {"all", "figure", "report"}
    assert planned["figure"] == len(list(workspace.result("figures").glob("*.json")))
