"""What carries messages between ranks: copy engines where all ranks are GPUs of one host, else the world's backend.

One of them for messages of every size. A small one sent by a kernel waits as long as a large one for multiprocessors
that a persistent attention kernel holds; and most of a copy's fixed cost is the host's, which is ahead of the device.
"""

import torch

from longca.measure.world.place import Place
from longca.measure.world.together import Together
from longca.parallel.mailbox_link import MakeMemory


def shared_memory(place: Place, device: torch.device, together: Together) -> MakeMemory | None:
    """Memory that all ranks can write to, or None where some cannot. Collective; the same on all ranks.

    A rank that does not see the GPUs of the others cannot tell, and so has none.
    """
    seen = torch.cuda.device_count() if device.type == "cuda" else 0
    reaches = 1 < place.world_size == place.local_size <= seen
    reaches = reaches and all(
        torch.cuda.can_device_access_peer(device, other) for other in range(seen) if other != device.index
    )
    if not all(together.gather(reaches)):
        return None
    from longca.parallel.peer_memory import PeerMemory  # what it imports of torch, other ranks do without

    return PeerMemory
