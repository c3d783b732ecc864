"""Who asks and what they may do.

A request's claims become a user (`identity`), if `admission` lets them in; their groups may be looked up
(`directory`). `access_lists` replaces names of groups by ids; `security_filter` trims every query; `limits`
(over `user_limit_store`, with open streams), `daily_use` and `idempotency` bound what a person may use, and
`audit_trail` records what they read and changed. Ids of what is theirs begin with a digest of who they are
(`owner_ids`).

Pure: daily_use, owner_ids, security_filter.
"""
