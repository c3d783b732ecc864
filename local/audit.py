"""`make audit`: asks the running local stack whether everything agrees. Exit code 0 only if it does.

It asks the app over HTTP, as `python -m cli audit` does anywhere; here the data folder's secret signs the
administrator's token.
"""

import os
import sys

from local.run_all.api_client import ApiClient
from local.run_all.stack_settings import HOST, CallRefusedError, StackError, read_stack_settings
from local.run_all.tokens import FILE_NAME, load_or_make_secrets, mint_token
from samples.acl import SampleUser

_AUDITOR = SampleUser("auditor", "Auditor", department="", groups=())


def main() -> int:
    """Print what differs. 0 = nothing, 1 = something, 2 = it could not be asked."""
    try:
        settings = read_stack_settings(os.environ)
        if not (settings.data / FILE_NAME).exists():
            raise StackError(f"There is no stack in {settings.data}: `make run` creates one.")
        token = mint_token(_AUDITOR, load_or_make_secrets(settings.data).token_secret, roles=("admin",))
        report = ApiClient(f"http://{HOST}:{settings.ports.http}", token).get("/api/maintenance/audit")
    except (StackError, CallRefusedError, OSError) as failed:
        print(f"The audit could not be made: {failed}", file=sys.stderr)
        return 2
    for difference in report["differences"]:
        print(f"{difference['kind']:<18} {difference['place']}: {difference['detail']}")
    counts = ", ".join(f"{count} {name}" for name, count in report["counts"].items())
    verdict = "Everything agrees" if report["agrees"] else f"{report['difference_count']} differences"
    print(f"{verdict}: {counts}.")
    if report["share"] < 1:
        print(f"Looked at {report['share']:.1%} of all documents; the next run checks another part.")
    return 0 if report["agrees"] else 1


if __name__ == "__main__":
    sys.exit(main())
