"""An archive: the same bytes each time, a Workflow Run Crate, and no change to it that a check does not name."""

import hashlib
import json
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from archive_study import CONFIG, archived_study, finish_study
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reporting_records import faster
from rocrate.rocrate import ROCrate
from typer.testing import CliRunner

from longca.cli.main import app
from longca.errors import LongcaError
from longca.measure.freezing import freeze_study
from longca.reporting.archive import reading
from longca.reporting.archive.checking import check_archive, other_code
from longca.reporting.archive.contents import CHECKOUT, archive_file, archived_files, code_files
from longca.reporting.archive.crate import METADATA
from longca.reporting.archive.making import make_archive
from longca.reporting.archive.reading import open_archive
from longca.reporting.names import figure_file, results_of, table_file

STUDY = archived_study()
RECORDS = "results/tiny/records/dense/auto/naive/causal/4-2.jsonl"
Entries = dict[str, bytes]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished study and its archive. Not to be changed."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        finish_study(STUDY)
        make_archive(STUDY, CONFIG)
    return folder


@pytest.fixture
def archive(made: Path) -> Path:
    """The archive. Not to be changed."""
    return made / archive_file(STUDY)


def entries_of(archive: Path) -> Entries:
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def repack(target: Path, entries: Entries, listed: bool = True) -> Path:
    """An archive of these entries; `listed`: its metadata has the digests of what is in it, as a forger would."""
    if listed:
        metadata = json.loads(entries[METADATA])
        for entity in metadata["@graph"]:
            if "sha256" in entity:
                data = entries[entity["@id"]]
                entity |= {"sha256": hashlib.sha256(data).hexdigest(), "contentSize": str(len(data))}
        entries = entries | {METADATA: json.dumps(metadata).encode()}
    with zipfile.ZipFile(target, "w") as opened:
        for name, data in entries.items():
            opened.writestr(name, data)
    return target


def test_made_twice_it_has_the_same_bytes_whenever_and_wherever(
    made: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(made)
    first = make_archive(STUDY, CONFIG).read_bytes()
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, copy_function=shutil.copyfile)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    for file in tmp_path.rglob("*.md"):
        file.chmod(0o600)
    assert make_archive(STUDY, CONFIG).read_bytes() == first
    with zipfile.ZipFile(archive_file(STUDY)) as opened:
        infos = opened.infolist()
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert {stat.filemode(info.external_attr >> 16) for info in infos} == {"-rw-r--r--"}
    assert [info.filename for info in infos[:-1]] == sorted(info.filename for info in infos[:-1])


def test_it_holds_the_whole_study_and_the_code(archive: Path) -> None:
    names = set(entries_of(archive))
    assert names >= {
        "tiny.yaml",
        "Snakefile",
        "envs/lock.txt",
        "workflow/longca/reporting/archive/making.py",
        RECORDS,
        "results/tiny/lengths/pile.csv",
        "results/tiny/documents/auto/256/0.json",
        "results/tiny/masks/auto/causal_document/256/0.json",
        "results/tiny/blocks/uniform_block/256/64/0.5/2/0.npz",
        "results/tiny/tables/dense.tex",
        "results/tiny/figures/peak_memory.pdf",
        "results/tiny/report.html",
        "README.md",
        METADATA,
    }
    assert not [name for name in names if "__pycache__" in name or "archive.zip" in name or "/logs/" in name]
    readme = entries_of(archive)["README.md"].decode()
    assert "--configfile tiny.yaml" in readme
    assert "a CPU, 2 threads" in readme


def test_it_is_a_workflow_run_crate(archive: Path) -> None:
    crate = ROCrate(archive)
    assert crate.metadata["conformsTo"] is not None
    described = entries_of(archive)[METADATA].decode()
    assert '"@id": "https://w3id.org/ro/crate/1.1"' in described
    root = crate.root_dataset
    assert {profile["name"] for profile in root["conformsTo"]} == {
        "Process Run Crate",
        "Workflow Run Crate",
        "Workflow RO-Crate",
    }
    # Nothing is dated but by its measurements.
    assert root["datePublished"] == "2026-01-01T00:00:00+00:00"
    workflow = crate.mainEntity
    assert (workflow.id, workflow["programmingLanguage"]["name"]) == ("Snakefile", "Snakemake")
    assert set(workflow.type) == {"File", "SoftwareSourceCode", "ComputationalWorkflow"}
    run = root["mentions"]
    assert (run.type, run["instrument"].id) == ("CreateAction", "Snakefile")
    assert run["object"].id == "tiny.yaml"
    results = {one.id for one in run["result"]}
    assert {RECORDS, "results/tiny/report.html", "results/tiny/tables/dense.csv"} <= results
    assert not [name for name in results if name.startswith("results/tiny/masks")]
    files = {entity.id for entity in crate.data_entities}
    assert files == set(entries_of(archive)) - {METADATA}


def test_an_archive_as_it_was_made_holds(archive: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # nothing of the study is here
    assert check_archive(archive) == []
    assert list(tmp_path.iterdir()) == []


def test_a_changed_a_missing_and_an_extra_file_are_named(archive: Path, tmp_path: Path) -> None:
    entries = entries_of(archive)
    entries["results/tiny/report.html"] += b" "
    del entries["results/tiny/tables/dense.csv"]
    entries["results/tiny/tables/other.csv"] = b"1"
    changed = repack(tmp_path / "changed.zip", entries, listed=False)
    missing, extra, other = check_archive(changed)
    assert missing == f"{changed}: results/tiny/tables/dense.csv: is missing"
    assert extra == f"{changed}: results/tiny/tables/other.csv: is none of the archive's files"
    assert other.startswith(f"{changed}: results/tiny/report.html: has sha256 ")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_bit_is_never_overlooked(archive: Path, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as opened:
        directory = opened.start_dir
    # As often in the directory of the archive as in all that stands before it.
    places = st.integers(0, directory - 1) | st.integers(directory, len(content) - 1)
    content[data.draw(places)] ^= 1 << data.draw(st.integers(0, 7))
    flipped = tmp_path / "flipped.zip"
    flipped.write_bytes(content)
    try:
        with open_archive(flipped) as opened_archive:
            problems = opened_archive.problems()
    except LongcaError as error:
        problems = [str(error)]
    # Else what was hit says nothing of a file: a time, a permission, what a local header says again.
    assert problems or entries_of(flipped) == entries_of(archive)


def forged(change: Callable[[Entries], None]) -> Callable[[Path, Path], list[str]]:
    """What a check says of an archive changed by `change`, its digests forged to fit."""

    def check(archive: Path, folder: Path) -> list[str]:
        entries = entries_of(archive)
        change(entries)
        file = repack(folder / "forged.zip", entries)
        return [
            line.removeprefix(f"{file}: ").partition(" (its code differs ")[0] for line in check_archive(file)
        ]

    return check


def test_a_forged_table_is_not_what_the_records_give(archive: Path, tmp_path: Path) -> None:
    csv = str(table_file(STUDY, "dense", "csv"))

    def change(entries: Entries) -> None:
        entries[csv] = entries[csv].replace(b",ok,", b",wrong,", 1)

    assert forged(change)(archive, tmp_path) == [f"{csv}: is not what the records give"]


def test_a_forged_figure_is_not_what_the_records_give(archive: Path, tmp_path: Path) -> None:
    figure = str(figure_file(STUDY, "peak_memory", "json"))

    def change(entries: Entries) -> None:
        spec = json.loads(entries[figure])
        spec["title"]["text"] = "Another title"
        entries[figure] = json.dumps(spec, sort_keys=True).encode() + b"\n"

    assert forged(change)(archive, tmp_path) == [f"{figure}: is not what the records and masks give"]


def test_forged_records_do_not_give_the_tables(archive: Path, tmp_path: Path) -> None:
    def change(entries: Entries) -> None:
        entries[RECORDS] = json.dumps(faster(json.loads(entries[RECORDS]), 2.0)).encode() + b"\n"

    found = forged(change)(archive, tmp_path)
    assert f"{table_file(STUDY, 'dense', 'csv')}: is not what the records give" in found
    assert f"{figure_file(STUDY, 'peak_memory', 'json')}: is not what the records and masks give" in found


def test_records_of_another_mask_are_named(archive: Path, tmp_path: Path) -> None:
    def change(entries: Entries) -> None:
        record = json.loads(entries[RECORDS])
        entries[RECORDS] = json.dumps(record | {"mask_digest": "of another"}).encode() + b"\n"

    found = forged(change)(archive, tmp_path)
    assert found[0] == f"{RECORDS}:1: measured on another mask than results/tiny/masks/auto/causal/256/0.json"


def test_records_that_cannot_be_read_are_one_line(archive: Path, tmp_path: Path) -> None:
    found = forged(lambda entries: entries.update({RECORDS: b"{}\n"}))(archive, tmp_path)
    assert len(found) == 1
    assert found[0].startswith(f"{RECORDS}:1: ")


def test_code_inside_that_differs_is_told_beside_what_it_makes_otherwise(
    archive: Path, tmp_path: Path
) -> None:
    csv = str(table_file(STUDY, "dense", "csv"))
    here = {path.relative_to(CHECKOUT).as_posix(): path.read_bytes() for path in code_files()}
    same = repack(tmp_path / "same.zip", here | entries_of(archive) | here)
    with open_archive(same) as opened:
        assert other_code(opened) is None
    entries = entries_of(archive)
    other = entries | {csv: entries[csv] + b"\n", "rules/tables.smk": b"# other\n"}
    (line,) = check_archive(repack(tmp_path / "other.zip", other))
    hint = (
        r"tables/dense.csv: is not what the records give \(its code differs from this longca's in \d+ files: "
    )
    assert re.search(hint + "check it with its own", line)


@pytest.mark.parametrize(
    "name",
    [
        "../out",
        "/etc/out",
        "a/../../out",
        "a//b",
        "a\\..\\b",
        "c:/out",
        "./out",
        "folder/",
        "a\nb",
        "tiny.yaml/b",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused_before_anything_is_written(
    archive: Path, tmp_path: Path, name: str
) -> None:
    file = repack(tmp_path / "slip.zip", entries_of(archive) | {name: b"out"}, listed=False)
    with pytest.raises(LongcaError, match="nothing of it was unpacked"):
        check_archive(file)
    assert [path.name for path in tmp_path.iterdir()] == ["slip.zip"]


def test_links_and_names_given_twice_are_refused(archive: Path, tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    for extra, words in ((link, "is no ordinary file"), (zipfile.ZipInfo("tiny.yaml"), "is there twice")):
        file = repack(tmp_path / "links.zip", entries_of(archive), listed=False)
        with (
            zipfile.ZipFile(file, "a") as opened,
            pytest.warns() if words == "is there twice" else nullcontext(),
        ):
            opened.writestr(extra, b"/etc/passwd")
        with pytest.raises(LongcaError, match=words):
            check_archive(file)


def test_what_unpacks_to_too_much_is_refused(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST_BYTES", 1000)
    with pytest.raises(LongcaError, match=r"archive.zip: unpacks to \d+ bytes; right: 1000 at most"):
        check_archive(archive)


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all"])
def test_what_is_no_zip_is_said(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file.zip"
    file.write_bytes(content)
    with pytest.raises(LongcaError, match="is no whole zip file"):
        check_archive(file)


@pytest.mark.parametrize(
    "metadata",
    [None, b"no json", b"[]", b'{"@graph": [{"@id": "./"}]}', b'{"@graph": [{"@id": "./", "hasPart": []}]}'],
)
def test_what_is_no_crate_is_said(tmp_path: Path, metadata: bytes | None) -> None:
    file = tmp_path / "file.zip"
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("a", b"")
        if metadata is not None:
            opened.writestr(METADATA, metadata)
    with pytest.raises(LongcaError, match=METADATA):
        check_archive(file)


def test_a_config_outside_of_the_archive_is_not_read(archive: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_bytes(entries_of(archive)["tiny.yaml"])
    metadata = entries_of(archive)[METADATA].decode()
    for config in (str(outside), "../outside.yaml", "%2e%2e/outside.yaml"):
        changed = metadata.replace(
            '"object": {\n    "@id": "tiny.yaml"', f'"object": {{\n    "@id": "{config}"'
        )
        assert changed != metadata
        entries = entries_of(archive) | {METADATA: changed.encode()}
        with pytest.raises(LongcaError, match=r"#run ran on '\S*outside.yaml', which is none of its files"):
            check_archive(repack(tmp_path / "config.zip", entries, listed=False))


def test_a_study_that_is_not_finished_is_refused_with_what_to_type(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    before = archive_file(STUDY).read_bytes()
    table_file(STUDY, "dense", "md").unlink()
    with pytest.raises(LongcaError, match=r"tables/dense.md: is not there \(1 of .*`snakemake archive"):
        make_archive(STUDY, CONFIG)
    assert archive_file(STUDY).read_bytes() == before


def test_a_frozen_study_is_archived_with_its_environments_and_draws_its_masks_again(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    frozen = STUDY.model_copy(update={"frozen": True})
    CONFIG.write_text(f"frozen: true\n{CONFIG.read_text()}")
    freeze_study(frozen, results_of(frozen))
    for folder in ("blocks", "documents", "lengths"):
        shutil.rmtree(results_of(frozen) / folder)
    archive = make_archive(frozen, CONFIG)
    entries = entries_of(archive)
    (environment,) = [name for name in entries if "/environments/" in name]
    assert b"a CPU, 2 threads" in entries[environment]
    assert not [name for name in entries if name.startswith("results/tiny/blocks/")]
    assert check_archive(archive) == []

    def other_seed(entries: Entries) -> None:
        entries["tiny.yaml"] += b"seed: 7\n"

    (line, *_) = forged(other_seed)(archive, tmp_path)
    assert line == (
        "results/tiny/records/sparse/flex/uniform_block/4-2.jsonl:1: measured on another mask than "
        "results/tiny/blocks/uniform_block/256/64/0.5/2/0.npz"
    )


def test_a_config_from_elsewhere_gets_a_place_of_its_own(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    assert "config/tiny.yaml" in archived_files(STUDY, (made / CONFIG).absolute())
    assert "config/tiny.yaml" in archived_files(STUDY, Path("../study.yaml"))
    assert "deep/study.yaml" in archived_files(STUDY, Path("deep/study.yaml"))


def test_the_commands(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["archive", "make", "--study", str(CONFIG)], catch_exceptions=False)
    assert (said.exit_code, said.output) == (0, "results/tiny/archive.zip\n")
    held = CliRunner().invoke(app, ["archive", "check", "results/tiny/archive.zip"], catch_exceptions=False)
    assert held.exit_code == 0
    assert held.output.startswith("results/tiny/archive.zip: holds")
    entries = entries_of(archive_file(STUDY))
    repack(Path("changed.zip"), entries | {"README.md": b""}, listed=False)
    changed = CliRunner().invoke(app, ["archive", "check", "changed.zip"], catch_exceptions=False)
    assert changed.exit_code == 1
    assert changed.output.startswith("longca: changed.zip: README.md: has sha256 ")
    assert changed.output.count("\n") == 1


def test_what_the_snakefile_asks_needs_no_heavy_library() -> None:
    program = (
        "import sys, longca.reporting.archive.contents, longca.revision; "
        "print(sorted({'altair', 'pyarrow', 'torch', 'rocrate'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
