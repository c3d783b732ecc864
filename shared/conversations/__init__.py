"""Threads and what is remembered of them.

A question opens a turn of a thread (`threads`); `window` decides what of the thread the question is given;
`memory` summarises older turns and remembers answers afterwards.
"""
