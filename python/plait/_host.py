"""Functions of the host in programs: host_call, and contexts that allow none.

SPDX-License-Identifier: Apache-2.0
"""

import weakref

from plait import _plait
from plait._functions import check_callable, name_of, thread_local
from plait._plait import flatten, unflatten

__all__ = ["host_call", "no_host_calls"]

# The order of derivatives up to which vjp="plait" works: where rules are traced, each holds that of the next order.
_ORDERS = 3


def host_call(fn, out_types, *args, ordered=False, batched=False, jvp=None, vjp=None, name=None):
    """fn(*args), run by Python where the program runs: an island, which is opaque to plait.

    Arrays in args, which are trees, reach fn as read-only NumPy arrays that it may keep; other leaves are passed as
    they are. out_types is a tree of objects with a shape and a dtype (plait.ShapeDtypeStruct), and fn returns arrays of
    these types in the same tree. fn may call plait, from any thread.

    ordered: fn runs each time, in program order. Otherwise it must have no effect: it may run once for equal arguments,
    and not at all where its result is not needed. Under vmap it runs once for each example; with batched=True it runs
    once for all, on arrays with further leading axes, which its results must have too. Under mask it gets the real
    elements. In compiled programs it runs as a step, which explain lists.

    Derivatives are given by one of: jvp(primals, tangents) -> (outputs, tangents); vjp=(fwd, bwd), both in the form of
    custom_jvp and custom_vjp; or vjp="plait", where fn consists of plait's functions: plait.vjp then runs on the host,
    for reverse mode up to the third derivative. A UserError is raised where fn returns other types (ShapeError,
    DtypeError) or another tree (TreeError), or has no derivative (MissingRuleError); a HostError where it raises, with
    that as its cause.
    """
    check_callable("host_call", fn)
    name = name_of(fn) if name is None else name

    if jvp is not None and vjp is not None:
        _plait.fail(
            "ValueError",
            f"host_call: `{name}` is given jvp and vjp",
            "give one; reverse mode follows from jvp",
        )
    if jvp is not None:
        check_callable("host_call: jvp", jvp)
    orders = _ORDERS if isinstance(vjp, str) and vjp == "plait" else 0
    if vjp is not None and not orders and not _is_pair_of_rules(vjp):
        _plait.fail(
            "ValueError",
            f"host_call: vjp of `{name}` is {vjp!r:.60}",
            'give (fwd, bwd), or "plait" where the function is made of plait\'s functions',
        )
    island = _Island(fn, out_types, ordered, batched, name)
    if orders:
        return island.with_derivatives(orders)(*args)
    if jvp is None and vjp is None:
        return island(*args)
    from plait._custom import custom_jvp, custom_vjp

    if jvp is not None:
        function, rule = custom_jvp(island), jvp
        function.defjvp(jvp)
    else:
        function, rule = custom_vjp(island), vjp[0]
        function.defvjp(*vjp)
    function.inside = _depth_of(rule)
    return function(*args)


def no_host_calls(reason="the context"):
    """A context in which host calls are refused on this thread, traced or run: ValueError names the function.

    reason says in the error where this is.
    """
    return _plait.NoHostCalls(reason)


# How deep a rule is being traced inside itself, counted across nested calls.
_depths: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _depth_of(rule):
    try:
        return _depths.setdefault(rule, thread_local())
    except TypeError:  # no weak references to it
        return thread_local()


class _Island:
    """fn as a function of plait's arrays."""

    def __init__(self, fn, out_types, ordered, batched, name):
        self.fn, self.ordered, self.batched, self.__name__ = fn, ordered, batched, name
        self.types, self.structure = flatten(out_types)

    def __call__(self, *args):
        leaves, structure = flatten(args)
        places = [index for index, leaf in enumerate(leaves) if _plait.is_array_like(leaf)]
        arrays = [_plait.to_array(leaves[index], "host_call") for index in places]
        for index in places:
            leaves[index] = None  # a program must not keep alive the trace that made it

        def function(arrays):
            values = list(leaves)
            for index, array in zip(places, arrays):
                values[index] = array
            return self.fn(*unflatten(structure, values))

        outputs = _plait.flat_host_call(
            function, self._finish, self.types, arrays, self.__name__, self.ordered, self.batched
        )
        return unflatten(self.structure, outputs)

    def _finish(self, result):
        """The leaves of the result of fn."""
        results, found = flatten(result)
        if found != self.structure:
            _plait.fail(
                "TreeError",
                f"host_call: `{self.__name__}` returned {found}, and out_types is {self.structure}",
                "return arrays in the tree of out_types",
            )
        return results

    def with_derivatives(self, orders):
        """The island whose reverse mode is plait.vjp of fn, itself an island."""
        if orders == 0:
            return self
        from plait._custom import custom_vjp

        def bwd(args, cotangents):
            leaves, structure = flatten(args)
            wrt = [leaf for leaf in leaves if _is_differentiable(leaf)]
            pull = _Island(self._pull, wrt, False, self.batched, f"vjp({self.__name__})")
            given = iter(pull.with_derivatives(orders - 1)(args, cotangents))
            return unflatten(
                structure, [next(given) if _is_differentiable(leaf) else None for leaf in leaves]
            )

        function = custom_vjp(self)
        again = self.with_derivatives(orders - 1)
        function.defvjp(lambda *args: (again(*args), args), bwd)
        return function

    def _pull(self, args, cotangents):
        """Cotangents of the differentiable leaves of args."""
        from plait._derivatives import vjp

        leaves, structure = flatten(args)
        wrt = [index for index, leaf in enumerate(leaves) if _is_differentiable(leaf)]

        def of_wrt(*values):
            arguments = list(leaves)
            for index, value in zip(wrt, values):
                arguments[index] = value
            return self.fn(*unflatten(structure, arguments))

        _, pull = vjp(of_wrt, *[leaves[index] for index in wrt])
        return list(pull(cotangents))


def _is_pair_of_rules(vjp):
    return isinstance(vjp, (tuple, list)) and len(vjp) == 2 and all(callable(rule) for rule in vjp)


def _is_differentiable(leaf):
    return _plait.is_array_like(leaf) and _plait.is_differentiable(_plait.to_array(leaf))
