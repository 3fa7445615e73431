"""Who is asked, for how much, and under which terms: the table of teachers, read from a TOML file.

`docs/distillation.md` has an example of the file. Keys are never in it: it names environment variables.
"""

from __future__ import annotations

import os
import tomllib
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)

from kernelquarry.pipeline.prompts import prompt_id
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import canonical, sha256
from kernelquarry.pipeline.schema.provenance import TermsClass

PROMPTS = ("system", "teacher", "write", "refine", "explain", "repair", "answer")  # all that questions are made of
Route = Literal["write", "refine", "explain"]
Date = Annotated[str, BeforeValidator(lambda value: value.isoformat() if isinstance(value, date) else value)]
_OURS = frozenset(("model", "messages", "stream", "n", "max_tokens", "max_completion_tokens"))  # never `sampling`'s


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Terms(_Model):
    """What a licence or terms of use say of training on what a model writes, and where that was read."""

    training: TermsClass
    source: str  # URL, or name of the licence
    read_on: Date


class Teacher(_Model):
    """One model behind one endpoint."""

    name: str = Field(pattern=r"^[\w.-]{1,40}$")
    model: str  # as the endpoint calls it
    version: str = ""  # revision of the weights, or date of the API's version
    url: str = Field(pattern=r"^https?://")  # up to and with /v1
    kind: Literal["hosted", "vllm", "sglang", "transformers", "own"]
    terms: str  # key in the table of terms
    key_env: str = ""  # environment variable with the API key
    usd_per_million_input: Annotated[float, Field(ge=0)] = 0.0
    usd_per_million_output: Annotated[float, Field(ge=0)] = 0.0
    batch_price: Annotated[float, Field(ge=0, le=1)] = 1.0  # share of the price that a batch costs
    routes: Annotated[tuple[Route, ...], Field(min_length=1)] = ("write", "refine")
    samples: Annotated[int, Field(ge=1)] = 1
    in_flight: Annotated[int, Field(ge=1)] = 16
    timeout_s: Annotated[float, Field(gt=0)] = 600.0
    max_tokens: Annotated[int, Field(ge=1)] = 8192
    max_tokens_name: str = "max_tokens"  # some endpoints call it max_completion_tokens
    sampling: dict[str, JsonValue] = Field(default_factory=dict)  # goes into each request as it is

    @field_validator("url")
    @classmethod
    def _is_a_base(cls, url: str) -> str:
        if url.rstrip("/").endswith("/completions"):
            raise ValueError("give it up to and with /v1: /chat/completions is put behind it")
        return url

    @model_validator(mode="after")
    def _can_be_asked(self) -> Teacher:
        if taken := sorted(_OURS & self.sampling.keys()):
            raise ValueError(f"teacher {self.name}: {taken[0]} is no part of sampling: it is set apart")
        if self.kind == "hosted" and not {"usd_per_million_input", "usd_per_million_output"} <= self.model_fields_set:
            raise ValueError(
                f"teacher {self.name} is hosted and its prices are not given, so no limit in dollars could stop it: "
                "give usd_per_million_input and usd_per_million_output, 0.0 if it costs nothing"
            )
        return self

    @property
    def key(self) -> str:
        """Raises: UserError: the environment does not have it."""
        if not self.key_env:
            return ""
        if not (key := os.environ.get(self.key_env, "")):
            raise UserError(f"teacher {self.name}: the environment variable {self.key_env} is empty: put its key there")
        return key

    def price(self, prompt_tokens: int, completion_tokens: int) -> float:
        """In dollars."""
        return (prompt_tokens * self.usd_per_million_input + completion_tokens * self.usd_per_million_output) / 1e6


class Limits(_Model):
    """Where a run stops asking. What earlier runs with the same cache have spent counts."""

    usd: Annotated[float, Field(ge=0)] = 10.0
    tokens: Annotated[int, Field(ge=0)] = 10_000_000


class Retries(_Model):
    """How long a request is tried."""

    tries: Annotated[int, Field(ge=1)] = 6  # of one that fails; being told to wait is no failure
    first_wait_s: Annotated[float, Field(gt=0)] = 1.0  # doubled each time
    patience_s: Annotated[float, Field(gt=0)] = 3600.0  # of waiting as told
    most_bytes: Annotated[int, Field(ge=1000)] = 4_000_000  # of a reply


class DistillConfig(_Model):
    """The whole file."""

    teachers: tuple[Teacher, ...] = Field(min_length=1)
    terms: dict[str, Terms]
    limits: Limits = Limits()
    retries: Retries = Retries()
    repairs: Annotated[int, Field(ge=0)] = 2  # turns after the first
    modules: Annotated[int, Field(ge=1)] = 32  # at once
    accept_terms: tuple[str, ...] = ()  # teachers that are asked although their terms forbid training, or are not known

    @model_validator(mode="after")
    def _check(self) -> DistillConfig:
        names = [teacher.name for teacher in self.teachers]
        if len(set(names)) < len(names):
            raise ValueError("two teachers have one name")
        if strangers := sorted(set(self.accept_terms) - set(names)):
            raise ValueError(f"accept_terms names {strangers[0]!r}, and no teacher is called so")
        for teacher in self.teachers:
            if teacher.terms not in self.terms:
                raise ValueError(f"teacher {teacher.name}: no terms are called {teacher.terms!r}")
            found = self.terms[teacher.terms].training
            if found in (TermsClass.FORBIDS, TermsClass.UNKNOWN) and teacher.name not in self.accept_terms:
                raise ValueError(
                    f"teacher {teacher.name}: its terms say {found.value!r} to training on its answers: leave it out, "
                    "or, if you may all the same, name it in accept_terms"
                )
        return self

    @property
    def writes(self) -> bool:
        """Whether somebody is asked for kernels that there are none of yet."""
        return any("write" in teacher.routes for teacher in self.teachers)

    @property
    def digest(self) -> str:
        """Of what decides the results: not of limits, prices, keys and speeds."""
        apart = {"usd_per_million_input", "usd_per_million_output", "batch_price", "key_env", "in_flight", "timeout_s"}
        teachers = [teacher.model_dump(mode="json", exclude=apart | {"url"}) for teacher in self.teachers]
        terms: dict[str, Any] = self.model_dump(mode="json", include={"terms"})
        prompts = [prompt_id(name) for name in PROMPTS]
        return sha256(canonical([teachers, terms, self.repairs, prompts]))


_SAID = {  # of kinds of errors, where pydantic speaks of Python
    "tuple_type": "should be a list: tables in a list are written [[teachers]]",
    "extra_forbidden": "there is no such setting",
}


def load_distill_config(path: Path) -> DistillConfig:
    """Raises: UserError: there is no such file, or what is wrong with it."""
    try:
        return DistillConfig.model_validate(tomllib.loads(path.read_text()))
    except (FileNotFoundError, IsADirectoryError):
        raise UserError(f"{path}: no such file: docs/distillation.md shows what is in one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        message = _SAID.get(first["type"], first["msg"].removeprefix("Value error, "))
        raise UserError(f"{path}: {place + ': ' if place else ''}{message}") from None
