"""The warp that copies the forward's tiles to shared memory: queries once an item, keys and values each step."""

# ruff: noqa: N803, SIM113
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma


@gluon.jit
def produce(
    q_desc,
    k_desc,
    v_desc,
    q_smem,
    kv_smem,
    q_full,
    q_empty,
    k_full,
    k_empty,
    v_full,
    v_empty,
    plan,
    GROUP: gl.constexpr,
    BLOCK_N: gl.constexpr,
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
        head = gl.load(item + 2)
        begin = gl.load(item + 3)
        end = gl.load(item + 4)
        kv_row = (head // GROUP) * k_rows
        pair = done & 1
        mbarrier.wait(q_empty.index(pair), ((done >> 1) & 1) ^ 1)
        mbarrier.expect(q_full.index(pair), 128 * D * 2)
        for half in gl.static_range(2):
            tma.async_copy_global_to_shared(
                q_desc,
                [head * q_rows + row0 + 64 * half, 0],
                q_full.index(pair),
                q_smem.index(pair * 2 + half),
            )
        for s in range(begin, end):
            first = gl.load(segments + s * SEGMENT)
            steps = gl.load(segments + s * SEGMENT + 1)
            for j in range(steps):
                slot = step % STAGES
                phase = (step // STAGES) & 1
                row = kv_row + first + j * BLOCK_N
                mbarrier.wait(k_empty.index(slot), phase ^ 1)
                mbarrier.expect(k_full.index(slot), BLOCK_N * D * 2)
                tma.async_copy_global_to_shared(k_desc, [row, 0], k_full.index(slot), kv_smem.index(slot))
                mbarrier.wait(v_empty.index(slot), phase ^ 1)
                mbarrier.expect(v_full.index(slot), BLOCK_N * D * 2)
                tma.async_copy_global_to_shared(
                    v_desc, [row, 0], v_full.index(slot), kv_smem.index(STAGES + slot)
                )
                step += 1
        done += 1
