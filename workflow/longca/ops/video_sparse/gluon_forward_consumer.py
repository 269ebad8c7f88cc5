"""The warpgroup of the forward: a block of 64 queries over its list of key blocks."""

# ruff: noqa: N803, N806, E741
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def _end_block():
    """Never runs. The branch to it ends a block of code: the assembler waits for products in flight as early in a
    block as it can, which would be before the softmax they are to run beside.
    """
    threads = gl.arange(0, 128, gl.BlockedLayout([1], [32], [4], [0]))
    gl.inline_asm_elementwise(
        "nanosleep.u32 1; mov.b32 $0, $1;", "=r,r", [threads], gl.int32, is_pure=False, pack=1
    )


@gluon.jit
def _softmax(s, m, l, SCALE2: gl.constexpr, P_LAYOUT: gl.constexpr, DTYPE: gl.constexpr):
    """A step's weights as a left operand, the new maxima and sums, and what the old sums and outputs shrink by."""
    m_new = gl.maximum(m, gl.max(s, 1) * SCALE2)
    p = gl.exp2(s * SCALE2 - m_new[:, None])
    alpha = gl.exp2(m - m_new)
    return gl.convert_layout(p.to(DTYPE), P_LAYOUT), m_new, l * alpha + gl.sum(p, 1), alpha


@gluon.jit
def consume(
    q_smem, k_smem, v_smem, q_full, k_full, k_empty, v_full, v_empty, out_desc, lse, counts, width,
    SCALE2: gl.constexpr, GROUP: gl.constexpr, BLOCK: gl.constexpr, D: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """out and lse of the program's block of queries, of tiles that the producer copies.

    Barriers: *_full arrive with a copy's bytes, *_empty once the products have read a slot. q_smem leaves as out.
    """
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    Q_LAYOUT: gl.constexpr = gl.DotOperandLayout(0, S_LAYOUT, 2)
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(0, O_LAYOUT, 2)
    ROW: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    DTYPE: gl.constexpr = q_smem.dtype
    block, rows, head = gl.program_id(0), gl.num_programs(0), gl.program_id(1)
    count = gl.load(counts + (head // GROUP) * rows + block)
    zero = gl.zeros([BLOCK, BLOCK], gl.float32, S_LAYOUT)
    m = gl.full([BLOCK], float("-inf"), gl.float32, ROW)
    l = gl.zeros([BLOCK], gl.float32, ROW)
    o = gl.zeros([BLOCK, D], gl.float32, O_LAYOUT)
    if count > 0:
        mbarrier.wait(q_full, 0)
        q = q_smem.load(Q_LAYOUT)  # a left operand in registers costs none of shared memory's bandwidth
        mbarrier.wait(k_full.index(0), 0)
        s = warpgroup_mma(q, k_smem.index(0).permute((1, 0)), zero, use_acc=False, is_async=True)
        s = warpgroup_mma_wait(0, deps=[s])
        mbarrier.arrive(k_empty.index(0))
        p, m, l, _ = _softmax(s, m, l, SCALE2, P_LAYOUT, DTYPE)
        for step in range(1, count):
            slot = step % STAGES
            before = (step - 1) % STAGES
            # scores of this step and the output of the step before run while this step's softmax is computed
            mbarrier.wait(k_full.index(slot), (step // STAGES) & 1)
            s = warpgroup_mma(q, k_smem.index(slot).permute((1, 0)), zero, use_acc=False, is_async=True)
            mbarrier.wait(v_full.index(before), ((step - 1) // STAGES) & 1)
            o = warpgroup_mma(p, v_smem.index(before), o, is_async=True)
            s = warpgroup_mma_wait(1, deps=[s])
            mbarrier.arrive(k_empty.index(slot))
            p_new, m, l, alpha = _softmax(s, m, l, SCALE2, P_LAYOUT, DTYPE)
            if width < 0:  # never
                _end_block()
            o = warpgroup_mma_wait(0, deps=[o])
            mbarrier.arrive(v_empty.index(before))
            o = o * gl.convert_layout(alpha, gl.SliceLayout(1, O_LAYOUT))[:, None]
            p = p_new
        last = count - 1
        slot = last % STAGES
        mbarrier.wait(v_full.index(slot), (last // STAGES) & 1)
        o = warpgroup_mma(p, v_smem.index(slot), o, is_async=True)
        o = warpgroup_mma_wait(0, deps=[o])
    inverse = gl.where(l > 0, 1.0 / l, 0.0)
    o = o * gl.convert_layout(inverse, gl.SliceLayout(1, O_LAYOUT))[:, None]
    first = (head * rows + block) * BLOCK
    gl.store(lse + first + gl.arange(0, BLOCK, ROW), (m + gl.log2(l)) * 0.6931471805599453)
    q_smem.store(o.to(DTYPE))
    fence_async_shared()
    tma.async_copy_shared_to_global(out_desc, [first, 0], q_smem)
    tma.store_wait(0)
