"""A hook of the docs site: links from pages to files outside of docs/."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#:]+)(#[\w-]+)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Point links to code at the repository, or keep their text alone without a `repo_url`. Links to nothing fail."""

    def rewrite(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        path = os.path.normpath(os.path.join("docs", os.path.dirname(page.file.src_uri), target))
        if (path.startswith("docs/") and not (ROOT / path).is_dir()) or not (ROOT / path).exists():
            return match[0]
        return f"[{text}]({config.repo_url}/blob/main/{path})" if config.repo_url else text

    return _LINK.sub(rewrite, markdown)
