"""inspect.signature of catalogued functions, parsed from their text on demand.

SPDX-License-Identifier: Apache-2.0
"""

import ast
import inspect


def signature_of(function):
    """The inspect.Signature for the text of a builtin's signature."""
    text = function.__text_signature__
    arguments = ast.parse(f"def f{text}: pass").body[0].args
    parameters = []
    positional = arguments.posonlyargs + arguments.args
    defaults = [inspect.Parameter.empty] * (len(positional) - len(arguments.defaults))
    defaults += [_value(node) for node in arguments.defaults]
    for index, (argument, default) in enumerate(zip(positional, defaults)):
        only = index < len(arguments.posonlyargs)
        kind = (
            inspect.Parameter.POSITIONAL_ONLY if only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        parameters.append(inspect.Parameter(argument.arg, kind, default=default))
    if arguments.vararg:
        parameters.append(inspect.Parameter(arguments.vararg.arg, inspect.Parameter.VAR_POSITIONAL))
    for argument, node in zip(arguments.kwonlyargs, arguments.kw_defaults):
        default = inspect.Parameter.empty if node is None else _value(node)
        parameters.append(
            inspect.Parameter(argument.arg, inspect.Parameter.KEYWORD_ONLY, default=default)
        )
    return inspect.Signature(parameters)


def _value(node):
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)  # a dtype, or inf
