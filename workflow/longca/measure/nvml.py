"""Clocks, power and temperature of a GPU from NVIDIA's management library, which comes with the driver.

Asked through ctypes: nvidia-smi answers the same, but takes up to a second to start, twice a case, while the GPU waits.
"""

import ctypes
from collections.abc import Callable
from functools import cache

_LIBRARY = "libnvidia-ml.so.1"
# Of nvml.h: clock domains and the sensor of the chip.
_SM_CLOCK, _MEMORY_CLOCK, _GPU_SENSOR = 1, 2, 0
_NOT_SUPPORTED = 3
# What a card does not tell, as nvidia-smi writes it.
NOT_TOLD = "[N/A]"


class NvmlError(RuntimeError):
    """The library cannot be loaded or answers with an error."""


class Gpu:
    """One GPU, by its UUID (GPU-... or MIG-...)."""

    def __init__(self, uuid: str) -> None:
        self._library = _load()
        self._handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(self._handle))

    def state(self) -> dict[str, float | str]:
        """Clocks in MHz, power in W, temperature in degrees Celsius, and the bits of what slows it; now."""
        whole = ctypes.c_uint
        bits = self._read("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong)
        power = self._read("nvmlDeviceGetPowerUsage", whole)
        clocks = [self._read("nvmlDeviceGetClockInfo", whole, kind) for kind in (_SM_CLOCK, _MEMORY_CLOCK)]
        temperature = self._read("nvmlDeviceGetTemperature", whole, _GPU_SENSOR)
        return {
            "sm_clock_mhz": _told(clocks[0], float),
            "memory_clock_mhz": _told(clocks[1], float),
            "power_w": _told(power, lambda milliwatts: milliwatts / 1e3),
            "temperature_c": _told(temperature, float),
            "throttle_reasons": _told(bits, lambda value: f"0x{value:016x}"),
        }

    def driver_version(self) -> str:
        """The version of the driver."""
        text = ctypes.create_string_buffer(96)
        self._call("nvmlSystemGetDriverVersion", text, ctypes.c_uint(len(text)))
        return text.value.decode()

    def _read(self, function: str, kind: type, *arguments: int) -> int | None:
        """One number of the GPU; None where it does not tell."""
        value = kind()
        given = (ctypes.c_uint(argument) for argument in arguments)
        told = self._call(function, self._handle, *given, ctypes.byref(value), optional=True)
        return value.value if told else None

    def _call(self, function: str, *arguments: object, optional: bool = False) -> bool:
        code = getattr(self._library, function)(*arguments)
        if code == 0:
            return True
        if optional and code == _NOT_SUPPORTED:
            return False
        raise NvmlError(f"{function} of {_LIBRARY} answers error {code}")


@cache
def _load() -> ctypes.CDLL:
    """The library, initialised once a process."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise NvmlError(f"{_LIBRARY} cannot be loaded: {error}; right: NVIDIA's driver whole") from error
    code = library.nvmlInit_v2()
    if code != 0:
        raise NvmlError(f"nvmlInit_v2 of {_LIBRARY} answers error {code}")
    return library


def _told(value: int | None, form: Callable[[int], float | str]) -> float | str:
    return NOT_TOLD if value is None else form(value)
