"""The forward's softmax over the steps of a row: sums relative to a highest score, rescaled only where that has grown.

The branch stands inside one piece of inline assembly, for Gluon has none that a warp takes by itself.
"""

# ruff: noqa: N803, E741
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


def _code(values):
    """x *= factor over all `values` numbers that a thread holds, skipped by a warp whose factors are all 1.

    A thread's numbers are of two rows, in pairs of neighbouring columns (PTX ISA, fragments of wgmma's D): 0 and 1 of
    the first, 2 and 3 of the second.
    """
    lines = [
        ".reg .pred changed;",
        f"setp.neu.f32 changed, ${2 * values}, 0f3F800000;",
        f"setp.neu.or.f32 changed, ${2 * values + 2}, 0f3F800000, changed;",
        "vote.sync.any.pred changed, changed, 0xffffffff;",
        "@!changed bra.uni DONE;",
        *(f"mul.f32 ${i}, ${i}, ${2 * values + i};" for i in range(values)),
    ]
    return "{ " + " ".join(lines) + " DONE: }"


def _operands(values):
    return ",".join(["=f"] * values + [str(i) for i in range(values)] + ["f"] * values)


# Powers of two by which a row's scores may outgrow what its sums are relative to before those are rescaled, as in
# FlashAttention 4: probabilities up to 2^8 are as exact in 16 bits, and after the first steps hardly a row is rescaled.
SLACK = gl.constexpr(8.0)
CODE_64, OPERANDS_64 = gl.constexpr(_code(32)), gl.constexpr(_operands(32))
CODE_128, OPERANDS_128 = gl.constexpr(_code(64)), gl.constexpr(_operands(64))


@gluon.jit
def softmax(s, m, l, SCALE2: gl.constexpr, P_LAYOUT: gl.constexpr, DTYPE: gl.constexpr):
    """Of a step's scores: probabilities, what they are relative to, the sum so far, the factor of what was summed."""
    highest = gl.max(s, 1) * SCALE2
    m_new = gl.where(highest - m > SLACK, highest, m)
    shift = gl.where(m_new == float("-inf"), 0.0, m_new)
    p = gl.exp2(s * SCALE2 - shift[:, None])
    factor = gl.exp2(m - shift)
    return gl.convert_layout(p.to(DTYPE), P_LAYOUT), m_new, l * factor + gl.sum(p, 1), factor


@gluon.jit
def rescale(o, factor, D: gl.constexpr):
    """o [64, D], of one warpgroup, times factor [64]."""
    factor = gl.convert_layout(factor, gl.SliceLayout(1, o.type.layout))[:, None].broadcast_to([64, D])
    if D == 128:
        return gl.inline_asm_elementwise(
            CODE_128, OPERANDS_128, [o, factor], gl.float32, is_pure=True, pack=64
        )
    else:
        return gl.inline_asm_elementwise(CODE_64, OPERANDS_64, [o, factor], gl.float32, is_pure=True, pack=32)
