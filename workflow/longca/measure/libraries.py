"""What a measuring process says of the libraries a kernel stands on."""

import importlib
import sys
from collections.abc import Mapping
from importlib import metadata


def import_error(modules: tuple[str, ...], majors: Mapping[str, int]) -> str | None:
    """Import a kernel's modules; the error of the first that fails, whatever a broken build raises, or None.

    majors: the generation of a distribution that must have been imported, where several share a module's name.
    """
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # a library built for another ABI raises anything
            return f"{type(error).__name__}: {error}"
    for distribution, major in majors.items():
        version = installed_version(distribution) or "of no known version"
        if version.partition(".")[0] != str(major):
            return f"{distribution} {version} is what imports here; right: version {major} (envs/README.md says how)"
    return None


def installed_version(distribution: str) -> str | None:
    """The installed version of a distribution; of a package put on the path without metadata, what it says itself."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        module = sys.modules.get(distribution.replace("-", "_"))
        return str(getattr(module, "__version__", None)) if module else None
