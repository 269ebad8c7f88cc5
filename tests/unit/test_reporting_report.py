"""The report: one page that needs nothing beside it, says what the records say and lets no text of theirs act."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from reporting_records import dense_study, write_records

from longca.cases import Case
from longca.errors import LongcaError
from longca.files import write_atomically
from longca.masks.mask import draw_mask, mask_to_json
from longca.reporting.figures.drawing import draw
from longca.reporting.names import figure_file, figure_names, pictured_masks, table_names
from longca.reporting.overhead import overhead, read_jobs
from longca.reporting.report import write_report
from longca.reporting.tables import write_table
from longca.study.model import Study

HOSTILE = "</script><script>alert(1)</script> <img src=x onerror=alert(2)>"
JOBS = Path("results/tiny/jobs/dense/auto")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Page(HTMLParser):
    """What a page holds: its tags with their attributes, and its text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.text += data


def write_job(series: str, lines: list[str]) -> None:
    """Write the account of a series' jobs."""
    file = JOBS / f"{series}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(lines))


def job(**changes: object) -> str:
    """One line of a job's account: 10 s, of which 8 measuring after 2."""
    account = {
        "series": "dense/auto/naive/full/4-2",
        "started_at": "2026-01-01T00:00:00Z",
        "wall_s": 10.0,
        "to_first_measurement_s": 2.0,
        "measuring_s": 8.0,
        "measured_cases": 4,
        "kept_cases": 0,
    }
    return json.dumps(account | changes) + "\n"


def report(study: Study, partial: bool = False) -> str:
    """Write tables, figures and report, and return the page."""
    for name in table_names(study):
        write_table(study, name, partial)
    for file in pictured_masks(study):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(mask_to_json(draw_mask(file.parts[-3], int(file.parts[-2]))))
    for name in figure_names(study):
        write_atomically(figure_file(study, name, "json"), json.dumps(draw(study, name)))
    return write_report(study, Path("config/tiny study.yaml")).read_text()


def hostile(case: Case) -> dict[str, object]:
    """naive crashes with a reason, on a machine with a name, that would be scripts of their own."""
    if case.kernel == "naive":
        return {"status": "crashed", "reason": HOSTILE}
    return {"environment": {"device": HOSTILE, "library": HOSTILE}, "backend": HOSTILE}


def test_text_of_records_is_text_in_the_page() -> None:
    write_records(dense_study(), hostile)
    page = report(dense_study())
    found = Page(page)
    assert not [
        attributes for _, attributes in found.tags if any(name.startswith("on") for name in attributes)
    ]
    assert "img" not in {tag for tag, _ in found.tags}
    assert found.text.count(HOSTILE) >= 4
    # Two scripts of the page's own, one of the rankings, and one a figure.
    assert sum(tag == "script" for tag, _ in found.tags) == 3 + len(figure_names(dense_study()))


def test_the_page_opens_offline_and_its_contents_list_leads_somewhere() -> None:
    write_records(dense_study())
    page = report(dense_study())
    found = Page(page)
    for _, attributes in found.tags:
        for name in ("src", "href", "action", "data", "poster"):
            assert (attributes.get(name) or "#").startswith("#")
    assert not re.search(r"@import|url\(", re.search(r"<style>(.*?)</style>", page, re.S)[1])  # type: ignore[index]
    targets = {attributes["href"] for tag, attributes in found.tags if tag == "a"}
    assert {f"#{attributes['id']}" for _, attributes in found.tags if "id" in attributes} >= targets
    assert len(targets) >= 12
    assert len(page.encode()) < 10e6
    assert page.count("window.vegaEmbed=") == 1


def test_the_page_says_what_was_asked_seen_and_where() -> None:
    study = dense_study(seqlens=[512, 1024])
    write_job("naive/full/4-2", [job()])

    def change(case: Case) -> dict[str, object]:
        if case.kernel == "naive" and case.seqlen == 1024:
            return {"status": "out_of_memory", "reason": "64 GiB asked"}
        return {"milliseconds": 2.0 if case.kernel == "naive" else 1.0}

    write_records(study, change)
    text = " ".join(Page(report(study)).text.split())
    for said in (
        "8 cases: 6 ok 2 out of memory",
        "full: sdpa at 512 tokens, 2.00 times as fast as naive (0.0671 TFLOP/s); "
        "sdpa at 1024 tokens, the only one with a number (0.268 TFLOP/s).",
        "naive: out of memory on every pattern at 1024 tokens: 64 GiB asked",
        "a CPU, 2 threads",
        "2.13.0",
        "kernels: [naive, sdpa]",
        "fingerprint of sdpa",
        "snakemake results/tiny/figures/support.html --profile profiles/local --configfile 'config/tiny study.yaml'",
        "1 job, 0 without a case to time, measured 4 cases. They took 10 s of wall time, 80% of it measuring.",
    ):
        assert said in text, said


def test_what_a_figure_is_of_is_text_that_wraps_and_no_part_of_the_picture() -> None:
    write_records(dense_study())
    text = " ".join(Page(report(dense_study())).text.split())
    assert (
        "Dense attention: throughput over length heads 4-2, head dimension 64, float32, a CPU, 2 threads "
        "measured on a CPU, 2 threads, torch 2.13.0 points: median; bars: p20 to p80 of latency" in text
    )


def test_when_a_machine_measured_is_from_first_to_last() -> None:
    write_records(dense_study(), lambda case: {"measured_at": f"2026-01-0{len(case.pattern)}T00:00:00Z"})
    text = Page(report(dense_study())).text
    assert "2026-01-04T00:00:00Z to 2026-01-06T00:00:00Z" in text


def test_what_a_machine_says_has_its_unit() -> None:
    environment = {"device": "a GPU", "before": {"sm_clock_mhz": 1845, "power_w": 300.5}, "git_revision": "c"}
    write_records(dense_study(), lambda case: {"environment": environment})
    text = " ".join(Page(report(dense_study())).text.split())
    for said in ("before sm clock (MHz)1845", "before power (W)300.5", "git revision"):
        assert said in text, said


def test_a_report_made_early_says_not_measured() -> None:
    text = " ".join(Page(report(dense_study(), partial=True)).text.split())
    assert "4 not measured" in text
    assert "Nothing is measured yet." in text
    assert "No job has timed anything yet." in text


def test_the_same_results_give_the_same_page() -> None:
    write_records(dense_study())
    assert report(dense_study()) == report(dense_study())


def test_a_figure_that_is_not_there_is_named() -> None:
    write_records(dense_study())
    for name in table_names(dense_study()):
        write_table(dense_study(), name)
    with pytest.raises(LongcaError, match=r"figures/dense_throughput_over_length.json: is not there"):
        write_report(dense_study(), Path("config/tiny.yaml"))
    assert not Path("results/tiny/report.html").exists()


def test_overhead_is_median_worst_and_total() -> None:
    write_job(
        "naive/full/4-2",
        [job(), job(to_first_measurement_s=None, measuring_s=0.0, measured_cases=0, wall_s=2.0)],
    )
    spent = {"importing_s": 4.0, "preparing_s": 5.0, "verifying_s": 2.0, "control_s": 1.0}
    write_job("sdpa/full/4-2", [job(series="slow", to_first_measurement_s=5.0, wall_s=20.0, **spent)])
    write_job("sdpa/causal/4-2", [job(series="other", to_first_measurement_s=3.0, wall_s=8.0)])
    assert overhead(read_jobs(dense_study())) == [
        "4 jobs, 1 without a case to time, measured 12 cases. "
        "They took 40 s of wall time, 60% of it measuring.",
        "Starting workers and importing libraries took 4 s, preparing and compiling 5 s, controls 1 s. "
        "Of the 30 s left, 80% went into measuring; checking results took 2 s.",
        "From a job's start to its first measurement: 3.0 s at the median, 5.0 s at worst (slow).",
        "Share of a job's wall time spent measuring: 80% at the median, 40% at worst (slow).",
    ]


def test_lines_that_are_no_account_are_skipped_and_told() -> None:
    write_job("naive/full/4-2", [job(), job()[:30]])
    assert overhead(read_jobs(dense_study()))[-1] == (
        "Left out of this: 1 line that is no whole account of a job, "
        "first results/tiny/jobs/dense/auto/naive/full/4-2.jsonl:2."
    )
    # A killed writer's torn line that another run wrote on, another version's line, bytes that are no text.
    write_job("naive/full/4-2", [job(), job()[:30] + job(), '{"series": "x"}\n', job()])
    with (JOBS / "naive/full/4-2.jsonl").open("ab") as lines:
        lines.write(b"\xff\x00\n" + job().encode())
    accounts = read_jobs(dense_study())
    assert len(accounts.jobs) == 3
    assert [place.rpartition(":")[2] for place in accounts.skipped] == ["2", "3", "5"]
    write_records(dense_study())
    text = " ".join(Page(report(dense_study())).text.split())
    assert "3 jobs, 0 without a case to time, measured 12 cases." in text
    assert "Left out of this: 3 lines that are no whole account of a job, first results/tiny/jobs/" in text


def test_accounts_that_are_whole_tell_of_nothing_skipped() -> None:
    write_job("naive/full/4-2", [job(), "\n", job()])
    accounts = read_jobs(dense_study())
    assert (len(accounts.jobs), accounts.skipped) == (2, [])
    assert not any("Left out" in sentence for sentence in overhead(accounts))
