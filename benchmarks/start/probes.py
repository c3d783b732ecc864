"""Probes: code for a new process that imports or creates something, and prints the time and memory needed as
JSON.

A probe is run by `python -c`, so that nothing of this process is imported before the measurement.
"""

_HEAD = """
import json, resource, time
began, cpu_began = time.perf_counter(), time.process_time()
"""
_TAIL = """
seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak, **extra}))
"""

# Imports that every Python function app with streaming and orchestrations needs.
BASE_IMPORTS = f"""{_HEAD}
import azure.functions, azure.durable_functions, azurefunctions.extensions.http.fastapi
extra = {{}}
{_TAIL}"""

APP_IMPORT = f"""{_HEAD}
import function_app
extra = {{}}
{_TAIL}"""

# No server needs to listen there, because creating a client doesn't connect to it.
AGENT_SETTINGS = {
    "AZURE_SEARCH_ENDPOINT": "http://127.0.0.1:9",
    "AZURE_SEARCH_API_KEY": "unused",
    "DocumentsStorage": (
        "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=dW51c2Vk;"
        "BlobEndpoint=http://127.0.0.1:9/devstoreaccount1;"
        "QueueEndpoint=http://127.0.0.1:9/devstoreaccount1;"
        "TableEndpoint=http://127.0.0.1:9/devstoreaccount1;"
    ),
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "OPENAI_API_KEY": "unused",
    "CHAT_MODEL": "unused",
    "EMBEDDING_MODEL": "unused",
    "EMBEDDING_DIMENSIONS": "384",
    "OWNER_ID_KEY": "unused, 0123456789 and some letters",
}

WARM_REPETITIONS = 200
AGENT_CREATION = f"""
import asyncio, json, resource, statistics, time

async def make():
    began, cpu_began = time.perf_counter(), time.process_time()
    from shared.platform.loading import load  # as a worker does

    Agent = load("shared.answering.agent", "Agent")
    UserContext = load("shared.access.models", "UserContext")
    get_services = load("shared.wiring", "get_services")

    def create():
        return Agent.create_rag_agent(get_services(), UserContext(user_id="u", groups=("g",)))

    agent = create()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    warm = []
    for _ in range({WARM_REPETITIONS}):
        again = time.perf_counter()
        create()
        warm.append(time.perf_counter() - again)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = {{"seconds": seconds, "cpu": cpu, "peak": peak, "warm": max(warm), "tools": len(agent.tools)}}
    print(json.dumps(told))

asyncio.run(make())
"""
