"""Tests that the C library returns memory freed by Python to the operating system."""

import ctypes
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes
from shared.platform.memory import keep_memory_low
keep_memory_low()
names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
Info = type("Info", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in names]})
mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Info
before = mallinfo().hblkhd
large = bytearray(16 << 20)
del large
piece = bytearray(1 << 20)
print(mallinfo().hblkhd - before)
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="other C libraries have no such thresholds",
)
def test_after_a_large_piece_others_are_still_given_back_when_they_are_freed() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(result.stdout) >= 1 << 20
