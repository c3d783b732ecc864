"""Infrastructure shared by all capabilities: settings, errors, telemetry and SDK clients.

Start with `settings`, which reads the table of `settings_groups`. `connections` creates one SDK client per
service, `calls` adds time limits and retries, and `blobs`, `tables`, `queues`, `search` and `language_models`
are the interfaces for capabilities.

Pure: cursors, database_sources, errors, hashing, language_models.prompted, language_models.protocol,
listed_people, names, odata, search, tokens.
"""
