"""Erasing a thread or a person. It knows every store, so it stands near the top.

`threads` erases turns and their runs. `requests` accepts the erasure of a person, `inventory` finds what is
stored of them, and `passes` erases it.
"""
