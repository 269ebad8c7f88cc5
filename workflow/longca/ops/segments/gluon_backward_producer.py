"""The warp that copies the backward's tiles to shared memory: keys and values once an item, queries each step."""

# ruff: noqa: N803, SIM113
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma


@gluon.jit
def produce(
    q_desc,
    do_desc,
    k_desc,
    v_desc,
    start_desc,
    delta_desc,
    qdo_smem,
    kv_smem,
    stat_smem,
    kv_full,
    kv_empty,
    step_full,
    step_empty,
    plan,
    stat_rows,
    HEADS_INSIDE: gl.constexpr,
    BLOCK_M: gl.constexpr,
    D: gl.constexpr,
    STAGES: gl.constexpr,
    ITEM: gl.constexpr,
    SEGMENT: gl.constexpr,
    HEADER: gl.constexpr,
):
    step = 0
    done = 0
    items = plan + gl.load(plan)
    segments = plan + gl.load(plan + 1)
    q_rows = gl.load(plan + 4)
    k_rows = gl.load(plan + 5)
    mine = plan + HEADER + gl.program_id(0) * 2
    for index in range(gl.load(mine), gl.load(mine + 2)):
        item = items + index * ITEM
        row0 = gl.load(item)
        kv = gl.load(item + 2)
        begin = gl.load(item + 3)
        end = gl.load(item + 4)
        head0 = gl.load(item + 6)
        heads = gl.load(item + 7)
        mbarrier.wait(kv_empty.index(0), (done & 1) ^ 1)
        mbarrier.expect(kv_full.index(0), 2 * 128 * D * 2)
        tma.async_copy_global_to_shared(k_desc, [kv * k_rows + row0, 0], kv_full.index(0), kv_smem.index(0))
        tma.async_copy_global_to_shared(v_desc, [kv * k_rows + row0, 0], kv_full.index(0), kv_smem.index(1))
        outer_heads = heads
        row_heads = 1
        if HEADS_INSIDE:
            outer_heads = 1
            row_heads = heads
        for outer in range(head0, head0 + outer_heads):
            for s in range(begin, end):
                segment = segments + s * SEGMENT
                if HEADS_INSIDE:
                    segment = segments + (begin + end - 1 - s) * SEGMENT
                first = gl.load(segment)
                steps = gl.load(segment + 1)
                for j in range(steps):
                    at = first + j * BLOCK_M
                    if HEADS_INSIDE:
                        at = first + (steps - 1 - j) * BLOCK_M
                    for head in range(outer, outer + row_heads):
                        slot = step % STAGES
                        phase = (step // STAGES) & 1
                        row = head * q_rows + at
                        stat = head * stat_rows + at
                        full = step_full.index(slot)
                        mbarrier.wait(step_empty.index(slot), phase ^ 1)
                        mbarrier.expect(full, 2 * (BLOCK_M * D * 2 + BLOCK_M * 4))
                        tma.async_copy_global_to_shared(q_desc, [row, 0], full, qdo_smem.index(slot))
                        tma.async_copy_global_to_shared(start_desc, [stat], full, stat_smem.index(slot))
                        tma.async_copy_global_to_shared(
                            do_desc, [row, 0], full, qdo_smem.index(STAGES + slot)
                        )
                        tma.async_copy_global_to_shared(
                            delta_desc, [stat], full, stat_smem.index(STAGES + slot)
                        )
                        step += 1
        done += 1
