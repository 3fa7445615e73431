"""The page of the language, and the part of the prompts that states it."""

from __future__ import annotations

from language_page import describe, prompt


def test_the_page_and_the_prompt_state_the_tables() -> None:
    page = describe()
    assert "| try | test the condition before, and raise |" in page and "`empty_like`" in page
    assert all(name in prompt() for name in ("try", "global", "yield"))
