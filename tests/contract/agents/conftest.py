"""An agent whose model is a scripted endpoint."""

import pytest

from shared.answering.agent import Agent, AgentLimits
from shared.platform.calls import model_endpoint
from shared.platform.language_models.chat_model import OpenAIChatModel
from shared.tools.base import Tool
from tests.contract.agents.weighing import ANNA, MakeAgent, Weigh
from tests.contract.clients.conftest import Connect, connect
from tests.contract.clients.scripted_server import ScriptedServer
from tests.fakes.services import fake_services, fake_settings

__all__ = ["connect"]


@pytest.fixture
def make_agent(connect: Connect) -> MakeAgent:
    def make(server: ScriptedServer, *tools: Tool | str, limits: AgentLimits | None = None) -> Agent:
        connections = connect(openai_base_url=f"{server.endpoint}/v1", openai_api_key="key")
        model = OpenAIChatModel(connections.model, "chat", model_endpoint(fake_settings()))
        return Agent.create_agent(
            "weigher",
            "You weigh things for {{nobody}}.",
            tools or (Weigh(),),
            services=fake_services(chat_model=model),
            user=ANNA,
            limits=limits,
        )

    return make
