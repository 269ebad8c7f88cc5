"""The cost model's tables for reading, and its sentences: every figure of the model is called modelled."""

from collections.abc import Sequence
from statistics import median

from longca.reporting.findings import Finding
from longca.reporting.long import Row
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
    if not ratios:
        return "No point yet."
    errors = [abs(ratio - 1) for ratio in ratios]
    return (
        f"Off by {median(errors):.0%} at the median, {max(errors):.0%} at worst, over {len(ratios)} points."
    )


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


def scale_findings(rows: Sequence[Row]) -> list[Finding]:
    """Which mechanism, and U x R, for each pattern, heads, tokens and cluster, forward and backward together."""
    groups: dict[tuple[str, str, str, str], dict[int, dict[str, list[Row]]]] = {}
    for row in rows:
        heads = f"{row['q_heads']}-{row['kv_heads']}"
        subject = f"{row['pattern']}, {heads} heads, {row['tokens_per_rank']} tokens a GPU"
        by_size = groups.setdefault((row["cluster"], row["kernel"], subject, ""), {})
        by_size.setdefault(row["world_size"], {}).setdefault(row["mechanism"], []).append(row)
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for (cluster, kernel, subject, _), by_size in groups.items():
        found.setdefault((cluster, kernel), []).append((subject, _choice(by_size)))
    return [
        Finding(f"Modelled: which mechanism on {cluster}, over {kernel}", tuple(sentences))
        for (cluster, kernel), sentences in found.items()
    ]


def _choice(by_size: dict[int, dict[str, list[Row]]]) -> str:
    """Runs of sizes with the same best mechanism, by the time of a forward and a backward together."""
    runs: list[tuple[str, list[int], list[Row]]] = []
    for world_size, mechanisms in sorted(by_size.items()):
        times = {
            name: sum(row["computation_ms"] + row["exposed_ms"] for row in rows)
            for name, rows in mechanisms.items()
            if all(row["tflops"] is not None for row in rows)
        }
        name = min(times, key=lambda one: times[one])
        rows = mechanisms[name]
        if runs and runs[-1][0] == name:
            runs[-1][1].append(world_size)
            runs[-1][2].extend(rows)
        else:
            runs.append((name, [world_size], list(rows)))
    return "; ".join(_run(*run) for run in runs) + "."


def _run(name: str, sizes: Sequence[int], rows: Sequence[Row]) -> str:
    where = f"{sizes[0]} GPUs" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} GPUs"
    shapes = list(dict.fromkeys(topology_text(row) for row in rows))
    own = f" as {', '.join(shapes)}" if name in ("usp", "loongtrain") else ""
    shares = [row["efficiency"] for row in rows]
    low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
    return f"{name}{own} on {where} (computing {low if low == high else f'{low} to {high}'} of the time)"
