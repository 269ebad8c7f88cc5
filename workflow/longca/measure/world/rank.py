"""The process of one rank: it joins its world, then measures any number of cases together with the other ranks.

    python -m longca.measure.world.rank PLACE

It may crash, hang or run out of memory: who asked it loses one case, ends the whole world and starts another.
"""

import json
import os
import sys
from multiprocessing.connection import Connection

from pydantic import BaseModel

from longca.kernels.registry import KernelModuleError, load_kernel
from longca.measure.libraries import import_error, installed_version
from longca.measure.parent import die_with_parent
from longca.measure.protocol import Loaded, Ready, Request
from longca.measure.world.place import Place, read_place


def serve(connection: Connection, place: Place) -> None:
    """Answer requests until the connection ends."""
    die_with_parent()
    _write_to(place.log)
    os.environ.update(place.variables)
    sys.path[:0] = place.path

    from longca.measure import device as devices
    from longca.measure.world.joining import join, own_device

    device = own_device(place)
    environment = devices.describe(device) | join(place, device)
    _send(connection, Ready(device=device.type, environment=environment))  # type: ignore[arg-type]
    try:
        form = load_kernel("context_parallel", place.kernel)
    except KernelModuleError as error:
        _send(connection, Loaded(versions={}, missing=str(error), serves=False))
        return
    missing = import_error(form.imports, form.majors)
    versions = {name: installed_version(name) for name in form.distributions}
    _send(connection, Loaded(versions=versions, missing=missing))

    from longca.measure.world.rank_measurer import RankMeasurer

    measurer = RankMeasurer(form, place, device, missing)  # type: ignore[arg-type]
    while True:
        try:
            line = connection.recv_bytes()
        except EOFError:
            return
        request = Request.model_validate_json(line)
        _send(connection, measurer.measure(request).model_copy(update={"number": request.number}))


def main() -> None:
    """Be the rank whose place is told in JSON; its connection is stdin."""
    connection = Connection(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    serve(connection, read_place(json.loads(sys.argv[1])))


def _write_to(log: str) -> None:
    """What libraries print goes to a file: its last line says how a rank ended."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)


def _send(connection: Connection, message: BaseModel) -> None:
    connection.send_bytes(message.model_dump_json().encode())


if __name__ == "__main__":
    main()
