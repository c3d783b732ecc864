"""Who asks and what they may do.

A request's claims (`principal_claims`) are admitted (`admission`) and become a user (`identity`), whose
groups may be looked up (`directory`). `security_filter` trims every query; `limits` and `idempotency` bound
what a person may use.

Pure: admission, principal_claims, security_filter.
"""
