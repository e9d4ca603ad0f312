"""Abstract interpretation of a function's byte code, on places instead of values; _reads.py defines places.

A value is the set of what it may be. A value that did not come from outside is a mark in this set: a Python number, a
value of the trace, or unknown. So a name that may be a constant or something else is not taken for the constant. All
branches are taken, and a variable holds everything that the code stores in it anywhere, so the code is run until a
fixed point.

SPDX-License-Identifier: Apache-2.0
"""

import dis
import functools
import types


class Mark:
    """What is known of a value that did not come from outside."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


NOTHING: frozenset = frozenset()
UNKNOWN = frozenset([Mark("unknown")])
PLAIN = frozenset([Mark("plain")])  # nothing of the trace: NumPy computes with it
TRACED = frozenset([Mark("traced")])  # an array of plait
MARKS = UNKNOWN | PLAIN | TRACED
MOST_PASSES = 12
MOST_ITEMS = 4096
MOST_NESTED = 1000  # interpretations; beyond, a function that a frame makes is followed once, whatever its arguments

STOPS = {
    "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE",
}  # fmt: skip
# Instructions that only pop from the stack, and how many values.
POPS = {
    "POP_TOP": 1, "END_FOR": None, "POP_EXCEPT": 1, "RERAISE": 1, "DELETE_SUBSCR": 2, "DELETE_ATTR": 1,
    "INTERPRETER_EXIT": 1, "POP_ITER": 1,
}  # fmt: skip
# Instructions that store: which of their operands, counted from the deepest, is a use. Later reads of the stored value
# are not followed. The object or container that is stored into is only written to.
STORES = {
    "STORE_GLOBAL": (1, [0]), "STORE_NAME": (1, [0]), "STORE_ATTR": (2, [0]), "STORE_SUBSCR": (3, [0, 2]),
    "STORE_SLICE": (4, [0, 2, 3]),
}  # fmt: skip
NO_EFFECT = {
    "RESUME", "NOP", "CACHE", "PRECALL", "COPY_FREE_VARS", "MAKE_CELL", "SETUP_ANNOTATIONS",
    "EXTENDED_ARG", "DELETE_FAST", "DELETE_DEREF", "DELETE_GLOBAL", "DELETE_NAME", "LIST_TO_TUPLE",
    "NOT_TAKEN",
}  # fmt: skip


@functools.lru_cache(maxsize=8192)
def instructions(code):
    return [i for i in dis.get_instructions(code) if i.opname not in NO_EFFECT]


class Frame:
    """One interpretation of code: of a captured function, or of one that a frame makes (outer)."""

    def __init__(self, reader, code, node, outer):
        self.reader, self.code, self.node, self.outer = reader, code, node, outer
        self.variables, self.stack, self.at_jumps = {}, [], {}
        self.result, self.names = NOTHING, ()
        # Interpretations of functions that it makes, by code and arguments: of this pass, and of the one before.
        self.nested, self.former = {}, {}
        self.changed = False
        self.traced, self.loaded = (
            None,
            {},
        )  # in the last run: what unknown arguments are, and see load
        self.given = set()  # code of functions that the frame passes to plait

    @property
    def function(self):
        return self.node.value if self.outer is None else self.outer.function

    def run(self, args, names=()):
        traced, self.reader.gives_traced = self.reader.gives_traced, False
        self.traced, self.loaded = traced, {}
        self.bind(args, names, TRACED if traced else UNKNOWN)
        if self.outer is None and args is None:
            self.reader.bind_defaults(self)
        for _ in range(MOST_PASSES):
            self.changed = False
            self.stack, dead = [], False
            self.former, self.nested = self.nested, {code: {} for code in self.nested}
            for instruction in instructions(self.code):
                known = self.at_jumps.get(instruction.offset)
                if dead:
                    self.stack = list(known or ())
                elif known is not None:
                    self.stack = merged(self.stack, known)
                self.step(instruction)
                dead = instruction.opname in STOPS
            if not self.changed:
                break
        else:
            for value in list(self.variables.values()):
                self.reader.use(value)
        for code in list(self.nested):
            self.call_nested(code, None)
        self.reader.gives_traced = traced
        return self.result

    def bind(self, args, names, unknown):
        """Parameters: for unknown arguments, the marks that jit was given."""
        code = self.code
        count = code.co_argcount + code.co_kwonlyargcount
        parameters = code.co_varnames[:count]
        if self.outer is None:
            for name in parameters[0 if args is None else len(args) - len(names) :]:
                if name in self.reader.arguments and name not in names:
                    self.store(name, self.reader.arguments[name])
        if args is None:
            for name in code.co_varnames[
                : count + bool(code.co_flags & 4) + bool(code.co_flags & 8)
            ]:
                if name not in self.variables:
                    is_plain = unknown == TRACED and name in self.reader.plain
                    self.store(name, PLAIN if is_plain else unknown)
            return
        positional = args[: len(args) - len(names)]
        for name, value in zip(code.co_varnames[: code.co_argcount], positional):
            self.store(name, value)
        for value in positional[code.co_argcount :]:
            self.reader.use(value)
            if code.co_flags & 4:
                self.store(code.co_varnames[count], self.reader.group([value]))
        for name, value in zip(names, args[len(positional) :]):
            self.store(name, value) if name in parameters else self.reader.use(value)
        if self.outer is None:
            given = set(parameters[: len(positional)]) | set(names)
            self.reader.bind_defaults(self, given)

    def call_nested(self, code, args, names=()):
        """A function that this frame's code makes."""
        frames = self.nested.setdefault(code, {})
        args = None if args is None else [arg or UNKNOWN for arg in args]
        key = None if args is None else (*args, names)
        if key in frames:
            return frames[key].result
        frame = self.former.get(code, {}).get(key)
        if frame is None and args is not None:
            if len(frames) > 64 or self.reader.num_nested > MOST_NESTED:
                for arg in args:
                    self.reader.use(arg)
                return self.call_nested(code, None) | UNKNOWN
        if frame is None:
            self.reader.num_nested += 1
            frame = Frame(self.reader, code, None, self)
        frames[key] = frame
        if args is None and self.reader.gives_traced:
            self.given.add(code)
        traced = args is None and code in self.given
        if frame.is_current(traced):
            return frame.result
        self.reader.gives_traced = traced
        return frame.run(args, names)

    def is_current(self, traced):
        """Whether another run would find what the last one did. Without this, a function in a function in a function
        would run as often as all around it together."""
        if self.traced is not traced:
            return False
        # All are loaded: the enclosing frame depends on them too.
        return all([self.outer.load(name) == value for name, value in self.loaded.items()])

    # --- Variables and the stack ----------------------------------------------------------------

    def store(self, name, value):
        before = self.variables.get(name, NOTHING)
        if not value <= before:
            if len(before) > MOST_ITEMS or depth_of(value) > 4:
                self.reader.use(value)
                return
            self.variables[name] = before | value
            self.changed = True

    def store_around(self, name, value):
        """Stores a variable, which may belong to an enclosing function."""
        if name not in self.code.co_freevars:
            self.store(name, value)
            return
        self.reader.use(value)
        if self.outer is not None:
            self.outer.store_around(name, value)

    def load(self, name):
        """A local variable, or one of an enclosing function."""
        if name in self.variables:
            return self.variables[name]
        if name in self.code.co_freevars:
            if self.outer is not None:
                value = self.outer.load(name)
                self.loaded.setdefault(name, value)
                return value
            return self.reader.cell(self.node, name)
        return NOTHING

    def push(self, value):
        self.stack.append(value)

    def pop(self, count=None):
        if count is None:
            return self.stack.pop() if self.stack else NOTHING
        values = [self.pop() for _ in range(count)]
        return values[::-1]

    def jump(self, instruction):
        """The stack at the target of a jump."""
        target = instruction.argval
        known = self.at_jumps.get(target)
        now = merged(self.stack, known) if known is not None else list(self.stack)
        self.changed |= now != known
        self.at_jumps[target] = now

    # --- Instructions ---------------------------------------------------------------------------

    def step(self, instruction):
        name = instruction.opname
        rule = RULES.get(name)
        if rule is not None:
            rule(self, instruction)
        elif name in POPS:
            count = POPS[name]
            self.pop(self.effect(instruction) if count is None else count)
        elif name in STORES:
            count, used = STORES[name]
            values = self.pop(count)
            for index in used:
                self.reader.use(values[index])
        elif name in LOCALS:
            self.push(self.load(instruction.argval))
        elif "JUMP" in name:
            self.step_jump(instruction)
        elif name.startswith("UNARY_"):
            self.operate(1)
        else:
            self.step_unknown(instruction)

    def effect(self, instruction):
        """The number of values that the instruction pops."""
        return -dis.stack_effect(instruction.opcode, instruction.arg)

    def step_unknown(self, instruction):
        """Every value that it pops or inspects is used."""
        argument = instruction.arg if instruction.opcode >= dis.HAVE_ARGUMENT else None
        effect = dis.stack_effect(instruction.opcode, argument)
        for value in self.pop(max(0, -effect) + (1 if effect <= 0 else 0)):
            self.reader.use(value)
        for _ in range(effect if effect > 0 else 1):
            self.push(UNKNOWN)

    def step_jump(self, instruction):
        name = instruction.opname
        if name.startswith("JUMP_IF"):  # the value stays on the stack where the jump is taken
            self.reader.use(self.stack[-1] if self.stack else NOTHING)
            self.jump(instruction)
            self.pop()
            return
        if name.startswith("POP_JUMP"):
            use = self.reader.use_type if "NONE" in name else self.reader.use
            use(self.pop())
        self.jump(instruction)

    def operate(self, count):
        values = self.pop(count)
        if count == 2:
            self.push(self.reader.operate(*values))
            return
        for value in values:
            self.reader.use(value, "numpy" if count == 1 else "any")
        self.push(self.reader.kind(values))

    def group(self, count):
        self.push(self.reader.group(self.pop(count)))

    def add_to(self, depth, value):
        """Appends to the list that a comprehension or a display builds."""
        if 0 < depth <= len(self.stack):
            self.stack[-depth] |= self.reader.group([value])

    def call(self, count, names=()):
        args = self.pop(count)
        first, second = self.pop(2)
        self.names = ()
        if not args and self.calls(first | second, super):
            owner = self.code.co_varnames[:1]
            args = [self.load("__class__"), self.load(owner[0]) if owner else UNKNOWN]
        if self.calls(first | second, globals):
            self.push(self.reader.scope(self.function))
            return
        if first and second:  # a function and what it is bound to
            args = [second, *args]
            second = NOTHING
        self.push(self.reader.call(first | second, args, names))

    def calls(self, callee, function):
        return any(getattr(item, "value", None) is function for item in callee)


def merged(stack, other):
    """Joins two stacks where control flow meets; they are equally deep in code that Python compiled."""
    if len(stack) != len(other):
        return stack if len(stack) > len(other) else list(other)
    return [a | b for a, b in zip(stack, other)]


def depth_of(value):
    """The nesting depth of groups."""
    return max((1 + max(map(depth_of, i.parts), default=0) for i in value if hasattr(i, "parts")),
               default=0)  # fmt: skip


LOCALS = {
    "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "LOAD_DEREF", "LOAD_CLASSDEREF",
    "LOAD_FAST_BORROW",
}  # fmt: skip
RULES: dict = {}


def rule(*names):
    def add(function):
        for name in names:
            RULES[name] = function
        return function

    return add


@rule("LOAD_CLOSURE", "PUSH_NULL", "LOAD_BUILD_CLASS", "LOAD_ASSERTION_ERROR", "PUSH_EXC_INFO")
@rule("LOAD_LOCALS", "RETURN_GENERATOR")
def _push_nothing(frame, instruction):
    frame.push(NOTHING)


@rule("LOAD_CONST", "LOAD_SMALL_INT")
def _load_const(frame, instruction):
    frame.push(frame.reader.constant(instruction.argval))


@rule("LOAD_GLOBAL", "LOAD_NAME")
def _load_global(frame, instruction):
    value = frame.reader.name(frame.function, instruction.argval)
    if instruction.opname == "LOAD_GLOBAL" and instruction.arg & 1:
        frame.push(NOTHING)
    frame.push(value)


@rule("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
def _load_two(frame, instruction):
    for name in instruction.argval:
        frame.push(frame.load(name))


@rule("STORE_FAST", "STORE_DEREF", "STORE_FAST_MAYBE_NULL")
def _store(frame, instruction):
    frame.store_around(instruction.argval, frame.pop())


@rule("STORE_FAST_LOAD_FAST")
def _store_load(frame, instruction):
    stored, loaded = instruction.argval
    frame.store(stored, frame.pop())
    frame.push(frame.load(loaded))


@rule("STORE_FAST_STORE_FAST")
def _store_two(frame, instruction):
    for name in instruction.argval:
        frame.store(name, frame.pop())


@rule("LOAD_ATTR", "LOAD_METHOD")
def _load_attribute(frame, instruction):
    value = frame.reader.attribute(frame.pop(), instruction.argval)
    is_method = instruction.opname == "LOAD_METHOD"
    if not is_method and dis.stack_effect(instruction.opcode, instruction.arg) == 1:
        is_method = True
    if is_method:
        frame.push(NOTHING)
    frame.push(value)


@rule("LOAD_SUPER_ATTR")
def _load_super(frame, instruction):
    _, cls, owner = frame.pop(3)
    value = frame.reader.attribute(frame.reader.super_of(cls, owner), instruction.argval)
    if dis.stack_effect(instruction.opcode, instruction.arg) == -1:
        frame.push(NOTHING)
    frame.push(value)


@rule("BINARY_SUBSCR")
def _subscript(frame, instruction):
    value, key = frame.pop(2)
    frame.push(frame.reader.item(value, key))


@rule("BINARY_SLICE")
def _slice(frame, instruction):
    value, start, stop = frame.pop(3)
    frame.reader.use(start)
    frame.reader.use(stop)
    frame.reader.use(value, "numpy")
    frame.push(value)


@rule("BINARY_OP")
def _binary(frame, instruction):
    if instruction.argrepr == "[]":
        _subscript(frame, instruction)
    else:
        frame.operate(2)


@rule("COMPARE_OP", "CONTAINS_OP")
def _compare(frame, instruction):
    frame.operate(2)


@rule("IS_OP")
def _is(frame, instruction):
    values = frame.pop(2)
    for value in values:
        frame.reader.use_type(value)
    frame.push(PLAIN)


@rule("TO_BOOL")
def _to_bool(frame, instruction):
    frame.operate(1)


@rule("GET_ITER", "GET_YIELD_FROM_ITER")
def _get_iter(frame, instruction):
    frame.push(frame.reader.group([frame.reader.iterate(frame.pop())]))


@rule("FOR_ITER")
def _for_iter(frame, instruction):
    iterator = frame.stack[-1] if frame.stack else NOTHING
    taken = dis.stack_effect(instruction.opcode, instruction.arg, jump=True)
    stack = list(frame.stack)
    if taken < 0:
        frame.pop(-taken)
    else:
        frame.stack += [UNKNOWN] * taken
    frame.jump(instruction)
    frame.stack = stack
    frame.push(frame.reader.iterate(iterator))


@rule("UNPACK_SEQUENCE")
def _unpack(frame, instruction):
    for part in reversed(frame.reader.unpack(frame.pop(), instruction.arg)):
        frame.push(part)


@rule("UNPACK_EX")
def _unpack_rest(frame, instruction):
    part = frame.reader.iterate(frame.pop())
    before, after = instruction.arg & 0xFF, instruction.arg >> 8
    for index in range(after + 1 + before):
        frame.push(frame.reader.group([part]) if index == after else part)


@rule("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET")
def _build(frame, instruction):
    frame.group(instruction.arg)


@rule("BUILD_SLICE")
def _build_slice(frame, instruction):
    for value in frame.pop(instruction.arg):
        frame.reader.use(value, "numpy")
    frame.push(UNKNOWN)


@rule("BUILD_MAP")
def _build_map(frame, instruction):
    values = frame.pop(2 * instruction.arg)
    for value in values:
        frame.reader.use(value)
    frame.push(frame.reader.group(values[1::2]))


@rule("BUILD_CONST_KEY_MAP")
def _build_const_map(frame, instruction):
    frame.pop()
    values = frame.pop(instruction.arg)
    for value in values:
        frame.reader.use(value)
    frame.push(frame.reader.group(values))


@rule("BUILD_STRING")
def _build_string(frame, instruction):
    frame.pop(instruction.arg)
    frame.push(PLAIN)


@rule("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE")
def _format(frame, instruction):
    has_spec = instruction.opname == "FORMAT_WITH_SPEC"
    has_spec |= instruction.opname == "FORMAT_VALUE" and bool(instruction.arg & 4)
    if has_spec:
        frame.reader.use(frame.pop())
    frame.reader.use_text(frame.pop())
    frame.push(PLAIN)


@rule("LIST_APPEND", "SET_ADD")
def _append(frame, instruction):
    frame.add_to(instruction.arg, frame.pop())


@rule("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE")
def _extend(frame, instruction):
    value = frame.pop()
    if instruction.opname.startswith("DICT"):
        frame.reader.use(value)
    frame.add_to(instruction.arg, frame.reader.iterate(value))


@rule("MAP_ADD")
def _map_add(frame, instruction):
    key, value = frame.pop(2)
    frame.reader.use(key)
    frame.reader.use(value)
    frame.add_to(instruction.arg, value)


@rule("KW_NAMES")
def _names(frame, instruction):
    frame.names = frame.code.co_consts[instruction.arg]


@rule("CALL")
def _call(frame, instruction):
    frame.call(instruction.arg, frame.names)


@rule("CALL_KW")
def _call_named(frame, instruction):
    names = [item.value for item in frame.pop() if isinstance(item.value, tuple)]
    frame.call(instruction.arg, names[0] if names else ())


@rule("CALL_FUNCTION_EX")
def _call_spread(frame, instruction):
    # Since Python 3.14 there is always a place for keywords, and no argument that says so.
    has_names = instruction.arg is None or instruction.arg & 1
    spread = frame.pop(2 if has_names else 1)
    first, second = frame.pop(2)
    for value in spread:
        frame.reader.use(value)
        frame.reader.iterate(value)
    frame.reader.use(first | second)
    frame.push(UNKNOWN)


@rule("MAKE_FUNCTION")
def _make_function(frame, instruction):
    code = [item.value for item in frame.pop() if isinstance(item.value, types.CodeType)]
    # Defaults, annotations and cells, where they are not assigned later.
    for value in frame.pop(-dis.stack_effect(instruction.opcode, instruction.arg)):
        frame.reader.use(value)
    if code:
        frame.nested.setdefault(code[0], {})
    frame.push(frame.reader.closure(code[0], frame) if code else NOTHING)


@rule("SET_FUNCTION_ATTRIBUTE")
def _set_function_attribute(frame, instruction):
    function = frame.pop()
    frame.reader.use(frame.pop())
    frame.push(function)


@rule("RETURN_VALUE")
def _return(frame, instruction):
    frame.result |= frame.pop()


@rule("RETURN_CONST")
def _return_const(frame, instruction):
    frame.result |= frame.reader.constant(instruction.argval)


@rule("YIELD_VALUE")
def _yield(frame, instruction):
    value = frame.pop()
    frame.reader.use(value)
    frame.result |= frame.reader.group([value])
    frame.push(UNKNOWN)


@rule("SEND")
def _send(frame, instruction):
    frame.pop()
    item = frame.reader.iterate(frame.stack[-1] if frame.stack else UNKNOWN)
    frame.push(item | UNKNOWN)
    stack = list(frame.stack)
    taken = dis.stack_effect(instruction.opcode, instruction.arg, jump=True)
    if taken < 0:
        frame.pop(-taken)
        frame.pop()
        frame.push(item | UNKNOWN)
    frame.jump(instruction)
    frame.stack = stack


@rule("MATCH_CLASS")
def _match_class(frame, instruction):
    value, cls, names = frame.pop(3)
    named = [name for item in names for name in item.value]
    for item in cls:
        named = [*getattr(item.value, "__match_args__", ())[: instruction.arg], *named]
    frame.reader.use_type(value)
    frame.reader.use(cls)
    frame.push(frame.reader.group([frame.reader.attribute(value, name) for name in named]))


@rule("IMPORT_NAME")
def _import(frame, instruction):
    level, names = ([item.value for item in value] for value in frame.pop(2))
    scope = frame.function.__globals__
    name = instruction.argval
    if level and level[0]:
        package = scope.get("__package__") or scope.get("__name__", "").rpartition(".")[0]
        for _ in range(level[0] - 1):
            package = package.rpartition(".")[0]
        name = f"{package}.{name}" if name else package
    elif names == [None]:
        name = name.partition(".")[0]
    frame.push(frame.reader.module(name))


@rule("IMPORT_FROM")
def _import_from(frame, instruction):
    module = frame.stack[-1] if frame.stack else NOTHING
    frame.push(frame.reader.attribute(module, instruction.argval))


@rule("COPY")
def _copy(frame, instruction):
    deep = instruction.arg <= len(frame.stack)
    frame.push(frame.stack[-instruction.arg] if deep else UNKNOWN)


@rule("SWAP")
def _swap(frame, instruction):
    if instruction.arg <= len(frame.stack):
        stack, place = frame.stack, -instruction.arg
        stack[-1], stack[place] = stack[place], stack[-1]


@rule("GET_LEN")
def _get_len(frame, instruction):
    frame.reader.use(frame.stack[-1] if frame.stack else NOTHING)
    frame.push(PLAIN)
