"""`make chaos`: kill and suspend servers while users work, then check that all stores are consistent.

`world` defines what must be true afterwards; `load` works and `strikes` breaks by a round's seed; `checker`
reads tables, blobs and indexes with the plain SDKs, and imports nothing of the app.
"""
