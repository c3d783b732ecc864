"""Sub-agents: whether one is used (`policy`), with which profile and budget, and its child run (`turn`).

Pure: budget, findings, policy_models, profiles.
"""
