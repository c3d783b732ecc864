"""Identity, permissions and personal limits.

A request's claims become a user (`identity`) if `admission` accepts them; `directory` looks up groups that
are missing from the token. `access_lists` replaces names of groups by ids, and `security_filter` restricts
every query. `limits` (with `user_limit_store` and open streams), `daily_use` and `idempotency` bound what one
person uses, and `audit_trail` records what they read and changed. Ids of a person's data begin with a digest
of their user id (`owner_ids`).

Pure: daily_use, owner_ids, security_filter.
"""
