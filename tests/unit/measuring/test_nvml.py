"""NVIDIA's management library, as it is called: a stand-in of the same functions, compiled here."""

import os
import shutil
import subprocess
import sys

import pytest

SOURCE = r"""
#include <string.h>
typedef struct device { int answers; } *nvmlDevice_t;
static struct device whole = {1}, slice = {0};
int nvmlInit_v2(void) { return INIT; }
int nvmlSystemGetDriverVersion(char *text, unsigned length) { strncpy(text, "580.159.03", length); return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    *device = strncmp(uuid, "GPU-", 4) ? &slice : &whole;
    return strcmp(uuid, "GPU-none") ? 0 : 6;
}
static int told(nvmlDevice_t device, unsigned *value, unsigned right) {
    *value = right;
    return device->answers ? 0 : 3;
}
int nvmlDeviceGetClockInfo(nvmlDevice_t d, unsigned kind, unsigned *v) { return told(d, v, kind == 1 ? 1785 : 3201); }
int nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned *v) { return told(d, v, 699125); }
int nvmlDeviceGetTemperature(nvmlDevice_t d, unsigned sensor, unsigned *v) { return told(d, v, 61 + sensor); }
int REASONS(nvmlDevice_t d, unsigned long long *v) { *v = 0x100000004ULL; return d->answers ? 0 : 4; }
"""
ASK = """
from longca.measure.nvml import Gpu, NvmlError
for uuid in ("GPU-1", "MIG-1", "GPU-none"):
    try:
        print(Gpu(uuid).state(), Gpu(uuid).driver_version())
    except NvmlError as error:
        print(error)
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="compiles a shared library with cc"
)


def ask(folder, init=0, reasons="nvmlDeviceGetCurrentClocksThrottleReasons"):
    """What the readings come to in a process that finds the stand-in first."""
    (folder / "nvml.c").write_text(SOURCE)
    library = folder / "libnvidia-ml.so.1"
    defined = [f"-DINIT={init}", f"-DREASONS={reasons}"]
    command = ["cc", "-shared", "-fPIC", "-w", *defined, "-o", str(library), str(folder / "nvml.c")]
    subprocess.run(command, check=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["Event", "Throttle"])
def test_readings_have_their_units_and_what_is_not_told_stays_a_word(tmp_path, name):
    whole, mig, none = ask(tmp_path, reasons=f"nvmlDeviceGetCurrentClocks{name}Reasons")
    assert whole == (
        "{'sm_clock_mhz': 1785.0, 'memory_clock_mhz': 3201.0, 'power_w': 699.125, 'temperature_c': 61.0, "
        "'throttle_reasons': '0x0000000100000004'} 580.159.03"
    )
    assert mig.count("[N/A]") == 4 and "'throttle_reasons': '[error 4]'" in mig
    assert none == "nvmlDeviceGetHandleByUUID of libnvidia-ml.so.1 answers error 6"


def test_a_driver_that_does_not_start_is_an_error(tmp_path):
    assert set(ask(tmp_path, init=9)) == {"nvmlInit_v2 of libnvidia-ml.so.1 answers error 9"}
