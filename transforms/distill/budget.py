"""Tokens and money: a request is sent only if even its longest answer is within what is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kernelquarry.pipeline.schema.errors import NotYet

from .cache import Reply, Spent
from .teachers import Limits, Teacher

CHARACTERS_PER_TOKEN = 3  # of code, at least


class BudgetSpent(NotYet):
    """What is left does not pay for the request."""


class Budget:
    """What was spent, and what requests in flight may cost. Used from one event loop."""

    def __init__(self, limits: Limits, spent: Spent) -> None:
        self._limits = limits
        self._tokens, self._usd = spent.tokens, spent.usd
        self._reserved_tokens, self._reserved_usd, self._in_flight = 0, 0.0, 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def reserve(self, teacher: Teacher, prompt_characters: int) -> AsyncIterator[list[Reply]]:
        """Holds the worst case back; replies that are put in the list are what it came to.

        Raises:
            BudgetSpent: too little is left, also when all that is in flight turns out cheap.
        """
        prompt = prompt_characters // CHARACTERS_PER_TOKEN + 1
        tokens, usd = prompt + teacher.max_tokens, teacher.price(prompt, teacher.max_tokens)
        async with self._changed:
            while not self._has(tokens, usd):
                if not self._in_flight:
                    left = self._limits.tokens - self._tokens, self._limits.usd - self._usd
                    raise BudgetSpent(
                        f"{left[0]:,} tokens and ${left[1]:.2f} are left, and a request may take {tokens:,} and "
                        f"${usd:.4f}: raise [limits], and the next run goes on"
                    )
                await self._changed.wait()
            self._add(tokens, usd, 1)
        paid: list[Reply] = []
        try:
            yield paid
        finally:
            async with self._changed:
                self._add(-tokens, -usd, -1)
                self._tokens += sum(reply.prompt_tokens + reply.completion_tokens for reply in paid)
                self._usd += sum(reply.cost_usd for reply in paid)
                self._changed.notify_all()

    def _has(self, tokens: int, usd: float) -> bool:
        enough_tokens = self._tokens + self._reserved_tokens + tokens <= self._limits.tokens
        return enough_tokens and self._usd + self._reserved_usd + usd <= self._limits.usd + 1e-12

    def _add(self, tokens: int, usd: float, requests: int) -> None:
        self._reserved_tokens += tokens
        self._reserved_usd += usd
        self._in_flight += requests
