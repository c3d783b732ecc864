"""`make audit`: compare the stores of the running local stack, and exit with 0 only if they agree.

Like `python -m cli audit`, it calls the app over HTTP. The data folder contains the app's URL and the secret
with which an administrator token is signed.
"""

import os
import sys

from local.run_all.api_client import ApiClient
from local.run_all.stack_settings import CallRefusedError, StackError, read_stack_settings
from local.run_all.tokens import TOKENS_FILE, load_or_make_secrets, mint_token, read_stack_url
from samples.acl import SampleUser

_AUDITOR = SampleUser("auditor", "Auditor", department="", groups=())


def main() -> int:
    """Print all differences between the stores. Return 0 if there are none, 1 if there are some, and 2 if the
    audit failed.
    """
    try:
        data = read_stack_settings(os.environ).data
        if not (data / TOKENS_FILE).exists():
            raise StackError(f"There is no stack in {data}: `make run` creates one.")
        token = mint_token(_AUDITOR, load_or_make_secrets(data).token_secret, roles=("admin",))
        report = ApiClient(read_stack_url(data), token).get("/api/maintenance/audit")
    except (StackError, CallRefusedError, OSError) as failed:
        print(f"The audit failed: {failed}", file=sys.stderr)
        return 2
    for difference in report["differences"]:
        print(f"{difference['kind']:<18} {difference['place']}: {difference['detail']}")
    counts = ", ".join(f"{count} {name}" for name, count in report["counts"].items())
    verdict = "Everything agrees" if report["agrees"] else f"{report['difference_count']} differences"
    print(f"{verdict}: {counts}.")
    if report["share"] < 1:
        print(f"Checked {report['share']:.1%} of all documents; the next run checks another part.")
    return 0 if report["agrees"] else 1


if __name__ == "__main__":
    sys.exit(main())
