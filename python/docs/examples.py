"""An example of each public function, run when the pages are made: from written.py, or found from its parameters.

What is found is a call on the first arguments of CANDIDATES that the function takes and that give finite
numbers. So an entry never shows what does not run.

SPDX-License-Identifier: Apache-2.0
"""

import ast
import contextlib
import inspect
import io
import itertools
import linecache
import re
import textwrap

import numpy as np
import plait
import plait.numpy as jnp
from plait import (
    debug,
    dtypes,
    flatten_util,
    image,
    lax,
    nn,
    ops,
    optim,
    random,
    scipy,
    sparse,
    tree,
    tree_util,
)
from written import WRITTEN

NAMES = {
    "plait": plait, "jnp": jnp, "np": np, "lax": lax, "nn": nn, "ops": ops, "optim": optim, "random": random,
    "image": image, "scipy": scipy, "sparse": sparse, "tree": tree, "debug": debug, "dtypes": dtypes, "flatten_util": flatten_util,
    "tree_util": tree_util, "nan": float("nan"), "inf": float("inf"),
}  # fmt: skip
IMPORTS = """import numpy as np
import plait, plait.numpy as jnp
from plait import debug, dtypes, flatten_util, image, lax, nn, ops, optim, random, scipy, sparse
from plait import tree, tree_util
"""

# Functions that write, wait, or change what other examples see.
NOT_CALLED = re.compile(
    r"save|load|file|breakpoint|set_|clear|register|pdb|callback|print|bind$|conformance|profile|draw|fuzz|info$"
)
# By the name of a parameter, then by its kind in the documentation.
BY_NAME = {
    "key": ["random.key(0)"], "shape": ["(2, 3)"], "newshape": ["(-1,)"], "num_segments": ["2"],
    "segment_ids": ["jnp.array([0, 0, 1])"], "p": ["0.5", "3", "jnp.array([0.25, 0.25, 0.5])"],
    "repeats": ["2"], "reps": ["2"], "num_classes": ["3"], "axis": ["0"], "axes": ["(0, 1)"], "k": ["1"],
    "n": ["2"], "N": ["3"], "M": ["3"], "num": ["2"], "minval": ["0"], "maxval": ["10"], "dtype": ["jnp.float32"],
    "fun": ["jnp.sin"], "f": ["jnp.sin"], "func": ["jnp.sin"], "tree": ["{'a': 1, 'b': (2, 3)}"],
    "pytree": ["{'a': jnp.ones(2), 'b': jnp.zeros(2)}"], "is_leaf": ["None"], "x1": ["jnp.array([1, 2])", "jnp.array([1.0, 2.0])"],
    "params": ["{'w': jnp.ones(2)}"], "grads": ["{'w': jnp.ones(2)}"], "source": ["0"], "destination": ["1"],
}  # fmt: skip
ARRAYS = [
    "jnp.array([0.25, 0.5, 0.75])", "jnp.array([[2.0, 1.0], [1.0, 3.0]])", "jnp.array([1, 2, 3])", "0.5", "2", "1.5",
    "jnp.array([True, False])", "jnp.ones((1, 4, 4, 1))", "jnp.ones((2, 2, 2))", "jnp.array([1.0 + 2.0j])", "jnp.ones((2, 3))",
]  # fmt: skip
CANDIDATES = {
    "sequence of array": ["[jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])]"],
    "int": ["1", "2", "0", "3"],
    "int or sequence of int": ["0", "2", "(0, 1)", "(2, 2)", "(1,)"],
    "float": ["0.5", "1.0"],
    "bool": ["True"],
    "dtype": ["jnp.float32"],
    "tree": ["{'w': jnp.ones(2)}"],
    "str": ['"VALID"', '"i"'],
}
LONGEST = 700  # characters of a result
NUMBERS = itertools.count(1)


def prefix_of(module):
    if module == "plait":
        return module
    return re.sub(r"^plait\.(numpy$|numpy(?=\.))", "jnp", module).removeprefix("plait.")


def run(code):
    """The example as a console shows it, and its result."""
    code = textwrap.dedent(code)
    name = f"<example {next(NUMBERS)}>"
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)  # for plait.script
    body = ast.parse(code).body
    names, printed = dict(NAMES), io.StringIO()
    result = None
    last = [body.pop()] if isinstance(body[-1], ast.Expr) else []
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), name, "exec"), names)
        for node in last:
            result = eval(compile(ast.Expression(node.value), name, "eval"), names)
            if result is not None:
                print(repr(result))
    shown, lines = [], code.splitlines()
    for node in body + last:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        block = lines[first - 1 : node.end_lineno]
        shown += [("... " if index else ">>> ") + line for index, line in enumerate(block)]
        shown += ["..."] if len(block) > 1 else []
    return "\n".join(shown + printed.getvalue().splitlines()), result


def is_good(result):
    """Whether it shows something: numbers that are finite, of which there are some."""
    if result is None or callable(result):
        return False
    leaves = plait.tree.leaves(result)
    arrays = [
        np.asarray(random.key_data(leaf) if str(getattr(leaf, "dtype", "")) == "key<fry>" else leaf)
        for leaf in leaves
        if plait._plait.is_array_like(leaf)
    ]
    numbers = [a for a in arrays if a.dtype.kind in "fc" or a.dtype.kind == "V"]
    return all(np.isfinite(a.astype(complex)).all() for a in numbers) and all(
        a.size for a in arrays
    )


def kinds_of(function):
    return dict(re.findall(r"^  (\w+): (.+)$", function.__doc__ or "", re.M))


def needed(function):
    """The parameters that a call has to give, or None where that is not known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [
        p
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]


def with_call(path):
    """What gives a function is shown with a call of that."""
    name = path.rpartition(".")[2]
    argument = "0.5" if name == "constant" else ""
    if name == "variance_scaling":
        argument = '1.0, "fan_in", "normal"'
    return run(f"nn.initializers.{name}({argument})(random.key(0), (2, 3))")[0]


def found(path, function):
    """A call on arguments that the function takes."""
    module, _, name = path.rpartition(".")
    parameters = needed(function)
    if NOT_CALLED.search(name) or parameters is None or len(parameters) > 6:
        return None
    kinds = kinds_of(function)
    if not kinds and not parameters and not (function.__doc__ or "").count("("):
        return None
    choices = []
    for each in parameters:
        kind = kinds.get(each.name, "array").removesuffix(" or None")
        choices.append(CANDIDATES.get(kind, []) + BY_NAME.get(each.name, []) or ARRAYS)
        if each.name in BY_NAME:
            choices[-1] = BY_NAME[each.name] + CANDIDATES.get(kind, ARRAYS)
    arrays = [index for index, choice in enumerate(choices) if choice is ARRAYS]
    tried = 0
    # Equal arrays first: most functions of several take those.
    for value in ARRAYS if arrays else [None]:
        others = [[value] if index in arrays else choice for index, choice in enumerate(choices)]
        for words in itertools.product(*others):
            example = attempt(module, name, parameters, words)
            tried += 1
            if example or tried > 40:
                break
        if example:
            return example
    for words in itertools.islice(itertools.product(*choices), 300):
        example = attempt(module, name, parameters, words)
        if example:
            return example
    return None


def attempt(module, name, parameters, words):
    shown = [
        f"{each.name}={word}" if each.kind == each.KEYWORD_ONLY else word
        for each, word in zip(parameters, words)
    ]
    code = f"{prefix_of(module)}.{name}({', '.join(shown)})"
    try:
        text, result = run(code)
    except Exception:
        return None
    return text if is_good(result) and len(text) <= LONGEST else None


def example_of(path, function):
    """The example of plait.numpy.sin, given by its path, as a console shows it; or None."""
    if path in WRITTEN:
        return run(WRITTEN[path])[0]
    name = path.rpartition(".")[2]
    twin = "plait.tree." + name.removeprefix("tree_")
    if path.startswith("plait.tree_util.") and twin in WRITTEN:
        call = rf"\btree\.{twin.rpartition('.')[2]}\b"
        return run(re.sub(call, f"tree_util.{name}", WRITTEN[twin]))[0]
    if path.startswith("plait.nn.initializers.") and NOT_CALLED.search(path) is None:
        try:
            return with_call(path)
        except Exception:
            return None
    if inspect.isclass(function) or path.count(".") == 1:
        return None
    module, _, name = path.rpartition(".")
    if module == "plait.optim" and hasattr(optim, f"{name}_init"):
        code = f"""params = {{"w": jnp.ones(2)}}
updates, state = optim.{name}(params, optim.{name}_init(params), params)
updates"""
        return run(code)[0]
    return found(path, function)
