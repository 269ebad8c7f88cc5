"""What is wrong in a file that pydantic refused, as one line."""

from pydantic import ValidationError


def first_problem(error: ValidationError) -> str:
    """Key, what would be right and the value found, of the first of the errors."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if not key or first["type"] == "missing":
        return f"key {key}: missing" if key else first["msg"]
    return f"key {key}: {first['msg'].removeprefix('Input ')}, found {first['input']!r:.60}"
