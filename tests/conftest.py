"""Shared by every test. `tests/` itself is importable, so that `from factories import make_pair` works."""

from __future__ import annotations

import os

# Before the first import of datasets: nothing that a test does may reach for the Hub.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
# The double of the Hub (`hub_double`) takes uploads the plain way; xet is another service.
os.environ["HF_HUB_DISABLE_XET"] = "1"
