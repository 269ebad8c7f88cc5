"""Figures: what is drawn, that it is the same each time, and that a page of one can leave nothing and fetch nothing."""

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st
from reporting_records import by_kernel, dense_study, sparse_study, write_records

from longca.errors import LongcaError
from longca.masks.mask import draw_mask, mask_to_json
from longca.masks.slices import TYPES, Slice, row_bounds
from longca.measure.ceilings import Ceilings, keep_ceilings
from longca.reporting.figures.drawing import DRAWN_BY, draw, write_figure
from longca.reporting.figures.javascript import kept_javascript, vega_javascript
from longca.reporting.figures.lines import panels_of_many_lengths
from longca.reporting.figures.masks import polygon
from longca.reporting.figures.print_form import printed
from longca.reporting.figures.theme import PALETTE, kernel_scales
from longca.reporting.kinds import FIGURES, TABLES
from longca.reporting.names import FIGURE_FORMATS, figure_file, figure_names, pictured_masks, table_names
from longca.reporting.tables import MADE_BY, write_table
from longca.study.model import Study

HOSTILE = "</script><script>alert(1)</script> & <b>50%</b>"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def tabled(study: Study) -> Study:
    """The study with its tables written."""
    for name in table_names(study):
        write_table(study, name)
    return study


def values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows a figure draws."""
    (rows,) = spec["datasets"].values()
    return rows


def test_every_table_and_figure_there_is_has_what_makes_it() -> None:
    assert set(MADE_BY) == {kind.name for kind in TABLES}
    # The masks are drawn from mask files, the roofline from ceilings too.
    assert set(DRAWN_BY) == {kind.name for kind in FIGURES} - {"masks", "roofline"}
    assert {kind.table for kind in FIGURES if kind.table} <= set(MADE_BY)


def test_every_figure_of_a_study_has_a_title_and_every_format() -> None:
    study = dense_study(seqlens=[512, 1024], passes=["forward", "backward"])
    write_records(study, by_kernel(naive={"status": "out_of_memory", "reason": HOSTILE}))
    tabled(study)
    for file in pictured_masks(study):
        file.parent.mkdir(parents=True)
        file.write_text(mask_to_json(draw_mask(file.parts[-3], int(file.parts[-2]))))
    titles = {kind.name: kind.title for kind in FIGURES}
    for name in figure_names(study):
        write_figure(study, name)
        contents = {suffix: figure_file(study, name, suffix).read_bytes() for suffix in FIGURE_FORMATS}
        assert contents["pdf"].startswith(b"%PDF")
        assert contents["svg"].startswith(b"<svg")
        for form, width_pt in (("", 468), ("column.", 240)):
            assert b"MediaBox [0 0 %d " % width_pt in contents[f"{form}pdf"]
            assert f'width="{width_pt}pt"' in contents[f"{form}svg"][:300].decode()
        assert json.loads(contents["json"])["title"]["text"] == titles[name]
        page = contents["html"].decode()
        # The record's reason is data: it neither ends a script nor starts one.
        assert page.count("<script") == page.count("</script>") == 3
        outside = set(re.findall(r"https?://[^\"'\s)]+", page.split("<main", 1)[1]))
        assert all(url.startswith("https://vega.github.io/schema/") for url in outside)


def test_a_legend_that_is_picked_from_hears_a_click() -> None:
    study = dense_study(seqlens=[512, 1024])
    write_records(study)
    tabled(study)
    for name in ("dense_throughput_over_length", "dense_throughput_over_patterns", "peak_memory"):
        compiled = vl_convert.vegalite_to_vega(json.dumps(draw(study, name)))
        assert any(signal["name"] == "pick_kernel_legend" for signal in compiled["signals"])
        legends = re.findall(r'"legends": (\[.*?\]), "', json.dumps(compiled))
        assert legends and any('"interactive": true' in legend for legend in legends), name


def test_what_is_printed_has_the_rows_and_nothing_that_waits_for_a_pointer() -> None:
    study = dense_study()
    write_records(study, by_kernel(naive={"status": "wrong", "reason": HOSTILE}))
    spec = draw(tabled(study), "dense_throughput_over_length")
    svg, _ = printed(spec, 240)
    assert "alert(1)" not in svg
    assert "heads 4-2, head dimension 64" in svg and spec["title"]["text"] not in svg
    # One point a cell that has a number, one cross a cell that has none.
    assert len(re.findall(r"mark-symbol role-mark.*?</g>", svg)) > 0
    assert svg.count('transform="translate(') > len(values(spec))


def test_one_machine_is_said_above_and_several_at_each_point() -> None:
    study = dense_study()
    write_records(study)
    above = draw(tabled(study), "dense_throughput_over_patterns")
    assert "measured on a CPU, 2 threads, torch 2.13.0" in above["title"]["subtitle"]
    assert not any("machine" in row for row in values(above))
    older = {"environment": {"device": "a CPU, 2 threads", "torch": "2.12.0"}}
    write_records(study, by_kernel(naive=older))
    several = draw(tabled(study), "dense_throughput_over_patterns")
    assert not any("measured on" in line for line in several["title"]["subtitle"])
    assert {(row["kernel"], row["machine"].rpartition(" ")[2]) for row in values(several)} == {
        ("naive", "2.12.0"),
        ("sdpa", "2.13.0"),
    }


def test_what_is_printed_has_coordinates_in_hundredths_and_texts_as_they_are() -> None:
    study = dense_study()
    write_records(study)
    spec = draw(tabled(study), "dense_throughput_over_patterns")
    spec["title"]["subtitle"] = ["1.23456 of text"]
    svg, _ = printed(spec, 240)
    assert "1.23456 of text" in svg
    assert not re.search(r"<[^>]*\d\.\d{3}", svg)


def test_lines_are_of_three_lengths_where_any_panel_has_them() -> None:
    lengths = {"one": [1], "two": [1, 2], "four": [1, 2, 3, 4]}
    rows = [{"subject": name, "panel": "p", "seqlen": n} for name, of in lengths.items() for n in of]
    assert panels_of_many_lengths(rows) == {("four", "p")}
    assert panels_of_many_lengths([row for row in rows if row["subject"] != "four"]) == {("two", "p")}
    assert panels_of_many_lengths([]) == set()
    study = dense_study(seqlens=[512, 1024])
    write_records(study)
    drawn = values(draw(tabled(study), "dense_throughput_over_length"))
    assert {row["seqlen"] for row in drawn} == {512, 1024}


def test_of_many_panels_of_lines_one_shape_of_heads_is_shown_at_a_time() -> None:
    study = dense_study(heads=["4-2", "4-4", "8-8"], patterns="all", passes=["forward", "backward"])
    write_records(study)
    for name in ("dense_throughput_over_length", "peak_memory"):
        spec = draw(tabled(study), name)
        menu = next(param for param in spec["params"] if param["name"] == "shown_heads")
        assert menu["bind"]["options"] == ["4-2", "4-4", "8-8"]
        assert {row["heads"] for row in values(spec)} == {"4-2", "4-4", "8-8"}
        assert len({row["facet"] for row in values(spec)}) == 24


def test_the_same_records_give_the_same_bytes_whatever_was_drawn_before() -> None:
    study = dense_study(seqlens=[512, 1024])
    write_records(study)
    tabled(study)
    names = ("dense_throughput_over_length", "dense_throughput_over_patterns", "peak_memory", "support")
    first = [json.dumps(draw(study, name), sort_keys=True) for name in names]
    assert first == [json.dumps(draw(study, name), sort_keys=True) for name in names]


def test_a_status_without_a_number_has_a_word_and_no_number_in_a_figure() -> None:
    study = dense_study(patterns=["causal"])
    write_records(study, by_kernel(naive={"status": "timeout", "reason": "over 600 s"}))
    naive, sdpa = values(draw(tabled(study), "dense_throughput_over_length"))
    assert (naive["status"], naive["reason"], "tflops" in naive) == ("timeout", "over 600 s", False)
    assert not any(isinstance(value, float) for value in naive.values())
    assert sdpa["tflops_low"] < sdpa["tflops"] < sdpa["tflops_high"]


def test_lines_of_different_shapes_and_devices_are_panels_of_their_own() -> None:
    study = dense_study(heads=["4-2", "4-4"], patterns=["causal"])
    write_records(study, by_kernel(naive={"environment": {"device": "another"}}))
    panels = {row["panel"] for row in values(draw(tabled(study), "dense_throughput_over_length"))}
    assert panels == {
        f"forward, heads {heads}, {device}"
        for heads in ("4-2", "4-4")
        for device in ("another", "a CPU, 2 threads")
    }


def drawn_texts(spec: dict[str, Any]) -> list[str]:
    """The texts of a figure as it is drawn, in order; lines of one text are joined by a space."""
    picture = ElementTree.fromstring(vl_convert.vegalite_to_svg(json.dumps(spec)))
    return [" ".join(text.itertext()) for text in picture.iter("{http://www.w3.org/2000/svg}text")]


def test_with_several_datasets_each_panel_shows_whose_documents_it_is_of() -> None:
    study = dense_study(
        datasets=["auto", "prolong512k"],
        patterns=["causal", "prefix_lm_document"],
        passes=["forward", "backward"],
        heads=["4-2", "4-4"],
    )
    devices = ("an accelerator with a name as long as the names of accelerators are", "a CPU, 2 threads")
    write_records(study, by_kernel(naive={"environment": {"device": devices[0]}}))
    tabled(study)
    subjects = [
        "causal",
        *(f"prefix_lm_document ({dataset})" for dataset in ("auto", "prolong512k")),
    ]
    panels = [
        f"{pass_}, heads {heads}, {device}"
        for pass_ in ("forward", "backward")
        for heads in ("4-2", "4-4")
        for device in devices
    ]
    lines = drawn_texts(draw(study, "dense_throughput_over_length"))
    assert sorted(text for text in lines if ", heads " in text) == sorted(
        f"{subject} {panel}" for subject in subjects for panel in panels
    )
    bars = drawn_texts(draw(study, "dense_throughput_over_patterns"))
    assert [text for text in bars if text in subjects] == subjects
    assert sorted(text for text in bars if ", heads " in text) == sorted(
        f"{panel}, 1024 tokens" for panel in panels
    )


def test_the_support_map_gives_each_family_its_own_kernels_and_cuts_no_word() -> None:
    study = dense_study(seqlens=[512, 1024]).model_copy(update={"sparse": sparse_study().sparse})
    write_records(
        study,
        lambda case: (
            {"status": "out_of_memory", "reason": "64 GiB asked"}
            if case.family == "dense" and case.seqlen == 1024
            else {}
        ),
    )
    texts = drawn_texts(draw(tabled(study), "support"))
    counts = Counter(texts)
    # Two kernels on two patterns in the dense panel, two on one pattern in the block-sparse one.
    assert (counts["out of memory 1/2"], counts["out of memory"], counts["ok"]) == (4, 1, 2 + 1)
    assert (counts["naive"], counts["flex"], counts["uniform_block"], counts["causal"]) == (1, 1, 1, 1)


def test_a_kernel_has_one_colour_whatever_it_is_drawn_with() -> None:
    together, alone = kernel_scales(["naive", "sdpa", "flex"])[0], kernel_scales(["flex"])[0]
    assert alone.to_dict()["range"] == together.to_dict()["range"][2:]
    assert len(set(together.to_dict()["range"])) == 3
    assert set(together.to_dict()["range"]) <= set(PALETTE)


def test_block_sparse_lines_stand_at_the_density_really_kept() -> None:
    study = sparse_study()
    write_records(study, lambda case: {"density": case.density_nominal - 0.01})
    assert figure_names(study) == (
        "sparse_throughput_over_density",
        "sparse_speedup_over_density",
        "sparse_peak_memory",
        "support",
    )
    drawn = values(draw(tabled(study), "sparse_throughput_over_density"))
    assert sorted({row["density"] for row in drawn}) == [0.24, 0.49]


def test_a_missing_table_and_an_unknown_figure_are_named() -> None:
    study = dense_study()
    with pytest.raises(
        LongcaError, match=r"tables/dense.parquet: is not there; right: .*longca tables dense"
    ):
        draw(study, "peak_memory")
    with pytest.raises(LongcaError, match=r"did you mean 'support'"):
        write_figure(study, "suport")
    figure = Path("results/tiny/tables/dense.parquet")
    figure.parent.mkdir(parents=True)
    figure.write_text("no parquet")
    with pytest.raises(LongcaError, match=r"tables/dense.parquet: is no Parquet table"):
        draw(study, "peak_memory")


@given(st.data())
def test_a_polygon_keeps_the_cells_of_its_slice(data: st.DataObject) -> None:
    q0, k0 = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
    queries, keys = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 20))
    piece = Slice(q0, q0 + queries, k0, k0 + keys, data.draw(st.sampled_from(TYPES)))
    left, right = row_bounds(piece)
    corners = polygon(piece)
    for key in range(piece.k0, piece.k1):
        kept = [
            query
            for query in range(piece.q0, piece.q1)
            if (left is None or key >= query + left) and (right is None or key <= query + right)
        ]
        spans = [(a, b) for a, b in pairwise(corners) if a[0] <= key <= b[0] and a[0] < b[0]]
        if not kept:
            # Nothing kept: at most the half cells of a diagonal are drawn.
            assert all(_at(span, key, 2) - _at(span, key, 1) <= 1 for span in spans)
            continue
        if len(kept) == 1 and not spans:
            continue
        assert any(
            abs(_at(span, key, 1) - kept[0]) <= 1 and abs(_at(span, key, 2) - (kept[-1] + 1)) <= 1
            for span in spans
        )


def _at(span: tuple[tuple[float, ...], tuple[float, ...]], key: int, part: int) -> float:
    (before, after) = span
    return before[part] + (after[part] - before[part]) * (key - before[0]) / (after[0] - before[0])


def test_a_roof_is_of_the_same_device_and_bends_at_its_ridge() -> None:
    study = dense_study(seqlens=[1024], heads=["4-2"], head_dim=64)
    write_records(study)
    own = Ceilings("a CPU, 2 threads", "float32", matrix_product_tflops=0.8, copy_gb_per_s=10.0)
    keep_ceilings(Path("results/tiny"), own)
    keep_ceilings(Path("results/tiny"), replace(own, device="another", copy_gb_per_s=99.0))
    drawn = values(draw(tabled(study), "roofline"))
    roof = [(row["intensity"], row["roof"]) for row in drawn if "roof" in row]
    # 4 FLOPs x 1024 x 1024 / 4 cells x 4 heads x 64 over 4 bytes x 1024 tokens x 64 x 2 (4 + 2) heads.
    measured = [row["intensity"] for row in drawn if "kernel" in row]
    assert measured == pytest.approx(
        [4 * 1024**2 / 4 * 4 * 64 / (4 * 1024 * 64 * 12)] * len(measured), rel=1e-4
    )
    assert [y for _, y in roof] == pytest.approx([min(0.8, x * 10.0 / 1e3) for x, _ in roof], rel=1e-4)
    assert {row["device"] for row in drawn if "roof" in row} == {"a CPU, 2 threads, float32"}
    assert 80.0 in {x for x, _ in roof}


def test_without_ceilings_the_roofline_says_how_to_measure_them() -> None:
    study = dense_study()
    write_records(study)
    assert "`longca ceilings`" in " ".join(draw(tabled(study), "roofline")["title"]["subtitle"])


def test_the_spread_is_of_single_calls_around_their_own_median() -> None:
    study = dense_study(kernels=["sdpa"], patterns=["full"], seqlens=[512, 1024])
    samples = {512: [1.0, 2.0, 3.0], 1024: [10.0, 10.0, 12.0]}
    write_records(study, lambda case: {"samples_ms": samples[case.seqlen]})
    (row,) = values(draw(tabled(study), "sample_spread"))
    assert (row["cases"], row["calls"], row["p50"], row["largest"]) == (2, 6, 0.0, 50.0)


def test_the_script_of_pages_is_bundled_once_for_all_studies(monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept_javascript(Path("results"))
    assert "vegaEmbed" in first and first == vega_javascript()
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda: pytest.fail("bundled again"))
    assert kept_javascript(Path("results")) == first
