"""The verification table: how far each case was from the oracle, and which were wrong and why."""

from collections.abc import Sequence

from longca.reporting.cells import Cell, Place, cells_of
from longca.reporting.long import COLUMNS, Row
from longca.reporting.mechanisms import as_mechanisms
from longca.reporting.sections import Section, by_setting, kernel_section, setting
from longca.reporting.words import digits, plain

TENSORS = {"forward": ("out",), "backward": ("dq", "dk", "dv")}
_COLUMNS = (
    *(
        "family",
        "kernel",
        "dataset",
        "pattern",
        "seqlen",
        "sample",
        "q_heads",
        "kv_heads",
        "head_dim",
        "dtype",
        "pass",
    ),
    *("block", "density_nominal"),
    *("mechanism", "world_size", "topology_ulysses", "topology_ring", "topology_windows"),
    *("topology_placement", "sharding", "head_chunks"),
    *("status", "reason"),
    *(f"relative_error_{tensor}" for tensor in ("out", "dq", "dk", "dv")),
    *("backend", "mask_digest", "fingerprint"),
)
VERIFICATION_COLUMNS = {name: COLUMNS[name] for name in _COLUMNS}


def verification_rows(rows: Sequence[Row]) -> list[Row]:
    """Long rows of any family, in the columns of the verification table and the device."""
    return [{name: row.get(name) for name in (*VERIFICATION_COLUMNS, "environment_device")} for row in rows]


def verification_sections(rows: Sequence[Row]) -> list[Section]:
    """The largest relative error of each cell by pattern and length x kernel or mechanism; then every wrong case."""
    cells = cells_of(as_mechanisms(rows))
    sections = [
        kernel_section(
            f"Relative error of {_tensors(place)} against the oracle, {place.pass_}, {setting(place, cells)}",
            group,
            lambda cell: cell.error(TENSORS[cell.place.pass_]) if cell.ok else None,
            best=None,
        )
        for place, group in by_setting(cells)
    ]
    return [*sections, _wrong(cells)]


def _tensors(place: Place) -> str:
    return ", ".join(TENSORS[place.pass_])


def _wrong(cells: Sequence[Cell]) -> Section:
    wrong = [(cell, row) for cell in cells for row in cell.rows if row["status"] == "wrong"]
    headers = ("Kernel", "Pattern", "Length (tokens)", "Sample", "Heads", "Pass", "Relative errors", "Reason")
    rows = tuple(_wrong_row(cell, row) for cell, row in wrong)
    note = "" if rows else "No measured case disagreed with the oracle."
    return Section("Wrong cases", headers, rows, numeric=False, note=note)


def _wrong_row(cell: Cell, row: Row) -> tuple[str, ...]:
    place = cell.place
    errors = {tensor: row.get(f"relative_error_{tensor}") for tensor in ("out", "dq", "dk", "dv")}
    said = ", ".join(f"{tensor} {digits(error)}" for tensor, error in errors.items() if error is not None)
    named = (cell.kernel, place.pattern, str(place.seqlen), str(row["sample"]), place.heads, place.pass_)
    return (*named, said or "not compared", plain(row["reason"]))
