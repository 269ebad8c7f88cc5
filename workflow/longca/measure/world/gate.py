"""The gate over ranks: what all have gathered, beside the oracle, on one of them; all learn what came of it."""

from longca.kernels.interface import Prepared
from longca.measure.protocol import Outcome
from longca.measure.verify import Verdict, Verifier
from longca.measure.world.together import Together


class Gate:
    """Checks a cell before it is timed, once for both passes, and after each timing.

    gathered: collective calls that give whole tensors on every rank. verifier: rank 0's, None on the others.
    """

    def __init__(self, gathered: Prepared, verifier: Verifier | None, together: Together) -> None:
        self._gathered, self._verifier, self._together = gathered, verifier, together
        self.verdict: Verdict | None = None

    def before(self) -> Outcome | None:
        """What is wrong with the cell, or None; collective the first time only."""
        if self.verdict is None:
            self.verdict = self._check(gradients=self._gathered.backward is not None)
        return self._wrong(self.verdict, "")

    def after(self, pass_: str) -> Outcome | None:
        """What is wrong with a pass after it was timed, or None. Collective."""
        return self._wrong(self._check(gradients=pass_ == "backward"), "after it was timed, ")

    def _check(self, gradients: bool) -> Verdict:
        verdict = Verdict({}, None)
        if self._verifier is not None:
            verdict = self._verifier.check(self._gathered, gradients)
        else:
            self._gathered.forward()
            if gradients and self._gathered.backward is not None:
                self._gathered.backward()
        first: Verdict = self._together.gather(verdict)[0]
        return first

    def _wrong(self, verdict: Verdict, when: str) -> Outcome | None:
        if verdict.wrong is None:
            return None
        return Outcome(
            status="wrong",
            reason=when + verdict.wrong,
            relative_error=verdict.relative_error,
            backend=self._gathered.backend,
        )
