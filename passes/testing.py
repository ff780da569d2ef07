"""Passes that misbehave on purpose: tests of the error paths use them."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, ClassVar

from xcc.diagnostics import UserError
from xcc.passes.base import Pass, PassContext, register_pass

if TYPE_CHECKING:
    from xcc._mlir import Module


@register_pass
class TestFail(Pass):
    """Fails in the way `how`: "abort" kills the process, "raise" raises, "user" is the user's fault, "hang" waits."""

    __test__: ClassVar[bool] = False
    how: str = "abort"

    def run(self, module: Module, ctx: PassContext) -> None:
        if self.how == "abort":
            os.abort()
        if self.how == "hang":
            time.sleep(3600)
        if self.how == "user":
            raise UserError("this model is not for me")
        raise RuntimeError("this pass fails on purpose")
