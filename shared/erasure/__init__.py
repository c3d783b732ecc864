"""Erasure of threads, runs and all data about a person. The package uses every store, so it belongs to the
top layers.

`threads` erases turns and their runs. `requests` accepts the erasure of a person; `passes` find and erase
their data by the rules of `policy`.
"""
