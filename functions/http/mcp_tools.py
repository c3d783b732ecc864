"""All tools of the MCP server."""

from functions.http.mcp_document_tools import Fetch, ListDocuments, ListTables, RunSql, Search
from functions.http.mcp_run_tools import Ask, GetAnswer, Reply
from functions.http.mcp_tool import McpTool

_TOOLS = (Search, Fetch, Ask, GetAnswer, Reply, ListDocuments, ListTables, RunSql)
TOOLS: dict[str, type[McpTool]] = {tool.name: tool for tool in _TOOLS}
"""Tools by name, in the order in which they are listed."""
