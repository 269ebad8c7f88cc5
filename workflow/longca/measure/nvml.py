"""Clocks, power and temperature of a GPU from NVIDIA's management library, which comes with the driver.

Asked through ctypes: nvidia-smi answers the same, but takes up to a second to start, twice a case, while the GPU waits.
"""

import ctypes
from collections.abc import Callable
from functools import cache

_LIBRARY = "libnvidia-ml.so.1"
# Of nvml.h: clock domains and the sensor of the chip.
_SM_CLOCK, _MEMORY_CLOCK, _GPU_SENSOR = 1, 2, 0
# The newer drivers' name, and the one that all have had.
_SLOWED_BY = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
_NOT_SUPPORTED = 3


class NvmlError(RuntimeError):
    """The library cannot be loaded or answers with an error."""


class Gpu:
    """One GPU, by its UUID (GPU-... or MIG-...)."""

    def __init__(self, uuid: str) -> None:
        self._library = _load()
        self._handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(self._handle))

    def state(self) -> dict[str, float | str]:
        """Clocks in MHz, power in W, temperature in degrees Celsius, and the bits of what slows it; now.

        What the card does not tell is a word: [N/A] as nvidia-smi writes it, or the library's error.
        """
        slowed_by = next(name for name in _SLOWED_BY if hasattr(self._library, name))
        whole = ctypes.c_uint
        return {
            "sm_clock_mhz": self._read(float, "nvmlDeviceGetClockInfo", whole, _SM_CLOCK),
            "memory_clock_mhz": self._read(float, "nvmlDeviceGetClockInfo", whole, _MEMORY_CLOCK),
            "power_w": self._read(lambda milliwatts: milliwatts / 1e3, "nvmlDeviceGetPowerUsage", whole),
            "temperature_c": self._read(float, "nvmlDeviceGetTemperature", whole, _GPU_SENSOR),
            "throttle_reasons": self._read(lambda bits: f"0x{bits:016x}", slowed_by, ctypes.c_ulonglong),
        }

    def driver_version(self) -> str:
        """The version of the driver."""
        text = ctypes.create_string_buffer(96)
        self._call("nvmlSystemGetDriverVersion", text, ctypes.c_uint(len(text)))
        return text.value.decode()

    def _read(
        self, form: Callable[[int], float | str], function: str, kind: type, *arguments: int
    ) -> float | str:
        """One reading of the GPU, or the word for why there is none."""
        value = kind()
        given = (ctypes.c_uint(argument) for argument in arguments)
        code = getattr(self._library, function)(self._handle, *given, ctypes.byref(value))
        if code:
            return "[N/A]" if code == _NOT_SUPPORTED else f"[error {code}]"
        return form(value.value)

    def _call(self, function: str, *arguments: object) -> None:
        code = getattr(self._library, function)(*arguments)
        if code:
            raise NvmlError(f"{function} of {_LIBRARY} answers error {code}")


@cache
def _load() -> ctypes.CDLL:
    """The library, initialised once a process."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise NvmlError(f"{_LIBRARY} cannot be loaded: {error}; right: NVIDIA's driver whole") from error
    code = library.nvmlInit_v2()
    if code:
        raise NvmlError(f"nvmlInit_v2 of {_LIBRARY} answers error {code}")
    return library
