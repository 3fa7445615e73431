"""The budget of tokens and dollars: a request is sent only if its longest possible answer is affordable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kernelquarry.pipeline.schema.errors import NotYet

from .cache import Reply, Spending
from .teachers import Limits, Teacher

CHARACTERS_PER_TOKEN = 3  # a low estimate for code, so that tokens are overestimated


class BudgetSpent(NotYet):
    """The rest of the budget does not pay for the request."""


class Budget:
    """Tokens and dollars that were spent or are reserved by requests in flight. For use from one event loop."""

    def __init__(self, limits: Limits, spent: Spending) -> None:
        self._limits = limits
        self._tokens, self._usd = spent.tokens, spent.usd
        self._reserved_tokens, self._reserved_usd, self._in_flight = 0, 0.0, 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def reserve(self, teacher: Teacher, prompt_characters: int) -> AsyncIterator[list[Reply]]:
        """Reserve the cost of the longest answer, and yield a list. Replies put into the list are charged on exit.

        Raises:
            BudgetSpent: the request is not affordable, and no request in flight could release enough.
        """
        prompt = prompt_characters // CHARACTERS_PER_TOKEN + 1
        tokens, usd = prompt + teacher.max_tokens, teacher.price(prompt, teacher.max_tokens)
        async with self._changed:
            while not self._can_afford(tokens, usd):
                if not self._in_flight:
                    left = self._limits.tokens - self._tokens, self._limits.usd - self._usd
                    raise BudgetSpent(
                        f"{left[0]:,} tokens and ${left[1]:.2f} are left, and a request may take {tokens:,} and "
                        f"${usd:.4f}: raise [limits], and the next run goes on"
                    )
                await self._changed.wait()
            self._add_reservation(tokens, usd, 1)
        paid: list[Reply] = []
        try:
            yield paid
        finally:
            async with self._changed:
                self._add_reservation(-tokens, -usd, -1)
                self._tokens += sum(reply.prompt_tokens + reply.completion_tokens for reply in paid)
                self._usd += sum(reply.cost_usd for reply in paid)
                self._changed.notify_all()

    def _can_afford(self, tokens: int, usd: float) -> bool:
        enough_tokens = self._tokens + self._reserved_tokens + tokens <= self._limits.tokens
        return enough_tokens and self._usd + self._reserved_usd + usd <= self._limits.usd + 1e-12

    def _add_reservation(self, tokens: int, usd: float, requests: int) -> None:
        self._reserved_tokens += tokens
        self._reserved_usd += usd
        self._in_flight += requests
