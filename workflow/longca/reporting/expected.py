"""Expected against measured: a study's dense cells beside what others published of them."""

from collections.abc import Sequence

import pyarrow as pa

from longca.reporting.anchors import Anchor, dense_anchors
from longca.reporting.cells import Cell
from longca.reporting.long import Row
from longca.reporting.sections import Section
from longca.reporting.words import digits, plain, words
from longca.study.model import Study
from longca.units import Heads

# A measured throughput further from the published one than this share of it is flagged.
TOLERANCE = 0.15
DIFFERS = "differs"

_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
ANCHOR_COLUMNS = {
    **dict.fromkeys(("kernel", "pattern", "pass"), _TEXT),
    **dict.fromkeys(("seqlen", "q_heads", "kv_heads", "head_dim"), _WHOLE),
    **dict.fromkeys(("dtype", "source", "published_device"), _TEXT),
    "published_tflops": _REAL,
    **dict.fromkeys(("environment_device", "status"), _TEXT),
    **dict.fromkeys(("tflops", "ratio"), _REAL),
    "flag": _TEXT,
}


def anchor_rows(study: Study, cells: Sequence[Cell]) -> list[Row]:
    """One row an anchor of the study and device: published, measured, their ratio, and a flag where they differ."""
    anchors: dict[tuple[object, ...], list[Anchor]] = {}
    for anchor in dense_anchors(study):
        key = (*anchor[3:6], anchor.heads, anchor.head_dim, anchor.dtype, anchor.seqlen)
        anchors.setdefault(key, []).append(anchor)
    rows = []
    for cell in cells:
        place = cell.place
        heads = Heads(place.q_heads, place.kv_heads)
        key = (place.pattern, place.pass_, cell.kernel, heads, place.head_dim, place.dtype, place.seqlen)
        # A sampled mask is compared under the study's own choice of documents.
        rows += [_row(anchor, cell) for anchor in anchors.get(key, ()) if place.dataset == "auto"]
    return rows


def anchor_sections(rows: Sequence[Row]) -> list[Section]:
    """Published and measured throughput side by side, a section a pass, device and source."""
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in rows:
        group = (row["pass"], row["environment_device"], row["published_device"], row["source"])
        groups.setdefault(group, []).append(row)
    ordered = sorted(groups.items(), key=lambda item: item[0][0] != "forward")
    return [_section(*group, of_group) for group, of_group in ordered]


def _row(anchor: Anchor, cell: Cell) -> Row:
    measured = cell.throughput()
    ratio = None if measured is None else measured / anchor.tflops_per_gpu
    return {
        "kernel": cell.kernel,
        "pattern": anchor.pattern,
        "pass": anchor.pass_,
        "seqlen": anchor.seqlen,
        "q_heads": anchor.heads.query,
        "kv_heads": anchor.heads.kv,
        "head_dim": anchor.head_dim,
        "dtype": anchor.dtype,
        "source": anchor.source,
        "published_device": anchor.device,
        "published_tflops": anchor.tflops_per_gpu,
        "environment_device": cell.place.device,
        "status": cell.status,
        "tflops": measured,
        "ratio": ratio,
        "flag": DIFFERS if ratio is not None and abs(ratio - 1) > TOLERANCE else None,
    }


def _section(pass_: str, device: str, published_device: str, source: str, rows: list[Row]) -> Section:
    known = [row["ratio"] for row in rows if row["ratio"] is not None]
    flagged = sum(row["flag"] is not None for row in rows)
    note = (
        f"{flagged} of {len(known)} measured differ by more than {TOLERANCE:.0%}. Of patterns with sampled documents "
        "the samples differ, too: compare their shapes, not their values."
    )
    return Section(
        f"{pass_.capitalize()} throughput in TFLOP/s: {plain(device)}, beside {source} on {published_device}",
        ("Kernel", "Pattern", "Length (tokens)", "Heads", "Published", "Measured", "Ratio", "Flag"),
        tuple(_texts(row) for row in rows),
        numeric=False,
        note=note,
    )


def _texts(row: Row) -> tuple[str, ...]:
    measured = words(row["status"]) if row["tflops"] is None else digits(row["tflops"])
    ratio = "–" if row["ratio"] is None else f"{row['ratio']:.2f}"
    heads = f"{row['q_heads']}-{row['kv_heads']}"
    place = (row["kernel"], row["pattern"], str(row["seqlen"]), heads)
    return (*place, digits(row["published_tflops"]), measured, ratio, row["flag"] or "–")
