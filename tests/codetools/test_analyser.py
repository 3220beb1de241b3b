from __future__ import annotations

import asyncio

import pytest

from dari.codetools.analyser import Analyser, ParserFailed
from dari.process.children import Children
from dari.syntax.analysis import AnalysisRequest

GOOD = AnalysisRequest(b"def f(): pass\n", "python")


async def test_a_source_that_crashes_its_grammar_costs_that_file_only() -> None:
    async with Children() as children:
        analyser = Analyser(children)
        with pytest.raises(ParserFailed, match="yaml crashed"):
            await analyser.ask(AnalysisRequest(b"- ? " * 5_000, "yaml"))
        assert [one.symbol for one in (await analyser.ask(GOOD)).symbols] == ["f"]


async def test_a_source_that_keeps_its_grammar_busy_is_given_up() -> None:
    async with Children() as children:
        analyser = Analyser(children, file_s=0.5)
        await analyser.ask(GOOD)
        with pytest.raises(ParserFailed, match=r"longer than 0\.5 s"):
            await analyser.ask(AnalysisRequest(b"a<b," * 50_000, "typescript"))
        assert [one.symbol for one in (await analyser.ask(GOOD)).symbols] == ["f"]


async def test_questions_share_processes_and_a_cancelled_one_does_not_confuse_the_next() -> None:
    async with Children() as children:
        analyser = Analyser(children, processes=2)
        answers = await asyncio.gather(
            *(analyser.ask(AnalysisRequest(f"def f{n}(): pass\n".encode(), "python")) for n in range(20))
        )
        assert [one.symbols[0].symbol for one in answers] == [f"f{n}" for n in range(20)]
        assert len(children.running) == 2
        waiting = asyncio.ensure_future(analyser.ask(AnalysisRequest(b"a<b," * 50_000, "typescript")))
        await asyncio.wait([waiting], timeout=0.2)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert [one.symbol for one in (await analyser.ask(GOOD)).symbols] == ["f"]


async def test_nothing_is_left_when_the_owner_closes() -> None:
    async with Children() as children:
        await Analyser(children).ask(GOOD)
        (child,) = children.running
    assert child.has_ended
