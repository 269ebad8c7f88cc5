"""Which views express which patterns, found by lowering a mask of each."""

from longca.masks.mask import draw_mask
from longca.masks.patterns import PATTERNS
from longca.masks.views.registry import VIEWS
from longca.masks.views.unavailable import ViewUnavailable

# Small enough for every parameter to matter: no window reaches the end, no block holds a whole document.
_SEQLEN = 2048
_PARAMETERS = {"window": 128, "global_tokens": 128, "block": 128}


def views_of(pattern: str) -> list[str]:
    """The views that express a sample of the pattern."""
    taken = {name: _PARAMETERS[name] for name in PATTERNS[pattern].parameters if name in _PARAMETERS}
    slices = draw_mask(pattern, _SEQLEN, parameters=taken).slices
    expressing = []
    for name, view in VIEWS.items():
        try:
            view.lower(slices, _SEQLEN, _SEQLEN)
        except ViewUnavailable:
            continue
        expressing.append(name)
    return expressing


def patterns_table() -> str:
    """The patterns as a Markdown table: rule, parameters, whether they take documents, views."""
    lines = ["| pattern | keeps (i, j) where | made of | views |", "| --- | --- | --- | --- |"]
    for pattern in PATTERNS.values():
        parts = [*(["documents"] if pattern.has_documents else []), *pattern.parameters]
        lines.append(
            f"| {pattern.name} | {pattern.rule} | {', '.join(parts)} | {', '.join(views_of(pattern.name))} |"
        )
    return "\n".join(lines)
