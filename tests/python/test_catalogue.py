"""One catalogue, two languages: the C++ headers, the catalogue and the Python modules hold the same functions.

The headers are read as text: each public function of a namespace is in the catalogue, with the same parameters in the
same order, and each function of the Python modules comes from the catalogue. What differs is listed with its reason.

SPDX-License-Identifier: Apache-2.0
"""

import importlib
import inspect
import pathlib
import re

import pytest

from plait import _plait

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = (
    "numpy numpy_shape numpy_linalg lax ops ops_indexing ops_order ops_linalg nn random optim scipy "
    "scipy_linalg".split()
)
MODULES = (
    "numpy numpy.linalg lax lax.linalg nn nn.initializers random optim scipy.linalg scipy.special "
    "scipy.stats.norm".split()
)

# Functions of C++ alone.
CPP_ONLY = {
    "lax.zeros_like": "of an Aval, which Python spells numpy.zeros",
    "lax.dim_as_value": "Python's sizes become values by themselves",
    "lax.random_bits": "random.bits is for users; this is the primitive",
    "lax.random_fold": "random.fold_in is for users; this is the primitive",
    "lax.random_split": "random.split is for users; this is the primitive",
    "nn.logsumexp_with_sign": "the pair that return_sign=True asks for",
    "lax.conv_dimension_numbers": "in Python of JAX's arguments, and with JAX's type",
}
# Functions whose C++ overloads take apart what Python's arguments may be.
OVERLOADED = {
    "numpy.atleast_1d": "one array, or several", "numpy.atleast_2d": "one array, or several",
    "numpy.atleast_3d": "one array, or several", "lax.sort": "an array, or a sequence of them",
}  # fmt: skip
# Parameters that differ: the type of the result depends on their value, which C++ spells as another function or overload.
ONLY_PYTHON = {
    "numpy.average": {"returned"},
    "numpy.linspace": {"retstep"},
    "numpy.linalg.pinv": {"hermitian", "rcond"},  # says nothing; another name of rtol
    "numpy.linalg.lstsq": {"numpy_resid"},
    "numpy.linalg.svd": {"compute_uv"},
    "lax.linalg.svd": {"compute_uv"},
    "scipy.linalg.lu": {"permute_l"},
    "numpy.unique": {"return_index", "return_inverse", "return_counts", "axis"},
    "numpy.where": {"size", "fill_value"},
    "nn.logsumexp": {"return_sign"},
    "lax.reshape": {"dimensions"},
    "optim.adam": {"params"},  # for adam and adamw to be called alike
    "optim.momentum": {"params"},
}
ONLY_CPP = {
    "lax.sort": {"descending"},  # JAX's sort has none; numpy.sort does
    "lax.dynamic_slice": {"negative"},
    "lax.dynamic_update_slice": {"negative"},
    "lax.dynamic_slice_in_dim": {"negative"},
    "lax.dynamic_index_in_dim": {"negative"},
    "lax.dynamic_update_slice_in_dim": {"negative"},
    "lax.dynamic_update_index_in_dim": {"negative"},
    "lax.convert_element_type": {"weak"},
    "numpy.unique_all": {"equal_nan", "size", "fill_value"},
}
# Parameters of another name, for C++ has another type there.
RENAMED = {
    "lax.dot_general": {"dimensions": "dimension_numbers"},  # a DotDimensions
    "lax.full": {"value": "fill_value"},  # a double
}
# Structs of options are the parameters that they hold.
STRUCTS = {
    "SgdOptions": "learning_rate", "MomentumOptions": "learning_rate decay nesterov",
    "AdamOptions": "learning_rate b1 b2 eps", "AdamWOptions": "learning_rate b1 b2 eps weight_decay",
    "LossScaleOptions": "growth_interval factor",
    "FanAxes": "in_axis out_axis batch_axis", "ScatterOptions": "indices_are_sorted unique_indices mode",
}  # fmt: skip

# Python functions outside the catalogue.
PYTHON_ONLY = {
    "numpy.asarray": "takes any object of Python", "numpy.array": "takes any object of Python",
    "numpy.from_dlpack": "takes any object of Python",
    "numpy.promote_types": "of dtypes, which are NumPy's in Python", "numpy.result_type": "of dtypes, as above",
    "numpy.isdtype": "of dtypes, as above", "numpy.can_cast": "of dtypes, as above",
    "numpy.finfo": "of dtypes, as above", "numpy.iinfo": "of dtypes, as above",
    "numpy.issubdtype": "of dtypes, as above", "numpy.dtype": "NumPy's class",
    "numpy.isscalar": "of any object of Python", "numpy.ndarray": "the class Array",
    "numpy.fromfunction": "takes a Python function", "numpy.vectorize": "takes a Python function",
    "random.Generator": "a class of Python: state is the caller's in C++",
    "lax.conv_dimension_numbers": "gives a tuple of JAX's type",
    "lax.custom_linear_solve": "takes Python functions", "lax.linear_solve": "takes Python functions",
    "lax.custom_root": "takes Python functions",
    **{f"lax.{name}": "takes Python functions" for name in
       "associative_scan cond fori_loop map scan switch while_loop".split()},
    "nn.initializers": "factories, which return functions, of the catalogue's functions",
}  # fmt: skip


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def split_at_commas(text):
    parts, depth, part = [], 0, ""
    for character in text:
        depth += character in "(<[{"
        depth -= character in ")>]}"
        if character == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += character
    return [item.strip() for item in [*parts, part] if item.strip()]


def declarations():
    """{(module, name): [parameters of each overload]} of the headers; None for what is taken from another namespace."""
    found = {}
    for header in HEADERS:
        text = without_comments((ROOT / "include" / "plait" / f"{header}.h").read_text())
        text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
        scopes, statement = [], ""
        for character in text:
            if character == "{" and re.search(
                r"\)\s*(const)?\s*$|=\s*$|[(,]\s*$|template", statement
            ):
                scopes.append(None)  # a body or an initialiser in a declaration
            elif character == "{":
                scope = re.search(r"namespace\s+([\w:]+)\s*$", statement)
                scopes.append(scope[1] if scope else "")
                statement = ""
                continue
            elif character == "}":
                ended = scopes.pop()
                statement = statement + "}" if ended is None else ""
                continue
            elif character == ";" and None not in scopes and "" not in scopes:
                module = (
                    "::".join(scopes).removeprefix("plait").removeprefix("::").replace("::", ".")
                )
                borrowed = re.match(r"\s*using \w+::(\w+)\s*$", statement)
                if borrowed:
                    found[module, borrowed[1]] = None
                match = re.match(
                    r"\s*([\w:<>,&\s*]+?)\s+(\w+)\s*\((.*)\)\s*$", statement, re.DOTALL
                )
                if match and not re.search(
                    r"\b(template|using|struct|class|extern|operator)\b", statement
                ):
                    found.setdefault((module, match[2].rstrip("_")), []).append(
                        parameters_of(match[3])
                    )
                statement = ""
                continue
            statement += character
    return found


def parameters_of(text):
    names = []
    for parameter in split_at_commas(text):
        declared = parameter.split("=")[0].strip()
        kind, _, name = re.sub(r"[&*]", " ", declared).rpartition(" ")
        struct = re.search(r"(\w+)\s*$", kind)
        if struct and struct[1] in STRUCTS:
            names += STRUCTS[struct[1]].split()
        else:
            names.append(name.rstrip("_"))
    return names


def catalogued():
    return {
        (module, name): parameters for module, name, _, _, _, parameters in _plait.catalogue_info()
    }


def test_every_function_of_the_headers_is_in_the_catalogue():
    catalogue = catalogued()
    missing = [
        f"{module}.{name}"
        for module, name in declarations()
        if module in MODULES
        and (module, name) not in catalogue
        and f"{module}.{name}" not in CPP_ONLY
    ]
    assert missing == []


@pytest.mark.parametrize("module", MODULES)
def test_the_catalogue_has_the_parameters_of_the_headers(module):
    declared = declarations()
    differing = []
    for (owner, name), parameters in catalogued().items():
        if owner != module:
            continue
        path = f"{module}.{name}"
        wanted = [p[0] for p in parameters if not p[5] and p[0] not in ONLY_PYTHON.get(path, ())]
        overloads = declared.get((module, name), [])
        if overloads is None:
            continue  # the standard has the function twice, under other parameters' names
        overloads = [
            [RENAMED.get(path, {}).get(p, p) for p in overload if p not in ONLY_CPP.get(path, ())]
            for overload in overloads
        ]
        known = path in OVERLOADED and overloads
        if wanted not in overloads and not known:
            differing.append((path, wanted, overloads))
    assert differing == []


@pytest.mark.parametrize("module", [*MODULES, "tree"])
def test_functions_of_the_modules_come_from_the_catalogue(module):
    if module in ("tree", "nn.initializers"):
        reasons = {"tree": "Python callables and containers are what these functions are about"}
        assert reasons.get(module) or PYTHON_ONLY[module]
        return
    python = importlib.import_module(f"plait.{module}")
    catalogue = _plait.catalogue(module)
    assert {
        name for name in catalogue if getattr(python, name, None) is not catalogue[name]
    } == set()
    others = {
        f"{module}.{name}"
        for name in dir(python)
        if not name.startswith("_")
        and name not in catalogue
        and callable(getattr(python, name))
        and not (
            inspect.isclass(getattr(python, name)) and module in ("lax", "numpy", "numpy.linalg")
        )
    }
    assert others - set(PYTHON_ONLY) == set()


def test_initializers_are_factories_of_catalogued_functions():
    from plait.nn import initializers

    for name, function in _plait.catalogue("nn.initializers").items():
        factory = getattr(initializers, name)
        if name in ("zeros", "ones"):
            assert factory is function
            continue
        options = {p.name for p in inspect.signature(function).parameters.values()} - {
            "key",
            "shape",
        }
        assert set(inspect.signature(factory).parameters) == options


def test_signatures_of_python_are_those_of_the_catalogue():
    for module, name, signature, _, _, parameters in _plait.catalogue_info():
        function = _plait.find_function(module, name)
        assert f"{name}{function.__text_signature__}" == signature
        names = [p.name for p in inspect.signature(function).parameters.values()]
        assert names == [p[0] for p in parameters]
