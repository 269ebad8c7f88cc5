"""What stands for a plan in torch operators, which take no Python objects: a tensor that holds its number.

A tensor is an input of a compiled graph and never a constant of it: one graph serves every plan of its shapes, keeps
none alive that nobody else does, and what it saves for a backward keeps that backward's plan.
"""

import itertools
import secrets
import weakref
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from longca.ops.segments.plan import Plan

# From anywhere, so that a handle of another process stands for no plan of this one.
_NUMBERS = itertools.count(secrets.randbits(62))
_SERVED: "dict[int, Plan]" = {}


def issue(plan: "Plan") -> torch.Tensor:
    """A new int64 scalar on the CPU. Its plan lives for as long as its memory does, whoever refers to that."""
    number = next(_NUMBERS)
    # Not the plan itself, which refers to its handle: neither would ever be freed.
    served = object.__new__(type(plan))
    served.__dict__.update(plan.__dict__)
    _SERVED[number] = served
    held = np.array(number, np.int64)
    weakref.finalize(held, _SERVED.pop, number).atexit = False
    with torch.inference_mode(False):  # what is made within could not be saved for a backward
        return torch.from_numpy(held)  # its memory is the array's, which it keeps


def plan_of(handle: torch.Tensor) -> "Plan":
    """The plan a handle stands for.

    Raises RuntimeError for a copy of one whose plan is gone, and for one of another process.
    """
    plan = _SERVED.get(int(handle))
    if plan is None:
        raise RuntimeError("the plan of this call is gone; right: keep it until the last call that takes it")
    return plan
