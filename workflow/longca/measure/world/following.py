"""The part of every rank that a launcher started: run its own rank's process as rank 0 says, and relay what it says."""

import json
import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from longca.measure.world.membership import Membership
from longca.measure.world.place import Place, read_place
from longca.measure.world.rank_process import RankProcess
from longca.measure.world.world import RankLostError

if TYPE_CHECKING:
    from torch.distributed import TCPStore

POLL_S = 0.01
# Ranks of one job start minutes apart where a file system is slow.
_MEETING_TIMEOUT = timedelta(minutes=10)


def follow(membership: Membership) -> None:
    """Run the process of this rank as rank 0 says, until it says to leave or is gone itself."""
    store = open_store(membership, serves=False)
    process: RankProcess | None = None
    world, told, number = "", 0, 0
    try:
        while True:
            if store.check([f"command/{number}"]):
                command = json.loads(store.get(f"command/{number}"))
                number += 1
                if command["do"] == "ask" and process is not None:
                    process.send(command["line"])
                    continue
                if process is not None:
                    process.close()
                    process = None
                if command["do"] == "leave":
                    return
                if command["do"] == "start":
                    world, told = command["world"], 0
                    process = RankProcess(_own_place(command["place"], membership))
            elif process is not None and process.has_something(POLL_S):
                said = process.receive()
                text = {"lost": str(said)} if isinstance(said, RankLostError) else {"line": said}
                store.set(f"said/{world}/{membership.rank}/{told}", json.dumps(text))
                told += 1
                if isinstance(said, RankLostError):
                    process.close()
                    process = None
            elif process is None:
                time.sleep(POLL_S)
    finally:
        if process is not None:
            process.close()
        store.set(f"left/{membership.rank}", "")


def _own_place(place: dict[str, Any], membership: Membership) -> Place:
    return replace(
        read_place(place),
        rank=membership.rank,
        local_rank=membership.local_rank,
        local_size=membership.local_size,
    )


def open_store(membership: Membership, serves: bool) -> "TCPStore":
    """Where the ranks' followers meet; rank 0 serves it."""
    from torch.distributed import TCPStore

    return TCPStore(
        membership.host,
        membership.port,
        is_master=serves,
        timeout=_MEETING_TIMEOUT,
        wait_for_workers=False,
    )
