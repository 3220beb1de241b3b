"""`crewx_tools_listAgents`: who else works here."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from dari.codetools.agents import Agent, AgentProblem, list_agents
from dari.codetools.session import CodeSession
from dari.core.context import Context
from dari.core.tool import tool


class AgentList(Struct, frozen=True, omit_defaults=True):
    agents: list[Agent]
    count: int
    problems: list[AgentProblem] = []
    """Files that could not be read."""


class AgentTools:
    prefix = "crewx_tools"

    def __init__(self, session: CodeSession) -> None:
        self._session = session

    @tool(camel_case=True, name="listAgents")
    async def list_agents(
        self,
        context: Context,
        config: Annotated[
            str | None, Meta(description="a crewx.yaml; default: CREWX_CONFIG, then crewx.yaml, then agents.yaml")
        ] = None,
        root: Annotated[str | None, Meta(description="folder inside the workspace to look from")] = None,
    ) -> AgentList:
        """List configured agents of CrewX, Claude Code, Codex and Gemini; returns {agents, count, problems}."""
        workspace = await self._session.workspace(context, root)
        agents, problems = await asyncio.to_thread(list_agents, workspace, self._session.environ, config)
        return AgentList(agents, len(agents), problems)
