"""Names for parts of programs: named_scope.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib

from plait import _plait


class named_scope(contextlib.ContextDecorator):  # noqa: N801, a function to its users
    """A context, or a decorator, in which traced equations belong to a scope of this name.

    Scopes nest: inside named_scope("encoder") and named_scope("attention"), equations are in "encoder/attention".
    Transforms keep them. Summaries, pictures and profiles group by scope; the results of programs do not depend on it.
    ValueError for an empty name, or one that is not a string.
    """

    def __init__(self, name):
        if not isinstance(name, str) or not name:
            _plait.fail(
                "ValueError",
                f"named_scope: the name is {name!r:.60}",
                'give a scope a name: with named_scope("attention"):',
            )
        self.name = name.encode("utf-8", "backslashreplace").decode()
        self._entered = []

    def __enter__(self):
        scope = _plait.NamedScope(self.name)
        scope.__enter__()
        self._entered.append(scope)
        return self

    def __exit__(self, *_):
        self._entered.pop().__exit__()
        return False
