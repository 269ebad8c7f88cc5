"""Reading a study's config file, with errors a person can act on."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from longca.errors import LongcaError
from longca.files import write_atomically
from longca.names import unknown_name
from longca.study.model import Study


class _UniqueKeyLoader(yaml.SafeLoader):
    """A safe loader that refuses a key given twice, where YAML would silently keep the last.

    Keys are looked at as they were written: one that a merge (`<<: *other`) brings may be given again.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys: list[Any] = []
        for key_node, _ in node.value:
            merges = key_node.tag == "tag:yaml.org,2002:merge"
            key = key_node.value if merges else self.construct_object(key_node, deep=True)
            if key in keys:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key!r} stands there twice", problem_mark=key_node.start_mark
                )
            keys.append(key)
        return node


def read_config(path: Path) -> dict[str, Any]:
    """The YAML mapping in `path`. Raises LongcaError where it cannot be read or is no mapping."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)
    except OSError as error:
        raise LongcaError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LongcaError(f"{path}: is not UTF-8 at byte {error.start}") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise LongcaError(f"{path}:{line}: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise LongcaError(f"{path}: is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise LongcaError(f"{path}: holds no mapping; right: a study, as config/smoke.yaml")
    return content


def read_study(path: Path) -> Study:
    """The study in the config file `path`. Raises LongcaError naming file, key, value and what is allowed."""
    return check_study(read_config(path), str(path))


def check_study(config: Mapping[str, Any], source: str) -> Study:
    """Validate a config read from `source`. Raises LongcaError with one line a mistake."""
    try:
        return Study.model_validate(dict(config))
    except ValidationError as error:
        lines = [f"{source}: {_describe(dict(mistake), config)}" for mistake in error.errors()]
        raise LongcaError("\n".join(lines)) from error


def settle_study(config: Mapping[str, Any], files: Sequence[Path]) -> tuple[Study, Path]:
    """The study Snakemake was started with, and the one file that says it.

    That is the config file itself; where several were merged or `--config` changed one, the merged study is
    written to results/<study>/study.yaml, so that every command of a rule can still be typed by hand.
    """
    files = [_from_here(file) for file in files]
    source = ", ".join(map(str, files)) or "--config"
    if len(files) == 1 and read_config(files[0]) == dict(config):
        return check_study(config, source), files[0]
    study = check_study(config, f"{source} with --config" if files else source)
    merged = Path("results") / study.study / "study.yaml"
    text = yaml.safe_dump(_plain(config), sort_keys=False)
    if not merged.exists() or merged.read_text(encoding="utf-8") != text:
        write_atomically(merged, text)
    return study, merged


def _from_here(file: Path) -> Path:
    """A file below the work directory as a relative path: nothing of the machine gets into the commands."""
    return file.relative_to(Path.cwd()) if file.is_absolute() and file.is_relative_to(Path.cwd()) else file


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


# What pydantic calls the types of YAML's lists and mappings.
_TYPE_WORDS = {
    "tuple_type": "right: a list",
    "list_type": "right: a list",
    "dict_type": "right: keys with values",
    "model_type": "right: keys with values",
}


def _describe(mistake: dict[str, Any], config: Mapping[str, Any]) -> str:
    """One line for one pydantic error: key, value, what is allowed."""
    location, kind, value = mistake["loc"], mistake["type"], mistake.get("input")
    if len(location) > 1 and location[1] == 0 and not isinstance(config[location[0]], list):
        location = (location[0], *location[2:])  # one grid, not given as a list
    key = ".".join(str(part) for part in location if part != "[key]") or "(top level)"
    if kind == "extra_forbidden":
        owner = ".".join(str(part) for part in location[:-1]) or "the top level"
        return f"{key}: {unknown_name(location[-1], _fields_at(location[:-1]), f'key of {owner}')}"
    if kind == "missing":
        return f"{key}: is missing"
    if kind == "value_error":
        return f"{key}: {mistake['ctx']['error']}" if location else str(mistake["ctx"]["error"])
    if kind == "too_short":
        return f"{key}: is empty; right: at least one value"
    words = _TYPE_WORDS.get(kind) or mistake["msg"][:1].lower() + mistake["msg"][1:]
    return f"{key}: {value!r} is wrong; {words}"


def _fields_at(location: Sequence[Any]) -> list[str]:
    """Names of the keys the model allows at a location of the config."""
    annotation: Any = Study
    for part in (part for part in location if not isinstance(part, int)):
        inside = (
            get_args(annotation)[1]
            if get_origin(annotation) is dict
            else annotation.model_fields[part].annotation
        )
        # Of `Grid | None`, the grid; a mapping of corpora stays one.
        optional = get_origin(inside) is not dict
        annotation = next((arg for arg in get_args(inside) if optional and _is_model(arg)), inside)
    return list(annotation.model_fields)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
