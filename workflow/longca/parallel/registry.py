"""All mechanisms by name. A new one is a file with a FORM, and a line here."""

import importlib
from typing import TYPE_CHECKING

from longca.errors import LongcaError
from longca.names import unknown_name

if TYPE_CHECKING:
    from longca.parallel.form import Form

MECHANISMS = {
    "ulysses": "longca.parallel.ulysses",
    "ring_p2p": "longca.parallel.ring_p2p",
    "ring_allgather": "longca.parallel.ring_allgather",
    "usp": "longca.parallel.usp",
    "loongtrain": "longca.parallel.loongtrain",
}
# What one rank does without any of them, and what each of them is on one rank: the baseline of every comparison.
SINGLE = "single"


def load_mechanism(name: str) -> "Form":
    """The declaration of a mechanism; its module, and torch, are imported only now.

    Raises:
        LongcaError: for an unknown name.
    """
    return importlib.import_module(mechanism_module(name)).FORM


def mechanism_module(name: str) -> str:
    """The module that declares a mechanism, or the single rank. Raises LongcaError for an unknown name."""
    if name == SINGLE:
        return "longca.parallel.single"
    if name not in MECHANISMS:
        raise LongcaError(unknown_name(name, MECHANISMS, "mechanism"))
    return MECHANISMS[name]
