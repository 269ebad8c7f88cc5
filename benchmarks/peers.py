"""Attention kernels side by side: each in a process of its own, taking turns on one device.

python benchmarks/peers.py --kernel segments --kernel fa3 --pattern causal --seqlen 8192 --out peers.csv
python benchmarks/peers.py --family sparse --kernel segments --kernel vsa --block 64 --density 0.25 --heads 64-64

Libraries that cannot share a process share a run here, and a clock that drifts hits all of them. For each cell all
prepare and are verified against the float64 oracle, then each times both passes in turn, `--passes` times; a pass is
the median of `--repeats` calls. The lowest and highest pass are kept, and the ratio is the peer's middle pass over that
of the first kernel: above 1 the first is faster. `--variant NAME=FOLDER` adds the first kernel as another checkout has
it (FOLDER is its `workflow`). What a kernel does not know, lacks or gets wrong is said in words.
"""

import csv
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from peer_process import PASSES, Peer

from longca.cases import Case
from longca.files import write_atomically
from longca.flops import attention_flops
from longca.masks.blocks import draw_block_map, save_block_map
from longca.masks.mask import draw_mask, mask_to_json
from longca.masks.patterns import PATTERNS
from longca.units import parse_heads

CELL = ["pattern", "seqlen", "heads", "block", "density"]
RATES = ["lowest_tflops", "middle_tflops", "highest_tflops"]
COLUMNS = ["name", *CELL, "pass", *RATES, "ratio", "out", "dq", "dk", "dv", "said"]
HEAD_DIM = 128
Times = dict[tuple[str, str], list[float]]


def compare(
    kernel: Annotated[list[str], typer.Option()],
    family: str = "dense",
    pattern: Annotated[list[str] | None, typer.Option()] = None,
    seqlen: Annotated[list[int] | None, typer.Option()] = None,
    heads: str = "64-8",
    block: Annotated[list[int] | None, typer.Option()] = None,
    density: Annotated[list[float] | None, typer.Option()] = None,
    variant: Annotated[list[str] | None, typer.Option()] = None,
    passes: int = 3,
    repeats: int = 5,
    out: Path | None = None,
) -> None:
    """Time the kernels on every cell of length x pattern (x block x density) and print a line for each."""
    peers = [Peer(name, family, name, None) for name in kernel]
    for name, _, folder in (text.partition("=") for text in variant or ()):
        peers.append(Peer(name, family, kernel[0], Path(folder)))
    sparse = family == "sparse"
    patterns = pattern or (["uniform_block"] if sparse else list(PATTERNS))
    blocks: list[tuple[int | None, float | None]] = [(None, None)]
    if sparse:
        blocks = [(b, d) for b in block or [64] for d in density or [0.25]]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for place in [(p, s, heads, *b) for s in seqlen or [8192] for p in patterns for b in blocks]:
            for row in _rows(
                peers, family, dict(zip(CELL, place, strict=True)), passes, repeats, Path(folder)
            ):
                rows.append(row)
                print(_line(row), flush=True)
            if out:
                _write(out, rows)


def _rows(
    peers: list[Peer], family: str, cell: dict[str, Any], passes: int, repeats: int, folder: Path
) -> Iterator[dict[str, Any]]:
    heads = parse_heads(cell["heads"])
    area, file = _draw(family, cell, heads.kv, folder)
    case = Case(
        family, peers[0].name, "auto", cell["pattern"], cell["seqlen"], 0, heads.query, heads.kv, HEAD_DIM, "bfloat16",
        "forward", cell["block"], cell["density"],
    )  # fmt: skip
    said: dict[str, dict[str, Any]] = {}
    for group in (peers[:1], peers[1:]):  # the first makes the oracle that the others read
        for peer in group:
            peer.ask(case=asdict(case), mask=str(file), oracles=str(folder))
        said |= {peer.name: peer.answer() for peer in group}
    times = _take_turns(peers, said, passes, repeats)
    for peer in peers:
        answer = said[peer.name]
        for pass_ in PASSES:
            row = {"name": peer.name, **cell, "pass": pass_, **(answer.get("errors") or {})}
            row["said"] = answer.get("why", {}).get(pass_) or answer["said"]
            taken = times.get((peer.name, pass_))
            if taken:
                flops = attention_flops(area, heads.query, HEAD_DIM, pass_)
                spread = max(taken), median(taken), min(taken)
                row |= {name: round(flops / ms / 1e9, 1) for name, ms in zip(RATES, spread, strict=True)}
                first = times.get((peers[0].name, pass_))
                row["ratio"] = round(median(taken) / median(first), 3) if first else None
            yield row


def _draw(family: str, cell: dict[str, Any], kv_heads: int, folder: Path) -> tuple[float, Path]:
    """Cells kept, and the file of the cell's mask."""
    if family == "sparse":
        drawn = draw_block_map(cell["pattern"], cell["seqlen"], cell["block"], cell["density"], kv_heads)
        save_block_map(drawn, folder / "map.npz")
        return drawn.area, folder / "map.npz"
    mask = draw_mask(cell["pattern"], cell["seqlen"])
    write_atomically(folder / "mask.json", mask_to_json(mask))
    return mask.area, folder / "mask.json"


def _take_turns(peers: list[Peer], said: dict[str, dict[str, Any]], passes: int, repeats: int) -> Times:
    """Milliseconds of each round, by peer and pass; a peer that fails in its turn says so and has none."""
    times: Times = {(peer.name, pass_): [] for peer in peers for pass_ in said[peer.name].get("passes", ())}
    for _ in range(passes):
        for peer in peers:
            for pass_ in PASSES:
                if (peer.name, pass_) in times:
                    peer.ask(time=pass_, repeats=repeats)
                    answer = peer.answer()
                    if "ms" in answer:
                        times[peer.name, pass_].append(answer["ms"])
                    else:
                        said[peer.name].setdefault("why", {})[pass_] = answer["said"]
                        del times[peer.name, pass_]
    return times


def _line(row: dict[str, Any]) -> str:
    point = " ".join(str(row[c]) for c in (*CELL, "pass") if row[c] is not None)
    if "middle_tflops" not in row:
        return f"{point:45} {row['name']:12} {row['said'][:160]}"
    ratio = f"{row['ratio']:.2f}" if row["ratio"] else ""
    rates = f"{row['lowest_tflops']:6.1f}-{row['highest_tflops']:6.1f}"
    return f"{point:45} {row['name']:12} {rates} {ratio:5} out {row['out']:.1e} {row['said'][:60]}"


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    typer.run(compare)
