"""`make chaos`: kill and suspend servers while users work, then check that all stores are consistent.

`load` performs the users' actions and `strikes` the interruptions, both determined by the seed of a round.
`world` is the expected state. `checker` compares it with tables, blobs and indexes through the plain SDKs,
without code of the app.
"""
