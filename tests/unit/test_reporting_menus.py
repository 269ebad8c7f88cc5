"""Menus of a figure: a grid of many panels is shown a choice at a time, with all of it in the figure to choose from."""

import json
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import vl_convert
from reporting_records import sparse_study, write_records

from longca.cases import Case
from longca.reporting.figures.drawing import draw
from longca.reporting.figures.print_form import WIDTHS_PT, printed
from longca.reporting.figures.projection import projection
from longca.reporting.tables import write_table

SVG = "{http://www.w3.org/2000/svg}"
PASSES = ("forward", "backward")
NAMES = ("sparse_throughput_over_density", "sparse_speedup_over_density", "sparse_peak_memory")
GRID: dict[str, Any] = {
    "blocks": {"uniform_block": [64, 128]},
    "densities": [0.5, 1.0],
    "seqlens": [2048, 4096, 8192],
    "passes": ["forward", "backward"],
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(case: Case) -> dict[str, Any]:
    """All ok up to 4096 tokens; beyond, one kernel has no memory. A longer map is slower."""
    if case.kernel == "flex" and case.seqlen > 4096:
        return {"status": "out_of_memory"}
    return {"density": case.density_nominal, "milliseconds": case.seqlen / 1024}


def specs(**grid: Any) -> list[dict[str, Any]]:
    """The block-sparse figures of a study."""
    study = sparse_study(**(GRID | grid))
    write_records(study, told)
    write_table(study, "sparse")
    return [draw(study, name) for name in NAMES]


def menus(spec: dict[str, Any]) -> dict[str, tuple[list[Any], Any]]:
    """The choices of each menu of a figure, and the one it opens with."""
    return {
        param["bind"]["name"]: (param["bind"]["options"], param["value"])
        for param in spec["params"]
        if param["name"] != "pick"
    }


def texts(svg: str) -> list[str]:
    """The texts of a picture, lines of one joined by a space."""
    picture = ElementTree.fromstring(svg)
    return [" ".join(text.itertext()) for text in picture.iter(f"{SVG}text")]


def test_few_panels_stand_side_by_side() -> None:
    # 2 blocks x 2 passes x 3 lengths x 2 heads.
    for spec in specs(heads=["4-2", "4-4"]):
        assert menus(spec) == {}
        assert len(spec["facet"]["sort"]) == 24


def test_of_many_panels_the_setting_with_most_choices_is_chosen_from_a_menu_and_no_row_is_lost() -> None:
    for spec in specs(heads=["4-2", "4-4", "8-4", "8-8"]):
        # 48 panels; with one of the heads at a time 12.
        assert menus(spec) == {"heads": (["4-2", "4-4", "8-4", "8-8"], "4-2")}
        assert len(spec["facet"]["sort"]) == 12 and not any("heads" in one for one in spec["facet"]["sort"])
        (rows,) = spec["datasets"].values()
        assert len(rows) == 2 * 2 * 2 * 2 * 3 * 4
        assert {row["heads"] for row in rows} == {"4-2", "4-4", "8-4", "8-8"}


def test_a_menu_of_lengths_opens_with_the_longest_that_most_kernels_reach() -> None:
    heads = [f"{4 * n}-4" for n in range(1, 8)]
    for spec in specs(heads=heads, seqlens=[2048, 4096, 8192, 16384, 32768, 65536, 131072], densities=[1.0]):
        # 196 panels, 28 with one of the heads at a time, so one of the lengths too.
        assert menus(spec) == {
            "length": ([2048, 4096, 8192, 16384, 32768, 65536, 131072], 4096),
            "heads": (heads, "4-4"),
        }


def test_what_a_menu_opens_with_is_drawn_and_printed_and_said_on_paper() -> None:
    throughput, *_ = specs(heads=["4-2", "4-4", "8-4", "8-8"])
    panels = [
        f"uniform_block {block} {pass_}, {seqlen} tokens"
        for pass_ in ("forward", "backward")
        for seqlen in (2048, 4096, 8192)
        for block in (64, 128)
    ]
    drawn = texts(vl_convert.vegalite_to_svg(json.dumps(throughput)))
    assert sorted(text for text in drawn if text.startswith("uniform_block")) == sorted(panels)
    for width_pt in WIDTHS_PT.values():
        svg, _ = printed(throughput, width_pt)
        said = texts(svg)
        assert sorted(text for text in said if text.startswith("uniform_block")) == sorted(panels)
        (first,) = [text for text in said if "one of" in text]
        assert first.startswith("heads 4-2 (one of 4) head dimension 128, bfloat16")
        # A mark a kernel, density and panel: a point, or a cross where there is no memory.
        groups = ElementTree.fromstring(svg).iter(f"{SVG}g")
        marks = [group for group in groups if group.get("class", "").startswith("mark-symbol role-mark")]
        assert sum(len(group.findall(f"{SVG}path")) for group in marks) == 2 * 2 * 12


def test_a_projection_of_many_kernels_and_heads_shows_one_of_each_and_keeps_their_lines_apart() -> None:
    def rows(kernels: int, heads: int) -> list[dict[str, Any]]:
        places = product(
            range(kernels), range(heads), ("h200_a", "h200_b"), ("full", "causal"), PASSES, (8, 16)
        )
        return [
            {
                "mechanism": "ring_p2p",
                "kernel": f"kernel_{kernel}",
                "cluster": cluster,
                "pattern": pattern,
                "pass": pass_,
                "q_heads": 8,
                "kv_heads": 2**head,
                "tokens_per_rank": 8192,
                "world_size": world_size,
                "topology_ulysses": 1,
                "topology_ring": world_size,
                "topology_windows": 1,
                "tflops": 100.0,
                "efficiency": 0.5,
            }
            for kernel, head, cluster, pattern, pass_, world_size in places
        ]

    few = projection(rows(1, 2), "few").to_dict()
    assert menus(few) == {} and len(few["facet"]["sort"]) == 2 * 2 * 2 * 2
    assert "full, h200_a\nkernel_0, forward, heads\n8-1, 8192 tokens a GPU" in few["facet"]["sort"]
    many = projection(rows(5, 4), "many").to_dict()
    assert menus(many) == {
        "local kernel": ([f"kernel_{n}" for n in range(5)], "kernel_0"),
        "heads": (["8-1", "8-2", "8-4", "8-8"], "8-1"),
    }
    assert many["facet"]["sort"][0] == "full, h200_a\nforward, 8192 tokens a GPU"
    assert len(many["facet"]["sort"]) == 2 * 2 * 2
