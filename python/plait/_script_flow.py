"""Bindings, live variables and jumps of statements: the analysis beneath plait.script.

It is conservative: a name that may be bound counts as bound, one that may be read later as live.

SPDX-License-Identifier: Apache-2.0
"""

import ast

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Methods of lists, dicts, sets and deques that mutate them.
MUTATORS = frozenset(
    "add append appendleft clear difference_update discard extend extendleft insert "
    "intersection_update pop popitem popleft remove reverse setdefault sort "
    "symmetric_difference_update update".split()
)

SUSPENDS = {ast.Yield: "yield", ast.YieldFrom: "yield from", ast.Await: "await"}
SUSPENDS |= {ast.AsyncFor: "async for", ast.AsyncWith: "async with"}


class _Binder(ast.NodeVisitor):
    """Names that code binds in its own scope, in order, without those of nested scopes."""

    def __init__(self):
        self.names = {}

    def _bind(self, name):
        if name:
            self.names[name] = None

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load):
            self._bind(node.id)

    def visit_FunctionDef(self, node):
        self._bind(node.name)
        for part in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if part:
                self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self._bind(node.name)
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)

    def visit_Lambda(self, node):
        for part in (*node.args.defaults, *node.args.kw_defaults):
            if part:
                self.visit(part)

    def _visit_comprehension(self, node):
        # Only `:=` inside binds names outside.
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self._bind(part.target.id)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    def visit_alias(self, node):
        self._bind(node.asname or node.name.partition(".")[0])

    def _visit_named(self, node):
        self._bind(node.name)
        self.generic_visit(node)

    visit_ExceptHandler = visit_MatchAs = visit_MatchStar = _visit_named

    def visit_MatchMapping(self, node):
        self._bind(node.rest)
        self.generic_visit(node)


def _nodes(code):
    return code if isinstance(code, (list, tuple)) else [code]


def bound(code):
    """Names that a node, or a list of them, may bind, in order."""
    binder = _Binder()
    for node in _nodes(code):
        binder.visit(node)
    return list(binder.names)


def own_nodes(code):
    """The nodes of code, without those of nested functions and classes."""
    queue = list(_nodes(code))
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            queue += ast.iter_child_nodes(node)


def root(node):
    """The name at the root of a chain of attributes and items, and whether only items are in between."""
    items = True
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        items = items and not isinstance(node, ast.Attribute)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else None), items


def stores(statement):
    """Attributes and items that a statement assigns or deletes, and receivers of mutating methods."""
    for node in own_nodes(statement):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            yield node, node.value if isinstance(node, ast.Subscript) else node
        elif is_mutator(node):
            yield node.func, node.func.value


def is_mutator(node):
    """Whether a node is a call such as `names.append(x)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in MUTATORS
    )


def changed(code, local):
    """Names among local whose containers code mutates, as `names.append(x)` and `table[k] = v` do."""
    found = {}
    for statement in _nodes(code):
        for _, target in stores(statement):
            name, items = root(target)
            if items and name in local:
                found[name] = None
    return list(found)


def augmented(code, local):
    """Names among local that code assigns as `x += v` does."""
    nodes = (node for top in _nodes(code) for node in own_nodes(top))
    targets = (node.target for node in nodes if isinstance(node, ast.AugAssign))
    names = dict.fromkeys(target.id for target in targets if isinstance(target, ast.Name))
    return [name for name in names if name in local]


def written(code, local):
    """Names among local whose objects code may mutate: `x += v` on lists, `x[k] = v`, `x.append(v)`."""
    return list(dict.fromkeys([*changed(code, local), *augmented(code, local)]))


class _Rebinder(_Binder):
    def visit_AugAssign(self, node):
        self.visit(node.value)


def rebinds(code):
    """Names that code rebinds to other objects."""
    binder = _Rebinder()
    for node in _nodes(code):
        binder.visit(node)
    return set(binder.names)


def used(code):
    """Names that code reads, functions inside it included."""
    names = set()
    for top in _nodes(code):
        for node in ast.walk(top):
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Load, ast.Del)):
                names.add(node.id)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    return names


def parameters(arguments):
    """Names of a function's parameters."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [star for star in (arguments.vararg, arguments.kwarg) if star]
    return [argument.arg for argument in every]


def declared(code, kind):
    """Names that `global` or `nonlocal` statements of this scope declare."""
    return {name for node in own_nodes(code) if isinstance(node, kind) for name in node.names}


def captured(code):
    """Names of this scope that nested functions and classes read or bind: they live as long as those do."""
    names = set()
    for node in own_nodes(code):
        if isinstance(node, (*FUNCTIONS, ast.Lambda)):
            body = _nodes(node.body)
            outer = declared(body, ast.Nonlocal)
            own = {*parameters(node.args), *bound(body)} - outer
            names |= ((used(body) | captured(body)) - own) | outer
        elif isinstance(node, ast.ClassDef):
            names |= used(node.body)
    return names


def rebound(code):
    """Names of this scope that functions inside it assign as `nonlocal`."""
    inner = (n for node in own_nodes(code) if isinstance(node, FUNCTIONS) for n in ast.walk(node))
    return {name for node in inner if isinstance(node, ast.Nonlocal) for name in node.names}


def suspends(body):
    """The first node that makes a function with this body a generator or coroutine."""
    for node in own_nodes(body):
        if isinstance(node, tuple(SUSPENDS)):
            return node
    return None


# --- Liveness -------------------------------------------------------------------------------------


def live(statements, after):
    """Names that are live before statements, given those that are live after."""
    for statement in reversed(statements):
        after = _live_before(statement, after)
    return after


def _live_before(node, after):
    if isinstance(node, ast.If):
        return used(node.test) | live(node.body, after) | live(node.orelse, after)
    if isinstance(node, ast.While):
        return live_in_loop(node, after)
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return live_in_loop(node, after) | used(node.iter)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return used(node.items) | (live(node.body, after) - set(bound(node.items)))
    if isinstance(node, (ast.Try, getattr(ast, "TryStar", ast.Try))):
        after = live(node.finalbody, after)
        rescue = after.union(*(live(handler.body, after) for handler in node.handlers))
        rescue |= used([handler.type for handler in node.handlers if handler.type])
        return rescue | live(node.body, rescue | live(node.orelse, after))
    if isinstance(node, ast.Match):
        cases = (live(case.body, after) | used(case) for case in node.cases)
        return used(node.subject) | after.union(*cases)
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return (after - {node.name}) | used(node)
    if isinstance(node, (ast.Return, ast.Raise)):
        return used(node)
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Delete, ast.Import, ast.ImportFrom)):
        return (after - set(bound(node))) | used(node)
    return after | used(node)


def live_in_loop(node, after):
    """Names that are live at the start of an iteration of a loop, or after the loop."""
    if isinstance(node, ast.While):
        head, target = after | used(node.test), set()
    else:
        head, target = after | used(getattr(node, "stop", None) or []), set(bound(node.target))
        head |= used(node.target)
    while True:
        more = head | (live(node.body, head) - target)
        if more == head:
            return head
        head = more


# --- Jumps ----------------------------------------------------------------------------------------


def _blocks(node):
    """The blocks of a compound statement that is not a loop, function or class."""
    for field in ("body", "orelse", "finalbody"):
        yield getattr(node, field, [])
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def jumps(code):
    """Which of "return", "break" and "continue" leave code."""
    found = set()
    for node in _nodes(code):
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            found.add(type(node).__name__.lower())
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            found |= (jumps(node.body) & {"return"}) | jumps(node.orelse)
        elif not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.expr)):
            for block in _blocks(node):
                found |= jumps(block)
    return found


def falls_through(statements):
    """Whether control may reach the end of statements."""
    return all(map(_completes, statements))


def _completes(node):
    if isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
        return False
    if isinstance(node, ast.If):
        return falls_through(node.body) or falls_through(node.orelse)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return falls_through(node.body)
    if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value:
        return leaves_by_break(node)
    if isinstance(node, ast.Try):
        ends = [[*node.body, *node.orelse], *(handler.body for handler in node.handlers)]
        return falls_through(node.finalbody) and any(map(falls_through, ends))
    return True


def leaves_by_break(loop):
    return "break" in jumps(loop.body)


# --- Definite assignment --------------------------------------------------------------------------


def found_by(loop):
    """Variables that have a value after every `break` of a loop, and after the loop's `else` if it is reached."""
    forever = (
        isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and loop.test.value
    )
    if not loop.orelse and not forever:
        return set()
    breaks: list[set] = []
    _assigned(loop.body, set(), breaks)
    by_else = None if forever else _assigned(loop.orelse, set(), [])
    names = set.intersection(*breaks) if breaks else set()
    return names if by_else is None else names & by_else


def _assigned(statements, names, breaks):
    """Names that are definitely assigned after statements (None if nothing follows), and at each break."""
    for node in statements:
        if isinstance(node, ast.If):
            ends = [_assigned(block, names, breaks) for block in (node.body, node.orelse)]
            ends = [end for end in ends if end is not None]
            if not ends:
                return None
            names = set.intersection(*ends)
        elif isinstance(node, ast.With):
            end = _assigned(node.body, names | set(bound(node.items)), breaks)
            names = names if end is None else end
        elif isinstance(node, ast.Break):
            breaks.append(names)
            return None
        elif isinstance(node, (ast.Return, ast.Raise, ast.Continue)):
            return None
        elif isinstance(node, (ast.Assign, *FUNCTIONS)):
            names = names | set(bound(node))
        elif "break" in jumps(node):
            breaks.append(set())
    return names
