"""torch's scaled_dot_product_attention with the backend torch itself chooses."""

from longca.cases import Case
from longca.kernels.interface import FallbackError, Kernel, Prepared, Support, Tensors, prepared
from longca.masks.mask import Mask
from longca.masks.patterns import PATTERNS
from longca.masks.views.dense import dense

# The operators that torch dispatches to, by what they are called here.
_BACKENDS = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": "flash for CPU",
    "aten::_scaled_dot_product_flash_attention": "flash",
    "aten::_scaled_dot_product_efficient_attention": "memory-efficient",
    "aten::_scaled_dot_product_cudnn_attention": "cuDNN",
    "aten::_scaled_dot_product_attention_math": "math",
}


def prepare(case: Case, mask: Mask, tensors: Tensors) -> Prepared:
    """No mask for full, `is_causal` for causal, a dense boolean mask for every other pattern: SDPA knows no other form.

    Raises FallbackError where torch chose the math path, which is another kernel (naive) under this one's name.
    """
    import torch
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

    what = prepared(attention, tensors, "bhsd", "")
    backend = _dispatched(what)
    if backend == "math":
        raise FallbackError(
            f"torch chose its math path for {form}, {case.dtype}, {case.q_heads}-{case.kv_heads} heads"
        )
    what.backend = f"{backend}, {form}"
    return what


def _dispatched(what: Prepared) -> str:
    """The backend that one forward really ran, seen by the profiler."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as seen:
        what.forward()
    names = {event.key for event in seen.key_averages()}
    ran = [label for operator, label in _BACKENDS.items() if operator in names]
    if len(ran) != 1:
        raise FallbackError(f"torch ran no attention operator known here: {', '.join(sorted(names))}")
    return ran[0]


KERNEL = Kernel(
    summary="torch.nn.functional.scaled_dot_product_attention, torch's own choice of backend",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cpu": ("forward", "backward"), "cuda": ("forward", "backward")},
        dtypes=frozenset({"float32", "float16", "bfloat16"}),
    ),
    prepare=prepare,
)
