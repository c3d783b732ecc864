"""A small durable app, composed of blueprints, with one orchestrator for each case of the protocol."""

import azure.durable_functions as df

from orchestrations import registration
from tests.contract.durable.app_activities import work
from tests.contract.durable.app_flows import flows
from tests.contract.durable.app_odd import odd
from tests.contract.durable.app_plans import plans
from tests.contract.durable.app_waits import waits
from tests.contract.durable.sdk_functions import SdkFunctions


def make_functions() -> SdkFunctions:
    app = df.DFApp()
    for blueprint in (work, flows, waits, odd, plans, registration.blueprint):
        app.register_functions(blueprint)
    return SdkFunctions(app)
