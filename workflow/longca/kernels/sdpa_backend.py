"""torch's scaled_dot_product_attention: one of its backends, asked for by name, and a look at which one ran."""

import warnings

from longca.cases import Case
from longca.kernels.interface import FallbackError, Prepared, Tensors, UnsupportedError, prepared
from longca.masks.mask import Mask
from longca.masks.views.dense import dense

# The operators that torch dispatches to, by what they are called here.
_LABELS = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": "flash for CPU",
    "aten::_scaled_dot_product_flash_attention": "flash",
    "aten::_scaled_dot_product_efficient_attention": "memory-efficient",
    "aten::_scaled_dot_product_cudnn_attention": "cuDNN",
    "aten::_scaled_dot_product_attention_math": "math",
}
# What each name of torch.nn.attention.SDPBackend may dispatch to.
_ALLOWED = {
    "FLASH_ATTENTION": {"flash", "flash for CPU"},
    "EFFICIENT_ATTENTION": {"memory-efficient"},
    "CUDNN_ATTENTION": {"cuDNN"},
    "MATH": {"math"},
}
# How torch begins where it has no backend left, by its release and device.
_REFUSALS = ("No available kernel", "No viable backend")


def prepare_sdpa(case: Case, mask: Mask, tensors: Tensors, backend: str | None = None) -> Prepared:
    """No mask for full, `is_causal` for causal, a dense boolean mask for every other pattern: SDPA knows no other form.

    backend: a name of torch.nn.attention.SDPBackend; None is torch's own choice among the fused ones.

    Raises:
        UnsupportedError: where torch refuses the backend, with its words.
        FallbackError: where another backend ran, or the math path, which is another kernel, as torch's own choice.
    """
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    types = [one.type for one in mask.slices]
    form, cells = "dense mask", None
    if types == ["full"] and mask.area == case.seqlen**2:
        form = "no mask"
    elif types == ["causal"] and mask.area == case.seqlen * (case.seqlen + 1) // 2:
        form = "is_causal"
    else:
        cells = torch.from_numpy(dense(mask.slices, case.seqlen, case.seqlen)).to(tensors.q.device)

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(q, k, v, cells, is_causal=form == "is_causal", enable_gqa=True)

    def forced(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(getattr(SDPBackend, str(backend))):
            return attention(q, k, v)

    what = prepared(attention if backend is None else forced, tensors, "bhsd", "")
    ran = _dispatched(what)
    allowed = set(_LABELS.values()) - {"math"} if backend is None else _ALLOWED[backend]
    if ran not in allowed:
        shape = f"{form}, {case.dtype}, {case.q_heads}-{case.kv_heads} heads"
        raise FallbackError(f"torch chose its {ran} path for {shape}")
    what.backend = f"{ran}, {form}"
    return what


def _dispatched(what: Prepared) -> str:
    """The backend that one forward really ran, seen by the profiler."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as seen, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            what.forward()
        except RuntimeError as error:
            if not str(error).startswith(_REFUSALS):
                raise
            raise UnsupportedError(_reasons([str(one.message) for one in said]) or str(error)) from error
    names = {event.key for event in seen.key_averages()}
    ran = [label for operator, label in _LABELS.items() if operator in names]
    if len(ran) != 1:
        raise FallbackError(f"torch ran no attention operator known here: {', '.join(sorted(names))}")
    return ran[0]


def _reasons(warned: list[str]) -> str:
    """Torch's words on why it refuses, without where in its source it says so and without its headings."""
    lines = (text.partition(" (Triggered internally")[0].strip() for text in warned)
    return "; ".join(dict.fromkeys(line for line in lines if not line.endswith("because:")))
