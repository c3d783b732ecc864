"""The triggers, one file per resource: parse, call a capability, reply. `http` holds
what HTTP routes share.
"""
