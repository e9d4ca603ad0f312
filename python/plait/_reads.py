"""What the code of a jitted function reads from outside, so that a call can tell whether it changed.

The byte code is run on places instead of values (_bytecode.py): a name that leads to a captured object stands
for its place, whatever else for nothing. What is done to a place says what has to stay as it was: an attribute
or a constant key leads on, iteration fixes how many there are, a call is followed into the user's function, and
a place that goes where nobody looks (a library, a container) is fixed as a whole: every number below it, every
length, every function, and those attributes of objects that any code here spells.

SPDX-License-Identifier: Apache-2.0
"""

import array
import collections
import datetime
import decimal
import enum
import fractions
import functools
import operator
import sys
import types

import numpy

from plait import _plait
from plait._bytecode import Frame

# Steps of a path, as C++ knows them.
CELL, ITEM, ATTRIBUTE, ELEMENT = range(4)
# What a guard compares.
VALUE, SAME_OBJECT, TYPE, LENGTH, KEYS, ITEMS, BYTES, AVAL, CODE, ABSENT, ALIAS = range(11)

MOST_BYTES = 1 << 20
MOST_NODES = 200_000
MOST_FRAMES = 500
DEEPEST = 24

OURS = ("plait", "numpy", "math")
VALUES = (
    bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range, enum.Enum,
    numpy.generic, numpy.dtype, decimal.Decimal, fractions.Fraction, datetime.date, datetime.time,
    datetime.timedelta,
)  # fmt: skip
BUILTINS = (
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    numpy.ufunc,
    *{type(function) for function in _plait.catalogue("numpy").values()},
)
SEQUENCES = (list, tuple)
UNORDERED = (set, frozenset, collections.deque)
CONTAINERS = (*SEQUENCES, *UNORDERED, dict, types.MappingProxyType)
MEMORY = (array.array, bytearray)
NOTHING: frozenset = frozenset()
MISSING = object()  # no class has the attribute
TYPE_ATTRIBUTES = {"shape", "ndim", "dtype", "size", "nbytes", "itemsize", "strides", "weak_type"}
MUTATORS = {"append", "extend", "insert", "add", "update", "clear", "appendleft", "extendleft"}
# Dunder methods that are not run by reading an object.
UNREAD = {
    "__init__", "__new__", "__repr__", "__str__", "__del__", "__setattr__", "__delattr__",
    "__post_init__", "__init_subclass__", "__setitem__", "__delitem__", "__reduce__", "__setstate__",
    "__getstate__", "__reduce_ex__", "__copy__", "__deepcopy__", "__format__", "__doc__", "__module__",
    "__annotations__", "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__slots__",
    "__dict__", "__weakref__", "__hash__",
}  # fmt: skip


class Node:
    """A place: the object there, and how it is reached from a root."""

    __slots__ = ("value", "root", "steps", "text")

    def __init__(self, value, root, steps, text):
        self.value, self.root, self.steps, self.text = value, root, steps, text

    @property
    def path(self):
        return self.root, self.steps, self.text


class Const(collections.namedtuple("Const", "kind value")):
    """A constant of the code, or a number of a module that never changes."""

    __slots__ = ()


class Known:
    """What belongs to plait, NumPy or the language, and is not guarded."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(other) is Known and self.value is other.value

    def __hash__(self):
        return hash(id(self.value))


Method = collections.namedtuple("Method", "name node")  # of a container, an array: by name
Bound = collections.namedtuple("Bound", "function owner")  # a node of a function, an item
Super = collections.namedtuple("Super", "owner")
Group = collections.namedtuple("Group", "parts")  # a tuple or list that the code makes
Closure = collections.namedtuple("Closure", "code frame")


def union(values):
    return frozenset().union(*values)


class Reader:
    """Collects guards as (path, kind, expected)."""

    def __init__(self, arguments):
        self.arguments = arguments  # of the jitted function, by parameter: nodes
        self.home = None  # the package of the jitted function
        self.guards = []
        self.guarded = set()
        self.nodes, self.leaves = {}, {}
        self.names, self.reads_all = set(), False
        self.objects, self.wholes, self.alls = {}, set(), set()
        self.used, self.followed = set(), set()
        self.arrays = {}  # by id: (node, ways of being used)
        self.frames, self.depth, self.postponed = {}, 0, []

    # --- Places ---------------------------------------------------------------------------------

    def root(self, value, text, root=None, steps=()):
        return self._node(value, value if root is None else root, steps, text)

    def child(self, node, step, key, value, text):
        return self._node(value, node.root, (*node.steps, (step, key)), text)

    def _node(self, value, root, steps, text):
        place = (id(root), steps)
        if isinstance(value, VALUES):
            found = self.leaves.get(place)
            if found is None:
                found = self.leaves[place] = Node(value, root, steps, text)
            return found
        found = self.nodes.get(id(value))
        if found is None:
            if len(self.nodes) > MOST_NODES:
                _plait.fail(
                    "TracerError",
                    f"jit: the function reads more than {MOST_NODES} objects that it captured",
                    "pass what it works on as arguments",
                )
            found = self.nodes[id(value)] = Node(value, root, steps, text)
        elif (id(found.root), found.steps) != place and not is_array(value):
            self.guard(Node(value, root, steps, text), ALIAS, found.path)
        return found

    def is_user(self, value):
        """Whether code of the user defines it, and no library: code of those is not followed."""
        module = module_of(value)
        if module in ("plait", "numpy"):
            return False
        if module in ("__main__", self.home):
            return True
        return module not in sys.stdlib_module_names and not is_installed(module)

    def guard(self, node, kind, expected):
        if not node.steps and kind in (SAME_OBJECT, CODE, TYPE):
            return  # the function that is jitted itself
        place = (kind, id(node.root), node.steps)
        if place not in self.guarded:
            self.guarded.add(place)
            self.guards.append((node.path, kind, expected))

    def children(self, node):
        """What a container holds, and that it holds so many; a guard fixes either."""
        value = node.value
        if isinstance(value, (dict, types.MappingProxyType)):
            self.guard(node, KEYS, tuple(value))
            return [
                self.child(node, ITEM, key, item, f"{node.text}[{key!r:.40}]")
                for key, item in list(value.items())
            ]
        items = list(value)
        if len(items) > 4 and all(isinstance(item, VALUES) for item in items):
            self.guard(node, ITEMS, tuple(items))
            return []
        self.guard(node, LENGTH, len(items))
        step = ITEM if isinstance(value, SEQUENCES) else ELEMENT
        return [
            self.child(node, step, index, item, f"{node.text}[{index}]")
            for index, item in enumerate(items)
        ]

    def cell(self, node, name):
        """A variable of a function around a captured one."""
        function = node.value
        if name not in function.__code__.co_freevars:
            return NOTHING
        index = function.__code__.co_freevars.index(name)
        try:
            content = function.__closure__[index].cell_contents
        except ValueError:
            return NOTHING
        steps = (*node.steps, (ATTRIBUTE, "__closure__"), (ITEM, index), (CELL, None))
        return self.of_module(content, name, node.root, steps)

    def bind_defaults(self, frame, given=()):
        """Parameters that the call of a captured function leaves to their defaults."""
        node, code = frame.node, frame.code
        defaults = node.value.__defaults__ or ()
        first = code.co_argcount - len(defaults)
        places = [
            (code.co_varnames[first + index], "__defaults__", index, value)
            for index, value in enumerate(defaults)
            if first + index >= 0
        ]
        named = node.value.__kwdefaults__ or {}
        places += [(name, "__kwdefaults__", name, value) for name, value in named.items()]
        for name, attribute, key, value in places:
            if name not in given:
                steps = (*node.steps, (ATTRIBUTE, attribute), (ITEM, key))
                frame.store(name, self.of_module(value, name, node.root, steps))

    def constant(self, value):
        return frozenset([Const(type(value), value)])

    def group(self, values):
        return frozenset([Group(tuple(values))]) if any(values) else NOTHING

    def closure(self, code, frame):
        return frozenset([Closure(code, frame)])

    def super_of(self, owner):
        return frozenset(Super(item) for item in owner)

    # --- Uses -----------------------------------------------------------------------------------

    def use(self, value, how="any"):
        """The value goes where nobody looks: what is below must stay as it is."""
        for item in value:
            if isinstance(item, Node):
                self.use_node(item, how)
                continue
            if (item, how) in self.used:
                continue
            self.used.add((item, how))
            if isinstance(item, Closure):
                self.use(item.frame.call_nested(item.code, None))
            elif isinstance(item, Group):
                for part in item.parts:
                    self.use(part, how)
            elif isinstance(item, Bound):
                self.use(self.call_function(item.function, [frozenset([item.owner])]))
                self.use(frozenset([item.owner]), how)
            elif isinstance(item, (Method, Super)):
                self.use(frozenset([item.node if isinstance(item, Method) else item.owner]), how)
            elif isinstance(item, Known) and how != "type":
                self.use_known(item)

    def use_known(self, item):
        wrapped = getattr(item.value, "__wrapped__", None)
        if isinstance(wrapped, types.FunctionType) and self.is_user(wrapped):
            self.use_node(self.root(wrapped, wrapped.__name__), "any")

    def use_node(self, node, how):
        value = node.value
        if isinstance(value, VALUES):
            self.guard(node, VALUE, value)
        elif is_array(value):
            self.arrays.setdefault(id(value), (node, set()))[1].add(how)
        elif isinstance(value, MEMORY):
            self.guard(node, BYTES, value)
        elif isinstance(value, CONTAINERS):
            if (id(value), how) not in self.wholes:
                self.wholes.add((id(value), how))
                for child in self.children(node):
                    self.use_node(child, how)
            if hasattr(value, "__dict__"):
                self.use_object(node)
        elif isinstance(value, types.FunctionType):
            if id(value) not in self.followed:
                self.followed.add(id(value))
                self.use(self.call_function(node, None))
        elif isinstance(value, (types.MethodType, functools.partial)):
            self.guard(node, TYPE, type(value))
            self.use(self.parts_of(node), how)
        elif isinstance(value, (types.ModuleType, types.CodeType)):
            pass
        elif isinstance(value, (type, *BUILTINS)) or not has_attributes(value):
            self.guard(node, SAME_OBJECT, value)
        elif is_wrapper(value):
            self.guard(node, SAME_OBJECT, value)
            self.use(self.data(node, "__wrapped__"), how)
        else:
            self.use_object(node)

    def parts_of(self, node):
        names = ("func", "args", "keywords")
        if isinstance(node.value, types.MethodType):
            names = ("__func__", "__self__")
        return frozenset(
            self.child(node, ATTRIBUTE, name, getattr(node.value, name), f"{node.text}.{name}")
            for name in names
        )

    def use_object(self, node):
        if id(node.value) not in self.objects:
            self.objects[id(node.value)] = (node, set())
            self.guard(node, TYPE, type(node.value))

    def use_type(self, value):
        """Only whether it is there, and of which type."""
        for item in value:
            if isinstance(item, Node):
                if isinstance(item.value, VALUES):
                    self.guard(item, VALUE, item.value)
                elif is_array(item.value):
                    self.use_node(item, "type")
                else:
                    self.guard(item, TYPE, type(item.value))

    def start(self, function):
        """Follows a function that is called with unknown arguments."""
        self.home = module_of(function)
        is_object = not isinstance(function, (types.FunctionType, functools.partial))
        is_object = is_object and not is_wrapper(function)
        is_method = isinstance(function, types.MethodType)
        name = "self" if is_object and not is_method else getattr(function, "__name__", "f")
        node = self.root(function, name)
        if is_object:
            self.call_node(node, [], ())
        else:
            self.use_node(node, "any")
        self.finish()

    def finish(self):
        """Follows what was put off, and expands objects until no code spells another attribute."""
        while True:
            while self.postponed:
                self.call_function(self.postponed.pop(), None)
            before = len(self.guards), len(self.frames), len(self.nodes), len(self.postponed)
            for node, done in list(self.objects.values()):
                for name in self.names_of(node.value) - done:
                    done.add(name)
                    self.use(self.attribute(frozenset([node]), name))
            after = len(self.guards), len(self.frames), len(self.nodes), len(self.postponed)
            if before == after:
                return

    def names_of(self, value):
        """Attributes of an object that the code may read."""
        kind = type(value)
        own = set(getattr(value, "__dict__", ()))
        for cls in kind.__mro__:
            slots = cls.__dict__.get("__slots__", ())
            own |= {slots} if isinstance(slots, str) else set(slots)
        methods = set()
        for cls in kind.__mro__:
            if self.is_user(cls):
                methods |= set(cls.__dict__)
        everything = self.reads_all or id(value) in self.alls or not self.is_user(kind)
        read = own | methods if everything else (own | methods) & self.names
        read |= {name for name in methods if name.startswith("__") and callable_of(kind, name)}
        return read - UNREAD

    # --- Operations -----------------------------------------------------------------------------

    def name(self, function, name):
        """A global of a function, or what the language calls so."""
        if name in function.__globals__:
            scope = function.__globals__
            return self.of_module(scope[name], name, scope, ((ITEM, name),))
        builtins = function.__builtins__
        return frozenset([Known(builtins[name])]) if name in builtins else NOTHING

    def of_module(self, value, text, root, steps):
        if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in OURS:
            return frozenset([Known(value)])
        return frozenset([self.root(value, text, root, steps)])

    def module(self, name):
        module = sys.modules.get(name)
        return self.of_module(module, name, module, ()) if module is not None else NOTHING

    def attribute(self, value, name):
        self.names.add(name)
        return union(self._attribute(item, name) for item in value)

    def _attribute(self, item, name):
        if isinstance(item, Known):
            found = getattr(item.value, name, None)
            if isinstance(found, (int, float)):
                return self.constant(found)
            return frozenset([Known(found)])
        if isinstance(item, Super):
            return self.of_super(item.owner, name)
        if not isinstance(item, Node):
            return NOTHING
        value = item.value
        if is_array(value):
            return self.of_array(item, name)
        if isinstance(value, VALUES):
            self.use_node(item, "any")
            return NOTHING
        if isinstance(value, CONTAINERS) and hasattr(type(value), name):
            fields = getattr(value, "_fields", ())
            if name in fields:
                index = fields.index(name)
                text = f"{item.text}.{name}"
                return frozenset([self.child(item, ITEM, index, value[index], text)])
            if not isinstance(find_in_class(type(value), name), (types.FunctionType, property)):
                return frozenset([Method(name, item)])
        return self.data(item, name)

    def of_array(self, node, name):
        if name in TYPE_ATTRIBUTES:
            self.use_node(node, "type")
            return NOTHING
        if isinstance(node.value, numpy.ndarray):
            self.use_node(node, "numpy")
        else:
            self.use_node(node, "direct")
        return NOTHING

    def data(self, node, name):
        """An attribute where it lies, without running properties: those are followed."""
        value, text = node.value, f"{node.text}.{name}"
        if isinstance(value, types.ModuleType):
            if name not in value.__dict__:
                return NOTHING
            return self.of_module(
                value.__dict__[name], text, node.root, (*node.steps, (ATTRIBUTE, name))
            )
        if isinstance(value, type):
            return self.of_class(node, value, name)
        found = find_in_class(type(value), name)
        own = getattr(value, "__dict__", {})
        if isinstance(found, property):
            return self.of_property(type(value), name, found, node)
        if name in own:
            return frozenset([self.child(node, ATTRIBUTE, name, own[name], text)])
        if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            try:
                return frozenset([self.child(node, ATTRIBUTE, name, getattr(value, name), text)])
            except Exception:
                self.guard(Node(None, node.root, (*node.steps, (ATTRIBUTE, name)), text), ABSENT, 0)
                return NOTHING
        if found is MISSING:
            return self.missing(node, name, text)
        self.guard(node, TYPE, type(value))
        return self.of_method(type(value), name, found, node)

    def missing(self, node, name, text):
        self.guard(Node(None, node.root, (*node.steps, (ATTRIBUTE, name)), text), ABSENT, 0)
        hook = find_in_class(type(node.value), "__getattr__")
        if isinstance(hook, types.FunctionType) and self.is_user(hook):
            function = self.root(
                hook, "__getattr__", type(node.value), ((ATTRIBUTE, "__getattr__"),)
            )
            return self.call_function(function, [frozenset([node]), self.constant(name)])
        return NOTHING

    def of_property(self, kind, name, found, node):
        self.guard(node, TYPE, kind)
        if isinstance(found.fget, types.FunctionType) and self.is_user(found.fget):
            return self.call_function(self.root(found.fget, name), [frozenset([node])])
        return NOTHING

    def of_method(self, kind, name, found, node):
        """What a class says of an attribute of its object."""
        place = ((ATTRIBUTE, name),)
        if isinstance(found, functools.cached_property):
            return self.call_function(self.root(found.func, name), [frozenset([node])])
        if isinstance(found, staticmethod):
            return frozenset([self.root(found.__func__, name)])
        if isinstance(found, classmethod):
            owner = self.root(kind, kind.__name__)
            return frozenset([Bound(self.root(found.__func__, name), owner)])
        if isinstance(found, types.FunctionType):
            return frozenset([Bound(self.root(found, name, kind, place), node)])
        if is_wrapper(found):
            wrapped = unwrapped(found)
            if isinstance(wrapped, types.FunctionType):
                return frozenset([Bound(self.root(wrapped, name), node)])
        if hasattr(type(found), "__get__"):
            return NOTHING
        return frozenset([self.root(found, f"{node.text}.{name}", kind, place)])

    def of_class(self, node, cls, name):
        found = find_in_class(cls, name)
        if found is MISSING:
            return NOTHING
        if isinstance(found, staticmethod):
            return frozenset([self.root(found.__func__, name)])
        if isinstance(found, classmethod):
            return frozenset([Bound(self.root(found.__func__, name), node)])
        if hasattr(type(found), "__get__") and not isinstance(found, types.FunctionType):
            return NOTHING
        return frozenset([self.child(node, ATTRIBUTE, name, found, f"{node.text}.{name}")])

    def of_super(self, owner, name):
        kind = owner.value if isinstance(owner.value, type) else type(owner.value)
        found = NOTHING
        for cls in kind.__mro__:
            method = cls.__dict__.get(name)
            if isinstance(method, types.FunctionType) and self.is_user(cls):
                function = self.root(method, name, cls, ((ATTRIBUTE, name),))
                found |= frozenset([Bound(function, owner)])
        return found

    def item(self, value, key):
        """value[key]."""
        if not value:
            self.use(key, "index")
        return union(self._item(item, key) for item in value)

    def _item(self, item, key):
        keys = [k.value for k in key if isinstance(k, Const)]
        keys += [k.value for k in key if isinstance(k, Node) and isinstance(k.value, VALUES)]
        if isinstance(item, Group):
            if len(keys) == 1 and type(keys[0]) is int and -1 < keys[0] < len(item.parts):
                return item.parts[keys[0]]
            return union(item.parts)
        if not isinstance(item, Node):
            self.use(key, "index")
            return NOTHING
        self.use(key, "index")
        value = item.value
        if is_array(value):
            self.use_node(item, "numpy" if isinstance(value, numpy.ndarray) else "direct")
            return NOTHING
        method = find_in_class(type(value), "__getitem__")
        if isinstance(method, types.FunctionType):
            return self.call(self.data(item, "__getitem__"), [key])
        if isinstance(value, CONTAINERS):
            if len(keys) == len(key) == 1:
                return self.item_at(item, keys[0])
            self.use_node(item, "any")
            return frozenset(self.children(item))
        self.use_node(item, "any")
        return NOTHING

    def item_at(self, node, key):
        value = node.value
        if isinstance(key, slice):
            self.use_node(node, "any")
            return frozenset([node])
        if isinstance(value, UNORDERED):
            return frozenset(self.children(node))
        path = (*node.steps, (ITEM, key))
        text = f"{node.text}[{key!r:.40}]"
        try:
            found = value[key] if not isinstance(value, dict) else dict.__getitem__(value, key)
        except (LookupError, TypeError):
            self.guard(Node(None, node.root, path, text), ABSENT, 0)
            return NOTHING
        return frozenset([self.child(node, ITEM, key, found, text)])

    def iterate(self, value):
        """What iteration over a value gives, one after the other."""
        return union(self._iterate(item) for item in value)

    def _iterate(self, item):
        if isinstance(item, Group):
            return union(item.parts)
        if isinstance(item, Method):
            self.use_node(item.node, "any")
            return NOTHING
        if not isinstance(item, Node):
            return NOTHING
        value = item.value
        if is_array(value):
            self.use_node(item, "numpy" if isinstance(value, numpy.ndarray) else "direct")
            return NOTHING
        for name in ("__iter__", "__getitem__"):
            if isinstance(find_in_class(type(value), name), types.FunctionType):
                return self.iterate(self.call(self.data(item, name), [NOTHING]))
        if isinstance(value, dict):
            self.guard(item, KEYS, tuple(value))
            return NOTHING
        if isinstance(value, CONTAINERS):
            return frozenset(self.children(item))
        self.use_node(item, "any")
        return NOTHING

    def unpack(self, value, count):
        """Each of count parts."""
        parts = [NOTHING] * count
        for item in value:
            exact = None
            if isinstance(item, Group) and len(item.parts) == count:
                exact = item.parts
            elif isinstance(item, Node) and isinstance(item.value, SEQUENCES):
                children = self.children(item)
                if len(children) == count:
                    exact = [frozenset([child]) for child in children]
                elif not children:
                    continue
            if exact is None:
                exact = [self._iterate(item)] * count
            parts = [part | more for part, more in zip(parts, exact)]
        return parts

    def operate(self, left, right):
        """An operator between two values: NumPy's own where neither is traced."""
        for value, other in ((left, right), (right, left)):
            self.use(value, "numpy" if other and not self.holds_plait(other) else "direct")
        return NOTHING

    def holds_plait(self, value):
        return any(
            isinstance(item, Node) and isinstance(item.value, _plait.Array) for item in value
        )

    # --- Calls ----------------------------------------------------------------------------------

    def call(self, callee, args, names=()):
        """callee(*args), the last of which are named."""
        if not callee:
            for arg in args:
                self.use(arg)
            return NOTHING
        return union(self._call(item, args, names) for item in callee)

    def _call(self, item, args, names):
        if isinstance(item, Known):
            return BUILTIN_CALLS.get(id(item.value), Reader.call_known)(self, item, args)
        if isinstance(item, Closure):
            return item.frame.call_nested(item.code, args, names)
        if isinstance(item, Bound):
            return self.call_function(item.function, [frozenset([item.owner]), *args], names)
        if isinstance(item, Method):
            return self.call_method(item, args)
        if isinstance(item, Node):
            return self.call_node(item, args, names)
        return self.call((), args)

    def call_node(self, node, args, names):
        value = node.value
        if isinstance(value, types.FunctionType) and not is_wrapper(value):
            return self.call_function(node, args, names)
        if isinstance(value, types.MethodType) and isinstance(value.__func__, types.FunctionType):
            name = (value.__func__.__code__.co_varnames or ("self",))[0]
            owner = self.child(node, ATTRIBUTE, "__self__", value.__self__, name)
            function = self.child(node, ATTRIBUTE, "__func__", value.__func__, node.text)
            return self.call_function(function, [frozenset([owner]), *args], names)
        if is_wrapper(value):
            self.use_node(node, "any")
            self.call(self.data(node, "__wrapped__"), args, names)
        elif isinstance(value, type):
            return self.construct(node, args, names)
        elif isinstance(
            find_in_class(type(value), "__call__"), types.FunctionType
        ) and self.is_user(type(value)):
            return self.call(self.data(node, "__call__"), args, names)
        else:
            self.use_node(node, "any")
        for arg in args:
            self.use(arg)
        return NOTHING

    def construct(self, node, args, names):
        self.guard(node, SAME_OBJECT, node.value)
        method = find_in_class(node.value, "__init__")
        if isinstance(method, types.FunctionType) and self.is_user(node.value):
            function = self.root(method, "__init__", node.value, ((ATTRIBUTE, "__init__"),))
            self.call_function(function, [NOTHING, *args], names)
        for arg in args:
            self.use(arg)
        # What its methods read of the module is read.
        for name, found in list(vars(node.value).items()) if self.is_user(node.value) else ():
            if isinstance(found, types.FunctionType) and name != "__init__":
                self.postponed.append(self.root(found, name, node.value, ((ATTRIBUTE, name),)))
        return NOTHING

    def call_method(self, item, args):
        """A method of a container."""
        node, value = item.node, item.node.value
        if item.name in MUTATORS:
            return NOTHING
        if item.name in ("get", "setdefault", "pop", "__getitem__") and isinstance(value, dict):
            for arg in args[1:]:
                self.use(arg)
            return self._item(node, args[0]) | union(args[1:]) if args else NOTHING
        for arg in args:
            self.use(arg)
        if item.name in ("values", "items") and isinstance(value, dict):
            children = [frozenset([child]) for child in self.children(node)]
            if item.name == "items":
                children = [self.group([NOTHING, child]) for child in children]
            return self.group([union(children)])
        if item.name == "keys":
            self.guard(node, KEYS, tuple(value))
            return NOTHING
        self.use_node(node, "any")
        return frozenset([node]) if item.name == "copy" else NOTHING

    def call_known(self, item, args):
        """A function of plait, NumPy or the language."""
        module = module_of(item.value)
        how = "direct" if module == "plait" or isinstance(item.value, _plait.JitFunction) else "any"
        if module == "numpy" or isinstance(item.value, numpy.ufunc):
            how = "numpy"
        self.use(frozenset([item]))
        for arg in args:
            self.use(arg, how)
        return NOTHING

    def call_function(self, node, args, names=()):
        """The user's function with these arguments, or with unknown ones; what it returns."""
        function = value = node.value
        while is_wrapper(function):
            function = function.__wrapped__
            node = self.child(node, ATTRIBUTE, "__wrapped__", function, node.text)
        if function is not value and not isinstance(function, types.FunctionType):
            return NOTHING
        if not isinstance(function, types.FunctionType):
            return self.call(frozenset([node]), args or [], names)
        if not self.is_user(function):
            self.guard(node, SAME_OBJECT, function)
            is_ours = module_of(function) == "plait"
            for arg in args or ():
                self.use(arg, "direct" if is_ours else "any")
                if not is_ours:  # a library reads what it likes
                    self.alls |= {id(item.value) for item in arg if isinstance(item, Node)}
            return NOTHING
        # What plait.script rewrites spells the names of the original with other instructions.
        self.guard(node, CODE, function)
        if hasattr(function, "source") and isinstance(
            getattr(function, "__wrapped__", None), types.FunctionType
        ):
            node = self.child(node, ATTRIBUTE, "__wrapped__", function.__wrapped__, node.text)
            function = node.value
        key = id(function), None if args is None else (*args, names)
        if key in self.frames:
            return self.frames[key] or NOTHING
        if args is not None and (self.depth > DEEPEST or len(self.frames) > MOST_FRAMES):
            # From here on each function is followed once, whatever it is called with.
            for arg in args:
                self.use(arg)
            self.postponed.append(node)
            return NOTHING
        self.frames[key] = None
        self.depth += 1
        try:
            result = Frame(self, function.__code__, node, None).run(args, names)
        finally:
            self.depth -= 1
        self.frames[key] = result
        return result


def is_array(value):
    return isinstance(value, (_plait.Array, numpy.ndarray))


def is_wrapper(value):
    """Whether a transform of plait made it of the function that it wraps."""
    return isinstance(value, _plait.JitFunction) or (
        isinstance(value, types.FunctionType) and hasattr(value, "__plait_transform__")
    )


def unwrapped(value):
    while is_wrapper(value):
        value = value.__wrapped__
    return value


def has_attributes(value):
    if hasattr(value, "__dict__"):
        return True
    return any("__slots__" in cls.__dict__ and cls is not object for cls in type(value).__mro__)


def find_in_class(kind, name):
    for cls in kind.__mro__:
        if name in cls.__dict__:
            return cls.__dict__[name]
    return MISSING


def callable_of(kind, name):
    return isinstance(find_in_class(kind, name), types.FunctionType)


def module_of(value):
    module = getattr(value, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


@functools.lru_cache(maxsize=4096)
def is_installed(module):
    """Whether a top-level module belongs to an installed library."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return "/site-packages/" in file or "/dist-packages/" in file


# --- Functions of the language that say what they do to their arguments --------------------------


def _first(args):
    return args[0] if args else NOTHING


def _len(reader, _, args):
    for item in _first(args):
        if isinstance(item, Node):
            if is_array(item.value):
                reader.use_node(item, "type")
            elif isinstance(find_in_class(type(item.value), "__len__"), types.FunctionType):
                reader.use(reader.call(reader.data(item, "__len__"), []))
            elif hasattr(item.value, "__len__") and not isinstance(item.value, VALUES):
                reader.guard(item, LENGTH, len(item.value))
            else:
                reader.use_node(item, "any")
    return NOTHING


def _type(reader, _, args):
    for arg in args:
        reader.use_type(arg)
    return NOTHING


def _getattr(reader, _, args):
    for arg in args[2:]:
        reader.use(arg)
    names = [k for k in (args[1] if len(args) > 1 else ()) if isinstance(k, (Const, Node))]
    if len(names) == 1 and isinstance(names[0].value, str):
        if isinstance(names[0], Node):
            reader.use_node(names[0], "any")
        return reader.attribute(args[0], names[0].value) | union(args[2:])
    return _vars(reader, None, args)


def _hasattr(reader, _, args):
    reader.use_type(_getattr(reader, None, args))
    return NOTHING


def _vars(reader, _, args):
    found = []
    reader.reads_all |= not _first(args)
    for item in _first(args):
        if isinstance(item, Node) and hasattr(item.value, "__dict__"):
            reader.use_object(item)
            reader.alls.add(id(item.value))
            place = item.root, (*item.steps, (ATTRIBUTE, "__dict__")), f"vars({item.text})"
            if isinstance(item.value.__dict__, dict):
                found.append(reader.root(item.value.__dict__, place[2], place[0], place[1]))
        else:
            reader.use(frozenset([item]))
    return frozenset(found)


def _same(reader, _, args):
    """list, tuple, reversed, iter: another way to the same items."""
    value = _first(args)
    reader.iterate(value)
    return value


def _zip(reader, _, args):
    return reader.group([reader.group([reader.iterate(arg) for arg in args])])


def _enumerate(reader, _, args):
    return reader.group([reader.group([NOTHING, reader.iterate(_first(args))])])


def _map(reader, _, args):
    if not args:
        return NOTHING
    return reader.group([reader.call(args[0], [reader.iterate(arg) for arg in args[1:]])])


def _super(reader, _, args):
    return reader.super_of(args[1] if len(args) > 1 else NOTHING)


def _sum(reader, _, args):
    for arg in args:
        reader.use(arg)
        reader.iterate(arg)
    return NOTHING


BUILTIN_CALLS = {
    id(function): rule
    for functions, rule in (
        ((len,), _len),
        ((isinstance, issubclass, type, id, callable), _type),
        ((getattr, operator.attrgetter), _getattr),
        ((hasattr,), _hasattr),
        ((vars, dir), _vars),
        ((list, tuple, reversed, iter, sorted, set, frozenset), _same),
        ((zip,), _zip),
        ((enumerate,), _enumerate),
        ((map, filter), _map),
        ((super,), _super),
        ((sum, min, max, any, all), _sum),
    )
    for function in functions
}
