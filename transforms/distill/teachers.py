"""The distillation config: teachers, their prices and terms of use, limits and retries, from a TOML file.

`docs/guides/distillation.md` has an example. The file never holds API keys; it names environment variables.
"""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, field_validator, model_validator

from kernelquarry.pipeline.prompts import prompt_id
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import canonical, sha256
from kernelquarry.pipeline.schema.provenance import TermsClass
from kernelquarry.pipeline.schema.read_toml import read_toml, validated

# Every prompt that requests are rendered from.
PROMPTS = ("system", "teacher", "write", "refine", "explain", "repair", "answer")
Route = Literal["write", "refine", "explain"]
Date = Annotated[str, BeforeValidator(lambda value: value.isoformat() if isinstance(value, date) else value)]
# Keys that `sampling` may not set.
_RESERVED = frozenset(("model", "messages", "stream", "n", "max_tokens", "max_completion_tokens"))


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Terms(_Model):
    """The position of a licence or of terms of use on training with a model's output."""

    training: TermsClass
    source: str  # URL, or name of the licence
    read_on: Date


class Teacher(_Model):
    """One model behind one endpoint."""

    name: str = Field(pattern=r"^[\w.-]{1,40}$")
    model: str  # name at the endpoint
    version: str = ""  # revision of the weights, or date of the API's version
    url: str = Field(pattern=r"^https?://")  # up to and including /v1
    kind: Literal["hosted", "vllm", "sglang", "transformers", "own"]
    terms: str  # key in the table of terms
    key_env: str = ""  # environment variable with the API key
    usd_per_million_input: Annotated[float, Field(ge=0)] = 0.0
    usd_per_million_output: Annotated[float, Field(ge=0)] = 0.0
    batch_price: Annotated[float, Field(ge=0, le=1)] = 1.0  # share of the price that a batch costs
    routes: Annotated[tuple[Route, ...], Field(min_length=1)] = ("write", "refine")
    longest_module: Annotated[int, Field(ge=0)] = 0  # characters of a module that it is asked for; 0: any number
    samples: Annotated[int, Field(ge=1)] = 1
    in_flight: Annotated[int, Field(ge=1)] = 16
    timeout_s: Annotated[float, Field(gt=0)] = 600.0
    max_tokens: Annotated[int, Field(ge=1)] = 8192
    max_tokens_name: str = "max_tokens"  # max_completion_tokens at some endpoints
    sampling: dict[str, JsonValue] = Field(default_factory=dict)  # merged into the body of each request

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if url.rstrip("/").endswith("/completions"):
            raise ValueError("give it up to and including /v1: /chat/completions is appended to it")
        return url

    @model_validator(mode="after")
    def _check_sampling_and_prices(self) -> Teacher:
        if reserved := sorted(_RESERVED & self.sampling.keys()):
            raise ValueError(f"teacher {self.name}: sampling may not set {reserved[0]}: it has a setting of its own")
        if self.kind == "hosted" and not {"usd_per_million_input", "usd_per_million_output"} <= self.model_fields_set:
            raise ValueError(
                f"teacher {self.name} is hosted and its prices are not given, so no limit in dollars could stop it: "
                "give usd_per_million_input and usd_per_million_output, 0.0 if it costs nothing"
            )
        return self

    @property
    def key(self) -> str:
        """The API key; "" if the teacher needs none. Raises: UserError: the environment variable is empty."""
        if not self.key_env:
            return ""
        if not (key := os.environ.get(self.key_env, "")):
            raise UserError(f"teacher {self.name}: the environment variable {self.key_env} is empty: put its key there")
        return key

    def price(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Price of a request in dollars."""
        return (prompt_tokens * self.usd_per_million_input + completion_tokens * self.usd_per_million_output) / 1e6


class Limits(_Model):
    """Budget of all runs that share a cache."""

    usd: Annotated[float, Field(ge=0)] = 10.0
    tokens: Annotated[int, Field(ge=0)] = 10_000_000


class Retries(_Model):
    """Limits on the retries of one request."""

    tries: Annotated[int, Field(ge=1)] = 6  # throttled tries do not count
    first_wait_s: Annotated[float, Field(gt=0)] = 1.0  # doubles with each failure
    patience_s: Annotated[float, Field(gt=0)] = 3600.0  # after which a failing or throttled request is given up
    most_bytes: Annotated[int, Field(ge=1000)] = 4_000_000  # size of a reply


class DistillConfig(_Model):
    """A whole config file."""

    teachers: tuple[Teacher, ...] = Field(min_length=1)
    terms: dict[str, Terms]
    limits: Limits = Limits()
    retries: Retries = Retries()
    repairs: Annotated[int, Field(ge=0)] = 2  # repair turns after the first answer
    modules: Annotated[int, Field(ge=1)] = 32  # distilled at the same time
    accept_terms: tuple[str, ...] = ()  # teachers to use although their terms forbid training or are unknown

    @model_validator(mode="after")
    def _check(self) -> DistillConfig:
        names = [teacher.name for teacher in self.teachers]
        if len(set(names)) < len(names):
            raise ValueError("two teachers have one name")
        if unknown := sorted(set(self.accept_terms) - set(names)):
            raise ValueError(f"accept_terms names {unknown[0]!r}: there is no such teacher")
        for teacher in self.teachers:
            if teacher.terms not in self.terms:
                raise ValueError(f"teacher {teacher.name}: no terms are called {teacher.terms!r}")
            training = self.terms[teacher.terms].training
            if training in (TermsClass.FORBIDS, TermsClass.UNKNOWN) and teacher.name not in self.accept_terms:
                raise ValueError(
                    f"teacher {teacher.name}: its terms say {training.value!r} to training on its answers: "
                    "leave it out, or, if you have permission, name it in accept_terms"
                )
        return self

    @property
    def has_write_route(self) -> bool:
        """True if a teacher writes kernels for modules that have none."""
        return any("write" in teacher.routes for teacher in self.teachers)

    @property
    def digest(self) -> str:
        """Hash of all settings that decide the results; limits, prices, keys and addresses do not."""
        ignored = {
            "usd_per_million_input",
            "usd_per_million_output",
            "batch_price",
            "key_env",
            "in_flight",
            "timeout_s",
        }
        teachers = [teacher.model_dump(mode="json", exclude=ignored | {"url"}) for teacher in self.teachers]
        terms: dict[str, Any] = self.model_dump(mode="json", include={"terms"})
        prompts = [prompt_id(name) for name in PROMPTS]
        return sha256(canonical([teachers, terms, self.repairs, prompts]))


def load_distill_config(path: Path) -> DistillConfig:
    """Read and validate a config file. Raises: UserError: it is missing or invalid."""
    hint = "docs/guides/distillation.md shows what is in one"
    return validated(DistillConfig, read_toml(path, hint), str(path))
