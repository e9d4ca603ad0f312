"""Frames that JAX hides in tracebacks; plait's errors name the user's line.

SPDX-License-Identifier: Apache-2.0
"""

_exclude_paths: list = []


def api_boundary(fun, **kwargs):
    """fun."""
    return fun


def register_exclusion(path):
    """Notes a file whose frames are hidden."""
    _exclude_paths.append(path)


def include_frame(frame):
    """Whether a frame is one of the user's: of none of the files that are hidden."""
    return not any(path in frame.f_code.co_filename for path in _exclude_paths)
