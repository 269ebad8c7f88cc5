"""FlashInfer's prefill over ragged sequences: forward only, and planned ahead of it.

[FlashInfer](https://docs.flashinfer.ai)'s ragged batch; a whole sequence is a batch of one. Its window has a
left side alone. A packed custom mask is a dense mask and is not used. Planned while preparing; `backend`
names the one it chose.
"""

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, prepared
from longca.kernels.native_form import native_form, patterns_of, reasons_without
from longca.masks.mask import Mask

# Its window has a left side alone. A packed custom mask is a dense mask, and no form of its own.
FORMS = ("full", "causal", "causal window", "varlen full", "varlen causal")
_WORKSPACE_BYTES = 384 << 20


def prepare(case: Case, mask: Mask, tensors: Tensors) -> Prepared:
    """Plan a batch of packed sequences, one where the mask is whole; the library chooses its backend by the GPU."""
    import torch
    from flashinfer import BatchPrefillWithRaggedKVCacheWrapper

    form = native_form(mask, FORMS)
    device = tensors.q.device
    whole = torch.tensor([0, case.seqlen], dtype=torch.int32)
    queries, keys = form.packed.on("cpu") if form.packed else (whole, whole)
    workspace = torch.empty(_WORKSPACE_BYTES, dtype=torch.uint8, device=device)
    wrapper = BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD")
    wrapper.plan(
        queries.to(device),
        keys.to(device),
        case.q_heads,
        case.kv_heads,
        case.head_dim,
        causal=form.causal,
        window_left=form.left,
        q_data_type=tensors.q.dtype,
    )
    return prepared(wrapper.run, tensors, "shd", f"flashinfer {wrapper._backend}, {form.name}")


KERNEL = Kernel(
    summary="FlashInfer: ragged batch prefill, forward only",
    support=Support(
        patterns=patterns_of(FORMS),
        passes={"cuda": ("forward",)},
        capability=(7, 5),
        without=reasons_without(FORMS) | {"backward": "FlashInfer is for inference: it has no backward"},
    ),
    prepare=prepare,
    imports=("torch", "flashinfer"),
    distributions=("torch", "flashinfer-python"),
)
