"""Where the libraries of single kernels lie: a setting of this machine, and of no study.

Some libraries cannot share an environment: the generations of flash-attn are one module's name. The variable
LONGCA_SITES names a YAML file that gives a kernel's workers folders of their own, and variables:

    fa2:
      path: [/opt/attention/fa2]
    fa4:
      path: [fa4, fa4/nvidia_cutlass_dsl/dsl_packages]
      variables: {FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED: "1"}
"""

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from longca.errors import LongcaError
from longca.kernels.registry import FAMILIES, kernel_names
from longca.names import unknown_name
from longca.study.loading import read_config

VARIABLE = "LONGCA_SITES"


class Site(BaseModel):
    """What a kernel's workers get: folders in front of their module path, and environment variables."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: list[Path] = []
    variables: dict[str, str] = {}


def kernel_site(kernel: str) -> Site:
    """The site of a kernel, empty where none is given; relative folders are below the file's.

    Raises LongcaError naming file, kernel and value where the file, a name or a folder is not right.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return Site()
    file = Path(named)
    sites = read_config(file)
    known = sorted({name for family in FAMILIES for name in kernel_names(family)})
    for name in sites:
        if name not in known:
            raise LongcaError(f"{file}: {unknown_name(name, known, 'kernel')}")
    try:
        site = Site.model_validate(sites.get(kernel, {}))
    except ValidationError as error:
        mistake = error.errors()[0]
        key = ".".join([kernel, *map(str, mistake["loc"])])
        raise LongcaError(
            f"{file}: {key}: {mistake['msg']}; right: path: [folder], variables: {{NAME: text}}"
        ) from error
    folders = [file.parent.absolute() / folder for folder in site.path]
    for folder in folders:
        if not folder.is_dir():
            raise LongcaError(f"{file}: {kernel}.path: {folder} is no folder")
    return site.model_copy(update={"path": folders})


def worker_environment(kernel: str) -> dict[str, str]:
    """The environment of a kernel's worker process: this one's, with its site."""
    site = kernel_site(kernel)
    environment = os.environ | site.variables
    path = [*map(str, site.path), *filter(None, [environment.get("PYTHONPATH")])]
    return environment | ({"PYTHONPATH": os.pathsep.join(path)} if path else {})
