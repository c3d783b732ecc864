"""Settings, errors, telemetry, and the SDK clients that no capability owns.

`settings` is read first; `connections` opens one client per service, `calls` makes calls within limits, and
`blobs`, `tables`, `queues`, `search` and `language_models` are what capabilities use.

Pure: cursors, database_sources, errors, hashing, language_models.prompted, names, odata, search, tokens.
"""
