"""A world that torchrun or srun started: one `longca measure` a rank, rank 0's says what all of them do.

They talk over a TCP store that rank 0 serves. Each of them, rank 0 included, runs the process of its own rank and
relays what it says: so a rank that crashed, hangs or is out of memory is ended and started again, and the job goes on.

Keys: command/<n>, what to do, one after the other; said/<world>/<rank>/<i>, what a rank's process said; left/<rank>.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from longca.measure.world.following import POLL_S, follow, open_store
from longca.measure.world.membership import Membership
from longca.measure.world.place import Meeting, Place
from longca.measure.world.world import RankLostError, World

_LEAVING_S = 30.0


class Conductor:
    """Rank 0's part: the store, and its own rank's follower. Leaving it lets every follower go."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self._store = open_store(membership, serves=True)
        self._commands = self._worlds = 0
        self._follower = threading.Thread(target=follow, args=(membership,), daemon=True)
        self._follower.start()

    def command(self, what: str, **details: Any) -> None:
        """Tell every rank to do something next."""
        self._store.set(f"command/{self._commands}", json.dumps({"do": what, **details}))
        self._commands += 1

    def new_world(self) -> str:
        """The name of one more world."""
        self._worlds += 1
        return str(self._worlds)

    def said(self, key: str) -> str | None:
        """What stands at a key, or None."""
        return self._store.get(key).decode() if self._store.check([key]) else None

    def close(self) -> None:
        """End every rank's process and let the followers go; the store stays until they have."""
        self.command("leave")
        keys = [f"left/{rank}" for rank in range(self.membership.world_size)]
        deadline = time.monotonic() + _LEAVING_S
        while not self._store.check(keys) and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def __enter__(self) -> "Conductor":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class JoinedWorld(World):
    """Every rank a process beside a `longca measure` of its own, on whichever machine that is."""

    def __init__(self, place: Place, conductor: Conductor) -> None:
        super().__init__(place.world_size)
        self._place, self._conductor = place, conductor
        self._name: str | None = None
        self._heard: Counter[int] = Counter()

    def close(self) -> None:
        """See World."""
        if self._name is not None:
            self._conductor.command("end")
            self._name = None

    def _start(self) -> None:
        self._name = self._conductor.new_world()
        self._heard.clear()
        here = self._conductor.membership
        meeting = Meeting(host=here.host, port=here.port, name=f"ranks/{self._name}")
        self._conductor.command(
            "start", world=self._name, place=asdict(replace(self._place, meeting=meeting))
        )

    def _send(self, line: str) -> None:
        self._conductor.command("ask", line=line)

    def _arrived(self, missing: set[int], longest_s: float) -> Mapping[int, str | RankLostError]:
        deadline = time.monotonic() + longest_s
        while True:
            found: dict[int, str | RankLostError] = {}
            for rank in missing:
                text = self._conductor.said(f"said/{self._name}/{rank}/{self._heard[rank]}")
                if text is not None:
                    self._heard[rank] += 1
                    said = json.loads(text)
                    found[rank] = RankLostError(said["lost"]) if "lost" in said else said["line"]
            if found or time.monotonic() >= deadline:
                return found
            time.sleep(POLL_S)
