"""Groups of settings: a table of all settings with their defaults, limits and descriptions.

Pure: access, answers, base, documents, services, values.
"""
