"""The licence of files for which a corpus states none: what the builder of a dataset decides about them."""

from __future__ import annotations

from dataclasses import dataclass

from kernelquarry.pipeline.schema.provenance import Licence
from kernelquarry.pipeline.schema.reasons import Reason

from .objection import Objection

UNSTATED = Objection(Reason.LICENCE_NOT_PERMISSIVE, "no licence was found")


@dataclass(frozen=True, slots=True)
class LicencePolicy:
    stated: str = ""  # SPDX expression for files without any statement; "": such files are dropped
    private: bool = False  # keep files that no permissive licence covers; the gates then refuse the dataset

    def resolve(self, found: Licence | Objection) -> Licence | Objection:
        """The licence to record for a file, or the objection to its use. A statement of the corpus always wins."""
        if found == UNSTATED and self.stated:
            return Licence(self.stated, "stated for this build")
        if isinstance(found, Objection) and self.private:
            return Licence("NOASSERTION", f"private build: {found.evidence}")
        return found


AS_STATED = LicencePolicy()  # each file needs a permissive licence that the corpus states
