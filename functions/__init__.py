"""The triggers, one file per resource: parse, call a capability, reply. `http` is the HTTP dialect.

Handlers import capabilities where they use them: a worker that starts waits for nothing it may never need.
"""
