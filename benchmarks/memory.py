"""Peak memory of a process."""

from pathlib import Path


def peak_mb(pid: int) -> float | None:
    """Return the peak resident memory of a process in MB, or None if the system doesn't report it."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return None
    (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return round(int(peak.split()[1]) / 1024, 1)
