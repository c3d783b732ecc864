"""Erasing a thread or a person. It knows every store, so it stands near the top.

`threads` erases turns and their runs. `requests` accepts the erasure of a person; `passes` find what is
stored of them and erase it, by the rules of `policy`.
"""
