"""Erasure of threads and people. It depends on every store, so it is near the top of the layers.

`threads` erases turns and their runs. `requests` accepts the erasure of a person; `passes` find and erase
their data by the rules of `policy`.
"""
