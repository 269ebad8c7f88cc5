"""The warp that copies the forward's tiles to shared memory: the queries once, a block of keys and values each step."""

# ruff: noqa: N803, N806
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma


@gluon.jit
def produce(
    q_desc, k_desc, v_desc, q_smem, k_smem, v_smem, q_full, k_full, k_empty, v_full, v_empty, counts, lists, width,
    GROUP: gl.constexpr, BLOCK: gl.constexpr, D: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """Copies the program's tiles, STAGES steps ahead at most; the slots' first waits pass, for nothing is in them."""
    BYTES: gl.constexpr = BLOCK * D * 2
    block, rows, head = gl.program_id(0), gl.num_programs(0), gl.program_id(1)
    line = (head // GROUP) * rows + block
    count = gl.load(counts + line)
    kept = lists + line.to(gl.int64) * width
    if count > 0:
        mbarrier.expect(q_full, BYTES)
        tma.async_copy_global_to_shared(q_desc, [(head * rows + block) * BLOCK, 0], q_full, q_smem)
        first = (head // GROUP) * rows
        place = gl.load(kept)
        for step in range(count):
            row = (first + place) * BLOCK
            place = gl.load(kept + gl.minimum(step + 1, count - 1))  # a step ahead: the copies wait for it
            slot = step % STAGES
            phase = ((step // STAGES) & 1) ^ 1
            mbarrier.wait(k_empty.index(slot), phase)
            mbarrier.expect(k_full.index(slot), BYTES)
            tma.async_copy_global_to_shared(k_desc, [row, 0], k_full.index(slot), k_smem.index(slot))
            mbarrier.wait(v_empty.index(slot), phase)
            mbarrier.expect(v_full.index(slot), BYTES)
            tma.async_copy_global_to_shared(v_desc, [row, 0], v_full.index(slot), v_smem.index(slot))
