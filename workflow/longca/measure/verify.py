"""Does a kernel compute this very case? Its results on one KV group beside the float64 oracle, within an error budget.

The budget is what the case's dtype itself costs: the oracle once more with its probabilities, score gradients and
results rounded to that dtype, as every fused kernel rounds them. A kernel may err a small multiple of that, over all
rows and in each row; a mask one column off errs far more.
"""

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from longca.cases import Case
from longca.kernels.interface import Prepared, Tensors, from_layout
from longca.kernels.oracle import kept_rows
from longca.masks.blocks import BlockMap
from longca.masks.mask import Mask
from longca.measure.truth import Shared, Truth, find_truth

GRADIENTS = ("dq", "dk", "dv")
# Multiples of the rounding cost a kernel may err by: over all rows, and in any one row. On rows of few cells, where
# chance is greatest, kernels that round elsewhere than the oracle reach 1.2.
_TOTAL, _ROW = 3.0, 3.0
# Sums over long rows in float32 cost this much on their own (relative); the oracle's rounding does not contain it.
_SUMMATION = 1e-5


@dataclass(frozen=True)
class Verdict:
    """Relative errors by tensor (norm of the difference over the oracle's), and what is over its budget, or None."""

    relative_error: dict[str, float | None]
    wrong: str | None


class Verifier:
    """The oracle of one cell of the grid, on a copy of its data, computed once for both passes."""

    def __init__(
        self, case: Case, mask: Mask | BlockMap, tensors: Tensors, oracles: Path | None = None
    ) -> None:
        """`oracles`: a folder where kernels of one run share what the oracle took long for."""
        # The last group: an offset that wraps around and a head that reads its neighbour's keys both show there.
        self.group = slice(case.q_heads - case.q_heads // case.kv_heads, case.q_heads)
        self.kv_head = case.kv_heads - 1
        self._data = (
            tensors.q[self.group].clone(),
            tensors.k[self.kv_head].clone(),
            tensors.v[self.kv_head].clone(),
            tensors.dout[self.group].clone(),
        )
        self._kept = kept_rows(mask, self.kv_head, tensors.q.device)
        self._shared = None if oracles is None else Shared(oracles, f"{mask.digest} {self.kv_head}")
        self.dtype = tensors.q.dtype

    @cached_property
    def truth(self) -> Truth:
        """The group's attention in float64, and what the case's dtype costs where kernels round."""
        return find_truth(self._data, self._kept, self.dtype, self._shared)

    def check(self, what: Prepared, gradients: bool) -> Verdict:
        """Run the kernel's forward, and its backward where `gradients`, and compare."""
        results = {"out": from_layout(what.forward().detach(), what.layout)[self.group]}
        if gradients:
            assert what.backward is not None
            dq, dk, dv = (from_layout(gradient.detach(), what.layout) for gradient in what.backward())
            results |= {"dq": dq[self.group], "dk": dk[self.kv_head], "dv": dv[self.kv_head]}
        errors: dict[str, float | None] = dict.fromkeys(("out", *GRADIENTS))
        complaints = []
        for name, result in results.items():
            errors[name], complaint = self._compare(name, result)
            if complaint:
                complaints.append(f"{name} {complaint}")
        return Verdict(errors, "; ".join(complaints) or None)

    def _compare(self, name: str, result: torch.Tensor) -> tuple[float | None, str | None]:
        """Relative error of a tensor, and the complaint over the budget. A result that is not finite has no error."""
        truth = self.truth
        exact, size, cost, magnitude = (
            part[name] for part in (truth.exact, truth.size, truth.cost, truth.magnitude)
        )
        if result.shape != exact.shape:
            return None, f"has shape {tuple(result.shape)}, right: {tuple(exact.shape)}"
        result = result.double()
        if not result.isfinite().all():
            return None, "is not finite"
        error = (result - exact).norm(dim=-1)
        summation = _SUMMATION * (_rms(size) + _rms(magnitude))
        reference = _rms(size) if _rms(size) > summation else max(_rms(magnitude), sys.float_info.min)
        relative = _rms(error) / reference
        allowed = _TOTAL * _rms(cost) + summation
        if _rms(error) > allowed:
            return relative, f"errs by {relative:.2g}, allowed {allowed / reference:.2g}"
        # A row's own cost is a throw of few dice where it keeps few cells: half a unit of rounding more is no surprise.
        chance = torch.finfo(self.dtype).eps / 4 * (size + magnitude)
        allowed_row = _ROW * (cost + chance) + 10 * summation
        if (error > allowed_row).any():
            worst = tuple(int(i) for i in torch.unravel_index((error / allowed_row).argmax(), error.shape))
            what = f"errs by {error[worst] / reference:.2g} in row {worst[-1]}"
            return relative, f"{what}, allowed {allowed_row[worst] / reference:.2g} there"
        return relative, None


def _rms(values: torch.Tensor) -> float:
    return float(values.square().mean().sqrt())
