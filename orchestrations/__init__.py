"""Durable orchestrations. `orchestrators` are generator functions that perform all I/O through activities.

Activities import capabilities on use, so a worker that only serves HTTP doesn't load them.
"""
