"""Every pattern, mechanism and sharding on real ranks, against attention on one device in float64."""

import pytest
from parallel_grid import CASES

from longca.parallel.topology import Topology
from longca.parallel.volume import sent_bytes

NAMED = [(size, case) for size, cases in CASES.items() for case in cases]


@pytest.mark.parametrize(("size", "case"), NAMED, ids=[f"{size}:{case.name}" for size, case in NAMED])
def test_agrees_with_one_device(size, case, results):
    for rank in results(size):
        errors = rank[case.name]["errors"]
        assert set(errors) == {"out", "lse", "dq", "dk", "dv"}
        for name, error in errors.items():
            assert error < 5e-6, name


DIVIDING = [(size, case) for size, case in NAMED if case.seqlen == 16 * size]


@pytest.mark.parametrize("pass_", ["forward", "backward"])
@pytest.mark.parametrize(("size", "case"), DIVIDING, ids=[f"{size}:{case.name}" for size, case in DIVIDING])
def test_sends_what_the_formula_says(size, case, pass_, results):
    for rank in results(size):
        assert rank[case.name]["rows"] == 16
        want = sent_bytes(case.topology, 16, *case.heads, 16, 4, pass_)
        assert rank[case.name]["sent"][pass_] == want


def test_the_formula_on_published_shapes():
    # 8k tokens a rank, 64:8 heads of 128, bfloat16: the formulas with their numbers written out.
    def sent(topology, pass_):
        return sent_bytes(topology, 8192, 64, 8, 128, 2, pass_)

    assert sent(Topology(ring=8), "forward") == 7 * 2 * 8192 * 8 * 128 * 2
    assert sent(Topology(ring=8), "backward") == 7 * 2 * 8192 * 8 * 128 * (2 + 4)
    assert sent(Topology(8), "forward") == 7 * 8192 // 8 * 128 * 2 * (128 + 16)
    assert sent(Topology(16), "backward") == 15 * 8192 // 16 * 128 * 2 * (128 + 32)
    assert sent(Topology(8, 4, 2), "forward") == sent(Topology(8), "forward") + 3 * 2 * 8192 * 8 * 128 * 2
