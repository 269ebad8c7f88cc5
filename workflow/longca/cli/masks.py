"""Commands of the masks stage: masks, block maps, their views and pictures."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from longca.cli.options import Seqlen, refuse_given
from longca.errors import LongcaError
from longca.files import write_atomically

Seed = Annotated[int, typer.Option(help="Seed of sample 0; sample n is drawn from seed + n.")]
Sample = Annotated[int, typer.Option(help="Number of the sample, from 0.")]
Draw = Annotated[Path | None, typer.Option(help="Write a picture: .svg, .png or .pdf.")]


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(mask)
    app.command()(blocks)
    app.command()(patterns)


def mask(
    pattern: Annotated[str, typer.Argument(help="Static pattern; `longca patterns` lists them.")],
    seqlen: Seqlen,
    dataset: Annotated[str | None, typer.Option(help="Whose documents are sampled; auto by default.")] = None,
    documents: Annotated[str | None, typer.Option(help="Document lengths, not drawn: 3,4,5.")] = None,
    seed: Seed = 42,
    sample: Sample = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter, as window=7; repeatable.")
    ] = None,
    lengths: Annotated[Path | None, typer.Option(help="Lengths CSV the documents are drawn from.")] = None,
    documents_file: Annotated[
        Path | None, typer.Option(help="Documents JSON that the drawn documents must agree with.")
    ] = None,
    view: Annotated[
        str | None, typer.Option(help="Print this view of the mask instead, as JSON; also beside --draw.")
    ] = None,
    draw: Draw = None,
    output: Annotated[Path | None, typer.Option(help="Write to this file instead of printing.")] = None,
) -> None:
    """Draw the mask of a static pattern and print its file: slices, and what they were drawn from."""
    from longca.data.histogram import read_histogram
    from longca.data.packing import AUTO
    from longca.masks.checking import check_mask
    from longca.masks.mask import draw_mask, mask_to_json
    from longca.masks.mask.documents_file import check_documents_file
    from longca.masks.views.registry import view_json

    if documents is not None:
        for name, given in (
            ("--dataset", dataset),
            ("--lengths", lengths),
            ("--documents-file", documents_file),
        ):
            if given is not None:
                raise LongcaError(f"--documents and {name}: give one of them")
    drawn = draw_mask(
        pattern,
        seqlen,
        dataset or AUTO,
        histogram=read_histogram(lengths) if lengths else None,
        seed=seed,
        sample=sample,
        parameters=_parse_settings(settings or []),
        documents=None if documents is None else _parse_documents(documents),
    )
    check_mask(drawn)
    if documents_file:
        check_documents_file(drawn, documents_file)
    text = mask_to_json(drawn) if view is None else view_json(view, drawn.slices, seqlen)
    if draw:
        _draw(drawn.slices, seqlen, pattern, drawn.area, drawn.parameters, draw)
    if output:
        write_atomically(output, text + "\n")
    if not output and (view is not None or not draw):
        print(text)


def blocks(
    pattern: Annotated[str, typer.Argument(help="Dynamic pattern: uniform_block or variable_block.")],
    seqlen: Seqlen,
    block: Annotated[int, typer.Option(help="Tokens of a block, on average for variable_block.")],
    density: Annotated[float, typer.Option(help="Share of the blocks each row of blocks keeps.")],
    kv_heads: Annotated[int, typer.Option(help="Key-value heads, each with a map of its own.")],
    seed: Seed = 42,
    sample: Sample = 0,
    head: Annotated[int | None, typer.Option(help="Head that --draw shows; 0 by default.")] = None,
    draw: Draw = None,
    output: Annotated[Path | None, typer.Option(help="Write the map to this .npz file.")] = None,
) -> None:
    """Draw the block map of a dynamic pattern; print a summary where no file is written."""
    from longca.masks.blocks import draw_block_map, save_block_map
    from longca.masks.slices import area

    if not draw:
        refuse_given({"--head": head}, "is the one that --draw shows; right: with --draw FILE")
    head = head or 0
    drawn = draw_block_map(pattern, seqlen, block, density, kv_heads, seed=seed, sample=sample)
    if draw:
        if not 0 <= head < kv_heads:
            raise LongcaError(f"--head {head}: must be below --kv-heads {kv_heads}")
        slices = drawn.slices(head)
        parameters = {"block": block, "density": density, "head": head}
        _draw(slices, seqlen, pattern, area(slices), parameters, draw)
    if output:
        save_block_map(drawn, output)
    if not draw and not output:
        heads, rows, columns = drawn.kept.shape
        summary = {
            "pattern": pattern,
            "seqlen": seqlen,
            "block": block,
            "density_nominal": density,
            "density": drawn.density,
            "kv_heads": heads,
            "blocks": [rows, columns],
            "seed": seed,
            "sample": sample,
            "area": drawn.area,
            "digest": drawn.digest,
        }
        print(json.dumps(summary))


def patterns() -> None:
    """List the static patterns: what they keep, their parameters, and the views that express them."""
    from longca.masks.views.support import patterns_table

    print(patterns_table())


def _parse_settings(settings: list[str]) -> dict[str, int]:
    parsed: dict[str, int] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        name = name.strip()
        if name in parsed:
            raise LongcaError(f"--set {setting}: {name} is given twice")
        try:
            parsed[name] = int(value)
        except ValueError:
            equals = ""
        if not equals:
            raise LongcaError(f"--set {setting}: must be name=whole number, as window=7")
    return parsed


def _parse_documents(text: str) -> list[int]:
    try:
        return [int(length) for length in text.split(",")]
    except ValueError:
        raise LongcaError(f"--documents {text}: must be whole numbers, as 3,4,5") from None


def _draw(
    slices: Any, seqlen: int, pattern: str, area: float, parameters: dict[str, Any], path: Path
) -> None:
    from longca.masks.picture import draw_picture

    shown = [f"{seqlen} tokens", *(f"{name} {value}" for name, value in parameters.items())]
    subtitle = f"{', '.join(shown)}: {area / seqlen**2:.1%} kept"
    draw_picture(slices, seqlen, seqlen, pattern, subtitle, path)
