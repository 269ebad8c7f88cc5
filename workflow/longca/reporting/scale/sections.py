"""The cost model's tables for reading, and its sentences: every figure of the model is called modelled."""

from collections.abc import Sequence
from statistics import median

from longca.reporting.findings import Finding
from longca.reporting.long import Row
from longca.reporting.scale.level import level_with_best, listed, median_error
from longca.reporting.sections import Section
from longca.reporting.words import digits

NOTE = "Modelled: alpha-beta networks and measured kernels, fitted to this study; between nodes they are assumed."


def topology_text(row: Row) -> str:
    """U x R, and windows where there are several."""
    windows = f"x{row['topology_windows']}" if row["topology_windows"] > 1 else ""
    return f"{row['topology_ulysses']}x{row['topology_ring']}{windows}"


def cost_model_sections(rows: Sequence[Row]) -> list[Section]:
    """The constants; how far the model is off where it was not fitted; and beside published figures."""
    constants = tuple(
        (row["name"], *(row[name] or "–" for name in ("mechanism", "pattern", "pass")), digits(row["modelled"]),
         row["unit"], row["origin"])
        for row in rows
        if row["what"] == "constant"
    )  # fmt: skip
    headers = ("Constant", "Mechanism", "Pattern", "Pass", "Value", "Unit", "Origin")
    return [
        Section("Constants of the cost model", headers, constants, numeric=False),
        *(
            _errors(title, [row for row in rows if row["what"] == what])
            for what, title in (
                ("left out", "Modelled over measured time, of points left out of the fit"),
                ("published", "Modelled over published throughput, on 8 to 64 H100, nothing fitted to it"),
            )
        ),
    ]


def _errors(title: str, rows: Sequence[Row]) -> Section:
    groups: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        groups.setdefault((row["mechanism"], row["pattern"], row["pass"]), []).append(row["ratio"])
    lines = tuple(
        (*key, str(len(ratios)), f"{median(ratios):.2f}", f"{min(ratios):.2f}", f"{max(ratios):.2f}")
        for key, ratios in groups.items()
    )
    headers = ("Mechanism", "Pattern", "Pass", "Points", "Median", "Least", "Greatest")
    return Section(title, headers, lines, numeric=False, note=error_sentence([row["ratio"] for row in rows]))


def error_sentence(ratios: Sequence[float]) -> str:
    """How far off the model is, of these ratios."""
    middle = median_error(ratios)
    if middle is None:
        return "No point yet."
    worst = max(abs(ratio - 1) for ratio in ratios)
    return f"Off by {middle:.0%} at the median, {worst:.0%} at worst, over {len(ratios)} points."


def projection_sections(rows: Sequence[Row]) -> list[Section]:
    """Modelled TFLOP/s a GPU by pattern and GPUs x mechanism, with its best topology; a section a cluster and pass."""
    groups: dict[tuple[str, str, str, str, str], list[Row]] = {}
    for row in rows:
        heads = f"{row['q_heads']}-{row['kv_heads']}"
        key = (row["cluster"], row["pass"], row["kernel"], heads, str(row["tokens_per_rank"]))
        groups.setdefault(key, []).append(row)
    return [_projection(*key, group) for key, group in groups.items()]


def _projection(
    cluster: str, pass_: str, kernel: str, heads: str, tokens: str, rows: Sequence[Row]
) -> Section:
    mechanisms = list(dict.fromkeys(sorted(row["mechanism"] for row in rows)))
    table: dict[tuple[str, int], dict[str, Row]] = {}
    for row in rows:
        table.setdefault((row["pattern"], row["world_size"]), {})[row["mechanism"]] = row
    lines, best = [], set()
    for index, ((pattern, world_size), cells) in enumerate(table.items()):
        rates = {name: row["tflops"] for name, row in cells.items() if row["tflops"] is not None}
        lines.append((pattern, str(world_size), *(_cell(cells[name]) for name in mechanisms)))
        best |= {(index, 2 + mechanisms.index(name)) for name in rates if rates[name] == max(rates.values())}
    title = f"Modelled {pass_} throughput in TFLOP/s a GPU, {cluster}, {kernel}, heads {heads}, {tokens} tokens a GPU"
    return Section(title, ("Pattern", "GPUs", *mechanisms), tuple(lines), frozenset(best), note=NOTE, keys=2)


def _cell(row: Row) -> str:
    if row["tflops"] is None:
        return "unsupported"
    own = row["mechanism"] in ("usp", "loongtrain")
    return f"{row['tflops']:.0f}" + (f" ({topology_text(row)})" if own else "")


def scale_findings(rows: Sequence[Row], error: float | None = None) -> list[Finding]:
    """Which mechanism, and U x R, for each pattern, heads, tokens and cluster, forward and backward together.

    error: the model's own, within which mechanisms are called level; None: it is not known.
    """
    groups: dict[tuple[str, str, str, str], dict[int, dict[str, list[Row]]]] = {}
    for row in rows:
        heads = f"{row['q_heads']}-{row['kv_heads']}"
        subject = f"{row['pattern']}, {heads} heads, {row['tokens_per_rank']} tokens a GPU"
        by_size = groups.setdefault((row["cluster"], row["kernel"], subject, ""), {})
        by_size.setdefault(row["world_size"], {}).setdefault(row["mechanism"], []).append(row)
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for (cluster, kernel, subject, _), by_size in groups.items():
        found.setdefault((cluster, kernel), []).append((subject, _choice(by_size, error)))
    return [
        Finding(f"Modelled: which mechanism on {cluster}, over {kernel}", tuple(sentences))
        for (cluster, kernel), sentences in found.items()
    ]


def modelled_ms(row: Row) -> float:
    """The whole of a row of the table `projection` that has a topology."""
    return float(row["computation_ms"] + row["exposed_ms"])


def _choice(by_size: dict[int, dict[str, list[Row]]], error: float | None) -> str:
    """Runs of sizes with the same mechanisms ahead, by the time of a forward and a backward together."""
    runs: list[tuple[list[str], list[int], list[Row]]] = []
    for world_size, mechanisms in sorted(by_size.items()):
        times = {
            name: sum(map(modelled_ms, rows))
            for name, rows in sorted(mechanisms.items())
            if all(row["tflops"] is not None for row in rows)
        }
        names = level_with_best(times, error)
        rows = [row for name in names for row in mechanisms[name]]
        if runs and runs[-1][0] == names:
            runs[-1][1].append(world_size)
            runs[-1][2].extend(rows)
        else:
            runs.append((names, [world_size], rows))
    return "; ".join(_run(*run) for run in runs) + "."


def _run(names: Sequence[str], sizes: Sequence[int], rows: Sequence[Row]) -> str:
    where = f"{sizes[0]} GPUs" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} GPUs"
    shares = [row["efficiency"] for row in rows]
    low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
    share = low if low == high else f"{low} to {high}"
    # Of several, each with its own topologies at every size, the table tells which.
    own = f"{listed(names)} level" if len(names) > 1 else _with_shapes(names[0], rows)
    return f"{own} on {where} (computing {share} of the time)"


def _with_shapes(name: str, rows: Sequence[Row]) -> str:
    shapes = dict.fromkeys(map(topology_text, rows))
    return f"{name} as {', '.join(shapes)}" if name in ("usp", "loongtrain") else name
