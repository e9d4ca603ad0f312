"""What the code of a jitted function reads from outside, so that a call can tell whether it changed.

The byte code is interpreted on places instead of values (_bytecode.py): a name that leads to a captured object stands
for its place, any other value for a mark. The use of a place determines what must not change. An attribute or a
constant key leads to another place; iteration fixes the length; a call is followed into the user's function. A place
that escapes to where code is not analysed (a library, a container) is fixed as a whole: every number below it, every
length, every function, and those attributes of objects that any analysed code names.

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
from plait._bytecode import MARKS, PLAIN, TRACED, UNKNOWN, Frame, Mark

# Steps of a path, in C++'s encoding.
CELL, ITEM, ATTRIBUTE, ELEMENT = range(4)
# The properties that a guard compares.
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
# Builtins whose results do not depend on the trace.
PLAIN_CALLS = (int, float, complex, bool, range, hash, ord, chr)
MUTATORS = {"append", "extend", "insert", "add", "update", "clear", "appendleft", "extendleft"}
# Dunder methods that reading an object does not run.
UNREAD = {
    "__init__", "__new__", "__repr__", "__str__", "__del__", "__setattr__", "__delattr__",
    "__post_init__", "__init_subclass__", "__setitem__", "__delitem__", "__reduce__", "__setstate__",
    "__getstate__", "__reduce_ex__", "__copy__", "__deepcopy__", "__format__", "__doc__", "__module__",
    "__annotations__", "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__slots__",
    "__dict__", "__weakref__", "__hash__",
}  # fmt: skip


class Node:
    """A place: the object there, its path from a root, and its holder."""

    __slots__ = ("value", "root", "steps", "text", "holder")

    def __init__(self, value, root, steps, text, holder=None):
        self.value, self.root, self.steps, self.text = value, root, steps, text
        self.holder = holder  # the id of the holding object, and the steps from there

    @property
    def path(self):
        return self.root, self.steps, self.text


class Const(collections.namedtuple("Const", "kind value")):
    """A constant of the code, or a number of a module that never changes."""

    __slots__ = ()


class Known:
    """An object of plait, NumPy or the language, which is not guarded."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(other) is Known and self.value is other.value

    def __hash__(self):
        return hash(id(self.value))


Method = collections.namedtuple("Method", "name node")  # of a container or array: by name
Bound = collections.namedtuple(
    "Bound", "function owner"
)  # a function node, with an item as its owner
Super = collections.namedtuple("Super", "cls owner")
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
        self.arrays = {}  # (node, ways in which it is used), of each place of each array
        self.plain = set()  # parameters of the jitted function that are not traced
        self.gives_traced = False  # the next function that is followed gets arrays of the trace
        self.frames, self.depth, self.postponed = {}, 0, []
        self.num_nested = 0  # interpretations of functions that followed ones make

    # --- Places ---------------------------------------------------------------------------------

    def root(self, value, text, root=None, steps=()):
        root = value if root is None else root
        return self._node(value, root, steps, text, (id(root), steps))

    def child(self, node, step, key, value, text):
        return self.below(node, ((step, key),), value, text)

    def below(self, node, steps, value, text):
        """A place to which several steps lead."""
        return self._node(value, node.root, (*node.steps, *steps), text, (id(node.value), steps))

    def _node(self, value, root, steps, text, holder):
        place = (id(root), steps)
        if isinstance(value, VALUES) or is_array(value):  # each place is compared separately
            found = self.leaves.get(place)
            if found is None:
                found = self.leaves[place] = Node(value, root, steps, text, holder)
            return found
        found = self.nodes.get(id(value))
        if found is None:
            if len(self.nodes) > MOST_NODES:
                _plait.fail(
                    "TracerError",
                    f"jit: the function reads more than {MOST_NODES} objects that it captured",
                    "pass what it works on as arguments",
                )
            found = self.nodes[id(value)] = Node(value, root, steps, text, holder)
        elif (id(found.root), found.steps) != place:
            self.guard(Node(value, root, steps, text), ALIAS, found.path)
        return found

    def is_user(self, value):
        """Whether a user's code, not a library's, defines it: only user code is followed."""
        module = module_of(value)
        if module in ("plait", "numpy"):
            return False
        if module in ("__main__", self.home):
            return True
        return module not in sys.stdlib_module_names and not is_installed(module)

    def guard(self, node, kind, expected):
        if not node.steps and kind in (SAME_OBJECT, CODE, TYPE):
            return  # the jitted function itself
        place = (kind, id(node.root), node.steps)
        if place not in self.guarded:
            self.guarded.add(place)
            self.guards.append((node.path, kind, expected))

    def children(self, node):
        """The items of a container, and their number; a guard fixes either."""
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
        """A variable of a function that encloses a captured one."""
        function = node.value
        if name not in function.__code__.co_freevars:
            return NOTHING
        index = function.__code__.co_freevars.index(name)
        try:
            content = function.__closure__[index].cell_contents
        except ValueError:
            return NOTHING
        steps = (ATTRIBUTE, "__closure__"), (ITEM, index), (CELL, None)
        return self.of_module(content, name, node, steps)

    def bind_defaults(self, frame, given=()):
        """Parameters that a call of a captured function leaves at their defaults."""
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
                steps = (ATTRIBUTE, attribute), (ITEM, key)
                frame.store(name, self.of_module(value, name, node, steps))

    def constant(self, value):
        return frozenset([Const(type(value), value)])

    def group(self, values):
        values = tuple(values)
        if any(value - MARKS for value in values):
            return frozenset([Group(values)])
        return union(values) or UNKNOWN

    def kind(self, values):
        """The possible results of a computation with values."""
        kinds = {self._kind(item) for value in values for item in value}
        if TRACED in kinds:
            return TRACED
        return PLAIN if kinds == {PLAIN} else UNKNOWN

    def _kind(self, item):
        if isinstance(item, Mark):
            return frozenset([item])
        if isinstance(item, Group):
            return self.kind(item.parts)
        if isinstance(item, (Const, Known)):
            return PLAIN
        if not isinstance(item, Node):
            return UNKNOWN
        if isinstance(item.value, _plait.Array):
            return TRACED
        return PLAIN if isinstance(item.value, (*VALUES, numpy.ndarray)) else UNKNOWN

    def scope(self, function):
        """The result of globals()."""
        return frozenset([self.root(function.__globals__, "globals()")])

    def closure(self, code, frame):
        return frozenset([Closure(code, frame)])

    def super_of(self, cls, owner):
        known = [item for item in cls if isinstance(item, Node)]
        cls = known[0].value if len(known) == 1 else None
        return frozenset(Super(cls, item) for item in owner if isinstance(item, Node))

    # --- Uses -----------------------------------------------------------------------------------

    def use(self, value, how="any"):
        """The value escapes: everything below it must not change."""
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
            self.arrays.setdefault(node, (node, set()))[1].add(how)
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
        """Only its existence and type are used."""
        for item in value:
            if isinstance(item, Node):
                if isinstance(item.value, VALUES):
                    self.guard(item, VALUE, item.value)
                elif is_array(item.value):
                    self.use_node(item, "type")
                else:
                    self.guard(item, TYPE, type(item.value))

    def use_all(self, value):
        """It is passed to a library, which may read anything."""
        self.use(value)
        self.alls |= {id(item.value) for item in value if isinstance(item, Node)}

    def give_to_plait(self, function, args):
        """Arguments of a function of plait; functions among them get arrays, except those over trees."""
        is_tree = (getattr(function, "__module__", None) or "").startswith("plait.tree")
        for arg in args:
            self.gives_traced = not is_tree
            self.use(arg, "direct")
        self.gives_traced = False

    def use_text(self, value):
        """The text of a value is read."""
        self.use(value)
        for item in value:
            if isinstance(item, Node):
                for name in ("__str__", "__repr__", "__format__"):
                    if callable_of(type(item.value), name):
                        self.call(self.data(item, name), [UNKNOWN] * (name == "__format__"))

    def start(self, function):
        """Follows a function that is called with unknown arguments."""
        self.home = module_of(function)
        self.gives_traced = True
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
        """Follows deferred functions, and expands objects until no code names another attribute."""
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
        """A global of a function, or the builtin of that name."""
        if name in function.__globals__:
            scope = function.__globals__
            return self.of_module(scope[name], name, self.holding(scope), ((ITEM, name),))
        builtins = function.__builtins__
        return frozenset([Known(builtins[name])]) if name in builtins else UNKNOWN

    def holding(self, scope):
        """A dict of names, such as the globals of a function: a root."""
        return Node(scope, scope, (), "")

    def of_module(self, value, text, node, steps):
        if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in OURS:
            return frozenset([Known(value)])
        return frozenset([self.below(node, steps, value, text)])

    def module(self, name):
        module = sys.modules.get(name)
        if module is None:
            return UNKNOWN
        return self.of_module(module, name, self.holding(sys.modules), ((ITEM, name),))

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
            return self.of_super(item.cls, item.owner, name)
        if isinstance(item, Const) or (item in TRACED and name in TYPE_ATTRIBUTES):
            return PLAIN
        if isinstance(item, Mark):
            return frozenset([item])
        if not isinstance(item, Node):
            return UNKNOWN
        value = item.value
        if is_array(value):
            return self.of_array(item, name)
        if isinstance(value, VALUES):
            self.use_node(item, "any")
            return self.data(item, name) if self.is_user(type(value)) else PLAIN
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
            return PLAIN
        if isinstance(node.value, numpy.ndarray):
            self.use_node(node, "numpy")
            return PLAIN
        self.use_node(node, "direct")
        return TRACED

    def data(self, node, name):
        """An attribute where it is stored, without running properties: those are followed."""
        value, text = node.value, f"{node.text}.{name}"
        if isinstance(value, types.ModuleType):
            if name in value.__dict__:
                return self.of_module(value.__dict__[name], text, node, ((ATTRIBUTE, name),))
            return self.missing(node, name, text)
        if isinstance(value, type):
            return self.of_class(node, value, name)
        kind = type(value)
        hook = find_in_class(kind, "__getattribute__")
        if isinstance(hook, types.FunctionType) and self.is_user(hook):
            function = self.root(hook, "__getattribute__", kind, ((ATTRIBUTE, "__getattribute__"),))
            self.use(self.call_function(function, [frozenset([node]), self.constant(name)]))
        found = find_in_class(kind, name)
        own = getattr(value, "__dict__", {})
        if name in own and not is_data_descriptor(found):
            return frozenset([self.child(node, ATTRIBUTE, name, own[name], text)])
        if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            try:
                return frozenset([self.child(node, ATTRIBUTE, name, getattr(value, name), text)])
            except Exception:
                self.absent(node, name, text)
                return UNKNOWN
        if found is MISSING:
            return self.missing(node, name, text)
        self.guard(node, TYPE, kind)
        if not hasattr(type(found), "__get__"):  # the object may have its own
            return frozenset([self.child(node, ATTRIBUTE, name, found, text)])
        if isinstance(own, dict) and hasattr(value, "__dict__") and not is_data_descriptor(found):
            self.absent(node, name, text)
        return self.bound(kind, name, found, node)

    def absent(self, node, name, text):
        place = Node(None, node.root, (*node.steps, (ATTRIBUTE, name)), text)
        self.guard(place, ABSENT, 0)

    def missing(self, node, name, text):
        self.absent(node, name, text)
        hook = find_in_class(type(node.value), "__getattr__")
        if isinstance(hook, types.FunctionType) and self.is_user(hook):
            function = self.root(
                hook, "__getattr__", type(node.value), ((ATTRIBUTE, "__getattr__"),)
            )
            return self.call_function(function, [frozenset([node]), self.constant(name)])
        return UNKNOWN

    def bound(self, kind, name, found, node):
        """A class's value for an attribute of node: a method, or the result of a descriptor."""
        if isinstance(found, types.FunctionType) and not is_wrapper(found):
            return frozenset([Bound(self.root(found, name, kind, ((ATTRIBUTE, name),)), node)])
        if isinstance(
            found, (*BUILTINS, types.MethodDescriptorType, types.ClassMethodDescriptorType)
        ):
            return UNKNOWN
        place = self.root(found, f"{kind.__name__}.{name}", kind, ((ATTRIBUTE, name),))
        if is_wrapper(found):
            return frozenset([Bound(place, node)])
        if isinstance(found, staticmethod):
            return self.part(place, "__func__", name)
        if isinstance(found, classmethod):
            owner = node if isinstance(node.value, type) else self.root(kind, kind.__name__)
            return self.bound_part(place, "__func__", name, owner)
        if isinstance(found, property):
            return self.call(self.part(place, "fget", name), [frozenset([node])])
        if isinstance(found, functools.cached_property):
            return self.call(self.part(place, "func", name), [frozenset([node])])
        if isinstance(found, functools.partialmethod):
            for attribute in ("func", "args", "keywords"):
                self.use(self.part(place, attribute, name))
            self.use_all(frozenset([node]))
            return UNKNOWN
        get = find_in_class(type(found), "__get__")
        if isinstance(get, types.FunctionType) and self.is_user(type(found)):
            function = self.root(get, "__get__", type(found), ((ATTRIBUTE, "__get__"),))
            owner = frozenset([self.root(kind, kind.__name__)])
            return self.call_function(function, [frozenset([place]), frozenset([node]), owner])
        self.use(frozenset([node]))
        return UNKNOWN

    def part(self, place, attribute, text):
        found = getattr(place.value, attribute)
        return frozenset([self.child(place, ATTRIBUTE, attribute, found, text)])

    def bound_part(self, place, attribute, text, owner):
        (function,) = self.part(place, attribute, text)
        return frozenset([Bound(function, owner)])

    def of_class(self, node, cls, name):
        """An attribute of a class: its own, or that of its metaclass."""
        text = f"{node.text}.{name}"
        found, above = find_in_class(cls, name), find_in_class(type(cls), name)
        if found is MISSING or is_data_descriptor(above):
            if above is MISSING:
                return self.missing(node, name, text)
            if not self.is_user(type(cls)):
                return UNKNOWN
            if hasattr(type(above), "__get__"):
                return self.bound(type(cls), name, above, node)
            return frozenset([self.root(above, text, type(cls), ((ATTRIBUTE, name),))])
        place = self.child(node, ATTRIBUTE, name, found, text)
        if isinstance(found, staticmethod):
            return self.part(place, "__func__", name)
        if isinstance(found, classmethod):
            return self.bound_part(place, "__func__", name, node)
        if isinstance(find_in_class(type(found), "__get__"), types.FunctionType):
            return self.bound(cls, name, found, node)
        if isinstance(found, types.FunctionType) or is_wrapper(found):
            return frozenset([place])
        if hasattr(type(found), "__get__"):
            return UNKNOWN
        return frozenset([place])

    def of_super(self, cls, owner, name):
        kind = owner.value if isinstance(owner.value, type) else type(owner.value)
        order = kind.__mro__
        after = order.index(cls) + 1 if cls in order else 0
        found = NOTHING
        for parent in order[after:]:
            if name not in parent.__dict__ or not self.is_user(parent):
                continue
            own = parent.__dict__[name]
            if hasattr(type(own), "__get__"):
                found |= self.bound(parent, name, own, owner)
            else:
                found |= frozenset([self.root(own, name, parent, ((ATTRIBUTE, name),))])
            if after:
                break
        return found or UNKNOWN

    def item(self, value, key):
        """value[key]."""
        if not value:
            self.use(key, "index")
        return union(self._item(item, key) for item in value)

    def _item(self, item, key):
        keys = [k.value for k in key if isinstance(k, Const)]
        keys += [k.value for k in key if isinstance(k, Node) and isinstance(k.value, VALUES)]
        if isinstance(item, Group):
            exact = len(keys) == len(key) == 1 and type(keys[0]) is int
            if exact and -1 < keys[0] < len(item.parts):
                return item.parts[keys[0]]
            return union(item.parts)
        self.use(key, "index")
        if isinstance(item, Mark):
            return frozenset([item])
        if not isinstance(item, Node):
            return PLAIN if isinstance(item, Const) else UNKNOWN
        value = item.value
        if is_array(value):
            return self.part_of_array(item, key)
        method = find_in_class(type(value), "__getitem__")
        if isinstance(method, types.FunctionType):
            return self.call(self.data(item, "__getitem__"), [key])
        if isinstance(value, CONTAINERS):
            if len(keys) == len(key) == 1:
                return self.item_at(item, keys[0])
            self.use_node(item, "any")
            return frozenset(self.children(item)) or PLAIN
        self.use_node(item, "any")
        return UNKNOWN

    def part_of_array(self, node, key=PLAIN):
        if not isinstance(node.value, numpy.ndarray):
            self.use_node(node, "direct")
            return TRACED
        self.use_node(node, "numpy")
        return self.kind([key])

    def item_at(self, node, key):
        value = node.value
        if isinstance(key, slice):
            self.use_node(node, "any")
            return frozenset([node])
        if isinstance(value, UNORDERED):
            return frozenset(self.children(node)) or PLAIN
        path = (*node.steps, (ITEM, key))
        text = f"{node.text}[{key!r:.40}]"
        try:
            found = value[key] if not isinstance(value, dict) else dict.__getitem__(value, key)
        except (LookupError, TypeError):
            self.guard(Node(None, node.root, path, text), ABSENT, 0)
            return UNKNOWN
        return frozenset([self.child(node, ITEM, key, found, text)])

    def iterate(self, value):
        """The results of iteration over a value, one after the other."""
        return union(self._iterate(item) for item in value)

    def _iterate(self, item):
        if isinstance(item, Group):
            return union(item.parts)
        if isinstance(item, Mark):
            return frozenset([item])
        if isinstance(item, Method):
            self.use_node(item.node, "any")
        if not isinstance(item, Node):
            return PLAIN if isinstance(item, Const) else UNKNOWN
        value = item.value
        if is_array(value):
            return self.part_of_array(item)
        for name in ("__iter__", "__getitem__"):
            if isinstance(find_in_class(type(value), name), types.FunctionType):
                return self.iterate(self.call(self.data(item, name), [UNKNOWN]))
        if isinstance(value, dict):
            self.guard(item, KEYS, tuple(value))
            return UNKNOWN
        if isinstance(value, CONTAINERS):
            return frozenset(self.children(item)) or PLAIN
        self.use_node(item, "any")
        return UNKNOWN

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
                    exact = [PLAIN] * count
            if exact is None:
                exact = [self._iterate(item)] * count
            parts = [part | more for part, more in zip(parts, exact)]
        return parts

    def operate(self, left, right):
        """An operator between two values: NumPy's own where neither is traced."""
        for value, other in ((left, right), (right, left)):
            known = other - UNKNOWN - TRACED
            how = "numpy" if known and not self.holds_plait(known) else "direct"
            self.use(value, "either" if how == "direct" and UNKNOWN <= other else how)
        return self.kind([left, right])

    def holds_plait(self, value):
        return any(
            isinstance(item, Node) and isinstance(item.value, _plait.Array) for item in value
        )

    # --- Calls ----------------------------------------------------------------------------------

    def call(self, callee, args, names=()):
        """callee(*args); the last arguments are named."""
        args = [arg or UNKNOWN for arg in args]
        if not callee:
            for arg in args:
                self.use(arg)
            return UNKNOWN
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
        self.call((), args)
        return frozenset([item]) if isinstance(item, Mark) else UNKNOWN

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
            self.use_all(arg) if isinstance(value, operator.attrgetter) else self.use(arg)
        return UNKNOWN

    def construct(self, node, args, names):
        self.guard(node, SAME_OBJECT, node.value)
        if node.value is operator.attrgetter:
            for item in union(args):
                is_text = isinstance(item, Const) and isinstance(item.value, str)
                self.reads_all |= not is_text
                self.names |= set(item.value.split(".")) if is_text else set()
        method = find_in_class(node.value, "__init__")
        if isinstance(method, types.FunctionType) and self.is_user(node.value):
            function = self.root(method, "__init__", node.value, ((ATTRIBUTE, "__init__"),))
            self.call_function(function, [UNKNOWN, *args], names)
        for arg in args:
            self.use(arg)
        # What its methods read of the module counts as read.
        for name, found in list(vars(node.value).items()) if self.is_user(node.value) else ():
            if isinstance(found, types.FunctionType) and name != "__init__":
                self.postponed.append(self.root(found, name, node.value, ((ATTRIBUTE, name),)))
        return UNKNOWN

    def call_method(self, item, args):
        """A method of a container."""
        node, value = item.node, item.node.value
        if item.name in MUTATORS:
            for arg in args:
                self.use(arg)
            return UNKNOWN
        if item.name in ("get", "setdefault", "pop", "__getitem__") and isinstance(value, dict):
            for arg in args[1:]:
                self.use(arg)
            return self._item(node, args[0]) | union(args[1:]) if args else UNKNOWN
        for arg in args:
            self.use(arg)
        if item.name in ("values", "items") and isinstance(value, dict):
            children = [frozenset([child]) for child in self.children(node)]
            if item.name == "items":
                children = [self.group([UNKNOWN, child]) for child in children]
            return self.group([union(children)])
        if item.name == "keys":
            self.guard(node, KEYS, tuple(value))
            return UNKNOWN
        self.use_node(node, "any")
        return frozenset([node]) if item.name == "copy" else UNKNOWN

    def call_known(self, item, args):
        """A function of plait, NumPy or the language."""
        module = module_of(item.value)
        how = "direct" if module == "plait" or isinstance(item.value, _plait.JitFunction) else "any"
        if module == "numpy" or isinstance(item.value, numpy.ufunc):
            how = "numpy"
        self.use(frozenset([item]))
        if how == "direct":
            self.give_to_plait(item.value, args)
        else:
            for arg in args:
                self.use(arg, how)
        if any(item.value is function for function in PLAIN_CALLS):
            return PLAIN
        if how != "direct":
            return self.kind(args)
        return UNKNOWN if getattr(item.value, "__name__", "") in TYPE_ATTRIBUTES else TRACED

    def call_function(self, node, args, names=()):
        """Follows the user's function with these arguments, or with unknown ones; returns its result."""
        function = value = node.value
        while is_wrapper(function):
            function = function.__wrapped__
            node = self.child(node, ATTRIBUTE, "__wrapped__", function, node.text)
        if function is not value and not isinstance(function, types.FunctionType):
            return self.call(frozenset([node]), args or [], names)
        if not isinstance(function, types.FunctionType):
            return self.call(frozenset([node]), args or [], names)
        if not self.is_user(function):
            self.guard(node, SAME_OBJECT, function)
            if module_of(function) == "plait":
                self.give_to_plait(function, args or ())
                return UNKNOWN
            for arg in args or ():
                self.use_all(arg)
            return UNKNOWN
        # Code rewritten by plait.script uses other instructions for the original's names.
        self.guard(node, CODE, function)
        if hasattr(function, "source") and isinstance(
            getattr(function, "__wrapped__", None), types.FunctionType
        ):
            node = self.child(node, ATTRIBUTE, "__wrapped__", function.__wrapped__, node.text)
            function = node.value
        args = None if args is None else [arg or UNKNOWN for arg in args]
        key = id(function), None if args is None else (*args, names)
        if key in self.frames:
            return self.frames[key] or NOTHING
        if args is not None and (self.depth > DEEPEST or len(self.frames) > MOST_FRAMES):
            # From here on each function is followed once, whatever its arguments.
            for arg in args:
                self.use(arg)
            self.postponed.append(node)
            return UNKNOWN
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
    """Whether it is the result of a transform of plait on the function that it wraps."""
    return isinstance(value, _plait.JitFunction) or (
        isinstance(value, types.FunctionType) and hasattr(value, "__plait_transform__")
    )


def has_attributes(value):
    if hasattr(value, "__dict__"):
        return True
    return any("__slots__" in cls.__dict__ and cls is not object for cls in type(value).__mro__)


def find_in_class(kind, name):
    for cls in kind.__mro__:
        if name in cls.__dict__:
            return cls.__dict__[name]
    return MISSING


def is_data_descriptor(found):
    return hasattr(type(found), "__set__") or hasattr(type(found), "__delete__")


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


# --- Builtins with known effects on their arguments -----------------------------------------------


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
        elif not isinstance(item, Mark):
            reader.use(frozenset([item]), "type")
    return PLAIN


def _types(reader, _, args):
    for arg in args:
        reader.use_type(arg)
    return PLAIN


def _type(reader, _, args):
    _types(reader, None, args)
    objects = [
        item
        for item in _first(args)
        if isinstance(item, Node)
        and not isinstance(item.value, VALUES)
        and not is_array(item.value)
    ]
    found = [reader.child(o, ATTRIBUTE, "__class__", type(o.value), o.text) for o in objects]
    return frozenset(found) or UNKNOWN


def _getattr(reader, _, args):
    for arg in args[2:]:
        reader.use(arg)
    names = [k for k in (args[1] if len(args) > 1 else ()) if isinstance(k, (Const, Node))]
    if len(names) == 1 == len(args[1]) and isinstance(names[0].value, str):
        if isinstance(names[0], Node):
            reader.use_node(names[0], "any")
        return reader.attribute(args[0], names[0].value) | union(args[2:])
    return _vars(reader, None, args)


def _hasattr(reader, _, args):
    reader.use_type(_getattr(reader, None, args))
    return PLAIN


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
    return frozenset(found) or UNKNOWN


def _same(reader, _, args):
    """list, tuple, iter: the same items, in their order."""
    value = _first(args)
    reader.iterate(value)
    return value or UNKNOWN


def _reordered(reader, _, args):
    for arg in args[1:]:
        reader.use(arg)
    return reader.group([reader.iterate(_first(args))])


def _sorted(reader, _, args):
    for arg in args:
        reader.use(arg)
    return _reordered(reader, None, args)


def _filter(reader, _, args):
    items = reader.iterate(args[1]) if len(args) > 1 else UNKNOWN
    reader.use(reader.call(_first(args), [items]))
    reader.use(items, "type")
    return reader.group([items])


def _next(reader, _, args):
    for arg in args[1:]:
        reader.use(arg)
    return reader.iterate(_first(args)) | union(args[1:])


def _text(reader, _, args):
    for arg in args:
        reader.use_text(arg)
    return PLAIN


def _zip(reader, _, args):
    return reader.group([reader.group([reader.iterate(arg) for arg in args])])


def _enumerate(reader, _, args):
    return reader.group([reader.group([PLAIN, reader.iterate(_first(args))])])


def _map(reader, _, args):
    if not args:
        return UNKNOWN
    return reader.group([reader.call(args[0], [reader.iterate(arg) for arg in args[1:]])])


def _super(reader, _, args):
    return reader.super_of(*args[:2]) if len(args) > 1 else UNKNOWN


def _sum(reader, _, args):
    items = [reader.iterate(arg) for arg in args]
    for arg in args:
        reader.use(arg)
    return reader.kind(items)


def _most(reader, _, args):
    """min, max: one of the items, or of the arguments."""
    return _sum(reader, None, args) | union(reader.iterate(arg) | arg for arg in args)


BUILTIN_CALLS = {
    id(function): rule
    for functions, rule in (
        ((len,), _len),
        ((isinstance, issubclass, id, callable), _types),
        ((type,), _type),
        ((getattr,), _getattr),
        ((hasattr,), _hasattr),
        ((vars, dir), _vars),
        ((list, tuple, iter), _same),
        ((reversed, set, frozenset), _reordered),
        ((sorted,), _sorted),
        ((next,), _next),
        ((str, repr, format, ascii), _text),
        ((zip,), _zip),
        ((enumerate,), _enumerate),
        ((map,), _map),
        ((filter,), _filter),
        ((super,), _super),
        ((sum, any, all), _sum),
        ((min, max), _most),
    )
    for function in functions
}
