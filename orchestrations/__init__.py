"""Durable orchestrations: orchestrators are generator functions that perform all I/O through activities.

`registration` loads the module of an orchestrator or activity on the first call, so a worker that only serves
HTTP doesn't load them.
"""
