"""Tests for the conclusions that `make bench-sharepoint` draws from its batches."""

from benchmarks.sharepoint.__main__ import Batch, growth_mb, ratio_of


def batch(source: str, files: int, seconds: float, peak_mb: float | None = 100.0) -> Batch:
    return Batch(source, files, seconds, worker_cpu_s=0.0, peak_mb=peak_mb)


def test_the_ratio_compares_medians_of_one_size() -> None:
    times = {"blobs": (10.0, 11.0, 90.0), "library": (12.0, 5.0, 13.2)}
    batches = [batch(source, 1000, seconds) for source, some in times.items() for seconds in some]
    batches += [batch("blobs", 3000, 1.0), batch("library", 3000, 9.0)]
    assert ratio_of(batches, 1000) == 1.09


def test_the_growth_compares_peaks_of_libraries_alone() -> None:
    batches = [
        batch("library", 1000, 1.0, 170.0),
        batch("library", 1000, 1.0, 175.0),
        batch("library", 3000, 1.0, 181.0),
        batch("blobs", 3000, 1.0, 400.0),
    ]
    assert growth_mb(batches, [1000, 3000]) == 6.0
    assert growth_mb([batch("library", 1000, 1.0, None)], [1000]) is None
