"""Licence statements in the forms that packages use. All texts are invented."""

import pytest

from kernelquarry.filters import spdx
from kernelquarry.filters.licences import Licences, is_statement, read_claims, read_licences
from kernelquarry.filters.objection import Objection
from kernelquarry.pipeline.schema.reasons import Reason
from tests.transforms.read.wheel import MIT

APACHE = """Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
"""
GPL = """This program is free software: you can redistribute it and/or modify
it under the terms of the GNU General Public License as published by
the Free Software Foundation, either version 3 of the License, or
(at your option) any later version.
"""
RESEARCH = (
    "You may use this software for academic research only. Any other use needs our consent, which we may refuse.\n"
)


def package(*fields: str, **texts: str) -> Licences:
    """A package with metadata fields and texts, in its dist-info or, as `pkg__sub__LICENSE`, in another folder."""
    files = {"pkg-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: pkg\n" + "".join(f"{f}\n" for f in fields)}
    for name, text in texts.items():
        path = name.replace("__", "/").replace("_txt", ".txt")
        files[path if "/" in path else f"pkg-1.0.dist-info/licenses/{path}"] = text
    assert all(map(is_statement, files))
    return read_licences(files)


def licence_of(licences: Licences, path: str = "pkg/net.py", text: str = "x = 1\n") -> str:
    """The SPDX expression, or "" for an objection."""
    found = licences.of(path, text)
    if isinstance(found, Objection):
        assert found.reason is Reason.LICENCE_NOT_PERMISSIVE
        assert found.evidence
        return ""
    assert found.evidence
    return found.spdx


APACHE_CLASSIFIER = "Classifier: License :: OSI Approved :: Apache Software License"


@pytest.mark.parametrize(
    ("licences", "spdx_id"),
    [
        (package("License-Expression: MIT", LICENSE=MIT), "MIT"),
        (package("License: The MIT License"), "MIT"),
        (package(APACHE_CLASSIFIER), "Apache-2.0"),
        (package("License: " + APACHE.replace("\n", "\n        ")), "Apache-2.0"),
        (package("License: MIT", LICENSE=APACHE), "Apache-2.0"),
        (package("License: BSD", LICENSE=MIT), "MIT"),
        (package(LICENSE=MIT), "MIT"),
        (package("License-Expression: Apache-2.0 AND MIT", LICENSE=APACHE), "Apache-2.0 AND MIT"),
        (package("License-Expression: GPL-3.0-only OR MIT"), "GPL-3.0-only OR MIT"),
        (package(**{"LICENSE-MIT": MIT, "LICENSE-APACHE": APACHE}), "Apache-2.0"),
        (package("License: MIT", LICENSE=MIT, WEIGHTS_LICENSE=RESEARCH), "MIT"),
        (package(APACHE_CLASSIFIER, LICENSE=GPL), ""),
        (package("License: GPLv3", LICENSE=MIT), ""),
        (package("License: MIT", LICENSE=RESEARCH), ""),
        (package("License: MIT", **{"LICENSE": MIT, "LICENSE.model-zoo": MIT, "COPYING": RESEARCH}), ""),
        (package("License-Expression: GPL-3.0-only AND MIT"), ""),
        (package("License: MIT for non-commercial use"), ""),
        (package("Classifier: License :: Other/Proprietary License", LICENSE=MIT), ""),
        (package("Classifier: License :: OSI Approved :: BSD License"), ""),
        (package(), ""),
    ],
    ids=[
        "expression",
        "name",
        "classifier",
        "text_in_metadata",
        "text_and_other_metadata",
        "vague_metadata",
        "text_only",
        "precise_expression",
        "choice",
        "several_texts",
        "licence_of_weights",
        "gpl_text_under_apache_classifier",
        "mit_text_under_gpl_metadata",
        "unknown_text",
        "unknown_second_text",
        "both_terms",
        "restricted_name",
        "proprietary",
        "no_single_licence",
        "nothing",
    ],
)
def test_packages(licences: Licences, spdx_id: str) -> None:
    assert licence_of(licences) == spdx_id


def test_the_evidence_has_the_place_of_the_statement() -> None:
    found = package("License: MIT", LICENSE=MIT).of("pkg/net.py", "")
    assert not isinstance(found, Objection)
    assert found.evidence == "pkg-1.0.dist-info/licenses/LICENSE: MIT; License: MIT"
    objection = package(APACHE_CLASSIFIER, LICENSE=GPL).of("pkg/net.py", "")
    assert isinstance(objection, Objection)
    assert objection.evidence == "pkg-1.0.dist-info/licenses/LICENSE says GPL-3.0-or-later"


def test_a_nested_licence_covers_its_folder() -> None:
    licences = package(
        "License: MIT", pkg__models__a__LICENSE=APACHE, pkg__models__a__b__LICENSE=RESEARCH, pkg__empty__LICENSE=" \n"
    )
    assert licence_of(licences, "pkg/models/net.py") == "MIT"
    assert licence_of(licences, "pkg/models/a/net.py") == "Apache-2.0"
    assert licence_of(licences, "pkg/models/a/c/net.py") == "Apache-2.0"
    assert licence_of(licences, "pkg/models/a/b/net.py") == ""
    assert licence_of(licences, "pkg/empty/net.py") == "MIT"


NOTICE = """# Notice

All files are under the MIT license, except:

## MIT too

- `pkg/fine.py`

## CC BY-NC 4.0

- `pkg/models/miner.py`
- everything in `pkg/models/prompt/`

See https://creativecommons.example/licenses/by-nc/4.0/
"""


def test_a_notice_excludes_the_paths_it_names() -> None:
    licences = package("License: MIT", LICENSE=MIT, NOTICE_txt=NOTICE)
    assert licence_of(licences, "pkg/fine.py") == "MIT"
    assert licence_of(licences, "pkg/models/miner.py") == ""
    assert licence_of(licences, "pkg/models/prompt/a/net.py") == ""
    assert licence_of(licences, "pkg/models/prompter.py") == "MIT"
    assert [path for path, _ in licences.denied] == ["pkg/models/miner.py", "pkg/models/prompt/"]


@pytest.mark.parametrize(
    "line",
    [
        "# Licensed under CC BY-NC-SA 3.0 US.",
        "Licensed under the Creative Commons Attribution-NonCommercial 4.0 International",
        "# Licensed under the NVIDIA Source Code License. For full license",
        "# S-Lab License 1.0",
        "# This code is for research purposes only.",
        "# Free for non-commercial use.",
        "# under the terms of the GNU Lesser General Public License",
        "# License: AGPL-3.0",
        "# This Source Code Form is subject to the terms of the Mozilla Public License",
        "# code and weights are CC-BY-NC 4.0",
        "# without an express license agreement is strictly prohibited",
        "# SPDX-License-Identifier: LicenseRef-Company-Proprietary",
    ],
)
def test_a_file_may_revoke_the_permission_of_its_package(line: str) -> None:
    assert licence_of(package("License: MIT"), text=f'"""A model.\n\n{line}\n"""\nx = 1\n') == ""


@pytest.mark.parametrize(
    "line",
    [
        "# target: integer class-label tensor",
        "mpl.use('agg')  # accuracy by success",
        "hf_hub_id='somebody/net', license='cc-by-nc-4.0',",
        "# NOTE the CC-BY-NC 4.0 license on these weights, non-commercial use only.",
        "# the dataset is for research purposes only",
        "name = 'gplus'",
    ],
)
def test_harmless_words_deny_nothing(line: str) -> None:
    assert licence_of(package("License: MIT"), text=f"{line}\nx = 1\n") == "MIT"


def test_a_files_own_tag_is_its_licence() -> None:
    text = "# SPDX-License-Identifier: BSD-3-Clause\nx = 1\n"
    assert licence_of(package("License: MIT"), text=text) == "BSD-3-Clause"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("apache-2.0", "Apache-2.0"),
        ("License :: OSI Approved :: MIT License", "MIT"),
        ("BSD 3-Clause", "BSD-3-Clause"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("GNU General Public License v3 (GPLv3)", "GPL-3.0-only"),
        ("LicenseRef-Anything", "LicenseRef-Anything"),
        ("BSD License", None),
        ("see the LICENSE file", None),
        ("", None),
    ],
)
def test_statements(statement: str, expected: str | None) -> None:
    assert spdx.from_statement(statement) == expected


@pytest.mark.parametrize(
    ("expression", "permits"),
    [
        ("MIT", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT AND (GPL-2.0-only OR BSD-3-Clause)", True),
        ("MIT AND GPL-2.0-only", False),
        ("CC-BY-NC-4.0", False),
        ("BSD-3-Clause-No-Military-License", False),
        ("LicenseRef-Anything", False),
        ("(MIT OR", False),
        ("", False),
    ],
)
def test_permissive(expression: str, permits: bool) -> None:
    assert spdx.is_permissive(expression) is permits


def commented(text: str) -> str:
    return "".join(f"# {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "spdx_id"),
    [
        (f"# Copyright 2024 Somebody\n#\n{commented(APACHE)}\nimport torch\n", "Apache-2.0"),
        (f'#!/usr/bin/env python\n"""A net.\n\n{APACHE}"""\nimport torch\n', "Apache-2.0"),
        (commented(MIT) + "\nx = 1\n", "MIT"),
        ("# Copyright (c) 2024 Somebody. All rights reserved.\nx = 1\n", "BSD-3-Clause"),
        ("# see LICENSE\nx = 1\n", "BSD-3-Clause"),
        (f'x = 1\nTEXT = """{APACHE}"""\n', "BSD-3-Clause"),
    ],
    ids=["comment", "docstring", "whole_text", "copyright_only", "mention", "not_a_header"],
)
def test_a_header_is_more_precise_than_its_package(text: str, spdx_id: str) -> None:
    assert licence_of(package("License-Expression: BSD-3-Clause"), text=text) == spdx_id


def test_a_header_grants_nothing_that_its_package_forbids() -> None:
    assert licence_of(package(LICENSE=GPL), text=commented(APACHE)) == ""


@pytest.mark.parametrize(
    ("line", "permitted"),
    [
        ("# Functions are ported from https://github.com/NVlabs/stylegan2.", False),
        ("# from https://github.com/ultralytics/yolov5/blob/master/models/common.py", False),
        ("# https://github.com/NVlabs/SegFormer", True),
        ("# inspired by stylegan and yolov5", True),
        ("# Copyright (c) NVIDIA. Any use without an express license agreement is strictly prohibited.", False),
    ],
)
def test_code_of_vendors_keeps_its_licence(line: str, permitted: bool) -> None:
    assert (licence_of(package("License: MIT"), text=f"{line}\nx = 1\n") != "") is permitted


def test_columns_of_a_table() -> None:
    def claim(*licences: str) -> str:
        found = read_claims(tuple(("licenses", licence) for licence in licences))
        return found.evidence if isinstance(found, Objection) else found.spdx

    assert claim("MIT") == "MIT"
    assert claim("MIT", "Apache-2.0", "MIT") == "Apache-2.0 AND MIT"
    assert claim("MIT OR GPL-3.0-only", "ISC") == "ISC AND (MIT OR GPL-3.0-only)"
    assert claim("MIT", "AGPL-3.0-only") == "licenses says AGPL-3.0-only"
    assert claim("MIT", "LicenseRef-scancode-proprietary-license").startswith("licenses says LicenseRef")
    assert claim("MIT", "whatever you like") == "licenses is not recognised"
    assert claim() == "no licence was found"


def test_packages_in_one_folder_cover_their_own_files() -> None:
    def installed(name: str, licence: str, *paths: str) -> dict[str, str]:
        info, lines = f"{name}-1.0.dist-info", "".join(f"{path},sha256=x,1\n" for path in paths)
        return {f"{info}/METADATA": f"License-Expression: {licence}\n", f"{info}/RECORD": f"{lines}{info}/RECORD,,\n"}

    files = installed("free", "MIT", "free/net.py", "shared/a.py", "../../bin/free")
    files |= installed("unfree", "GPL-3.0-only", "unfree/net.py", "shared/b.py", "module.py")
    assert all(map(is_statement, files))
    found = read_licences(files)
    assert licence_of(found, "free/net.py") == "MIT"
    assert [licence_of(found, path) for path in ("unfree/net.py", "shared/a.py", "module.py", "loose.py")] == [""] * 4
    assert licence_of(read_licences(files | {"free/part/LICENSE": GPL}), "free/part/net.py") == ""
    assert licence_of(read_licences(files | {"LICENSE": MIT}), "loose.py") == "MIT"
