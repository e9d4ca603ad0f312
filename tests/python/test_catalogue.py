"""One catalogue, two languages: the C++ headers, the catalogue and the Python modules hold the same functions.

The headers are read as text: each public function of a namespace is in the catalogue, with the same parameters in the
same order, of the same types and defaults, and each function of the Python modules comes from the catalogue; functions
of plait itself exist in both languages. What differs is listed with its reason, and a listed difference that is none
any more fails too.

SPDX-License-Identifier: Apache-2.0
"""

import importlib
import inspect
import pathlib
import re

import plait
import pytest
from plait import _plait

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = (
    "functions/numpy functions/numpy_shape functions/numpy_fft functions/numpy_linalg "
    "functions/numpy_numbers functions/numpy_analysis functions/numpy_edits functions/numpy_pad functions/numpy_eig functions/lax "
    "functions/lax_numbers functions/lax_linalg functions/nn functions/ops functions/image functions/sparse functions/optim_schedules "
    "functions/random functions/optim functions/scipy functions/scipy_fft functions/scipy_linalg functions/scipy_matrices functions/scipy_stats functions/scipy_signal functions/scipy_ndimage functions/scipy_interpolate "
    "primitives/primitives primitives/indexing primitives/sorting primitives/windows primitives/random primitives/special primitives/linalg primitives/decompositions primitives/fourier primitives/collectives".split()
)
MODULES = (
    "numpy numpy.fft numpy.linalg lax lax.linalg nn nn.initializers random optim ops image sparse scipy.fft scipy.linalg scipy.special scipy.stats "
    "scipy.cluster.vq scipy.integrate scipy.interpolate scipy.ndimage scipy.signal"
).split() + [
    f"scipy.stats.{name}"
    for name, part in vars(plait.scipy.stats).items()
    if inspect.ismodule(part) and name in plait.scipy.stats.__all__
]

# Functions of C++ alone.
CPP_ONLY = {
    "numpy.polynomial_fit": "what full=True and cov=True ask polyfit for",
    "numpy.intersection": "what return_indices=True asks intersect1d for",
    "numpy.unique_slices": "unique with an axis",
    "lax.all_gather_invariant": "all_gather with to='invarying'",
    "lax.fft_along": "numpy.fft's functions are for users; this is the primitive",
    "lax.zeros_like": "of an Aval, which Python spells numpy.zeros",
    "lax.dim_as_value": "Python's sizes become values by themselves",
    "lax.random_bits": "random.bits is for users; this is the primitive",
    "lax.random_fold": "random.fold_in is for users; this is the primitive",
    "lax.random_split": "random.split is for users; this is the primitive",
    "lax.linalg.geqrf": "what mode='raw' asks numpy.linalg.qr for",
    "lax.linalg.sqrtm": "scipy.linalg.sqrtm is for users; this is the primitive",
    "lax.linalg.polar": "lax.linalg.qdwh is for users; this is the primitive",
    "lax.linalg.pivoted_order": "what pivoting=True asks qr for",
    "nn.logsumexp_with_sign": "the pair that return_sign=True asks for",
    "nn.dot_product_attention_with_residual": "the pair that return_residual=True asks for",
    "lax.conv_dimension_numbers": "in Python of JAX's arguments, and with JAX's type",
}
# Functions whose C++ overloads take apart what Python's arguments may be.
OVERLOADED = {
    "numpy.atleast_1d": "one array, or several", "numpy.atleast_2d": "one array, or several",
    "numpy.atleast_3d": "one array, or several", "lax.sort": "an array, or a sequence of them",
}  # fmt: skip
# Parameters that differ: the type of the result depends on their value, which C++ spells as another function or overload.
COLLECTIVES = "psum pmean pmax pmin all_gather psum_scatter all_to_all pswapaxes".split()
ONLY_PYTHON = {
    **{f"lax.{name}": {"axis_index_groups"} for name in COLLECTIVES},  # refused
    "lax.all_gather": {"axis_index_groups", "to"},  # another function
    "lax.rng_bit_generator": {"algorithm"},  # of JAX's, all of which are plait's
    **{f"numpy.{name}": {"mean"} for name in "var std nanvar nanstd".split()},  # says what it is
    **{f"numpy.{name}": {"promote_integers"} for name in "sum prod".split()},  # a dtype in C++
    "numpy.average": {"returned"},
    "nn.dot_product_attention": {"return_residual"},
    "numpy.linspace": {"retstep"},
    "numpy.linalg.pinv": {"hermitian", "rcond"},  # says nothing; another name of rtol
    "numpy.linalg.lstsq": {"numpy_resid"},
    "numpy.linalg.svd": {"compute_uv"},
    "lax.linalg.svd": {"compute_uv", "subset_by_index"},
    "lax.linalg.eigh": {"subset_by_index"},  # slices of the results
    "lax.linalg.qr": {"pivoting"},
    "lax.linalg.schur": {"compute_schur_vectors"},
    "lax.linalg.qdwh": {"is_hermitian"},  # says nothing
    "scipy.linalg.svd": {"compute_uv"},
    "scipy.linalg.hessenberg": {"calc_q"},
    "scipy.linalg.eigh": {"eigvals_only"},
    "scipy.linalg.eigh_tridiagonal": {"eigvals_only", "select", "select_range"},
    "scipy.linalg.solve_sylvester": {"method"},
    "scipy.linalg.funm": {"disp"},
    "scipy.linalg.expm_frechet": {"compute_expm"},
    "scipy.linalg.lu": {"permute_l"},
    "numpy.unique": {"return_index", "return_inverse", "return_counts", "axis"},
    "numpy.where": {"size", "fill_value"},
    "numpy.unique_counts": {"size", "fill_value"},  # unique_all has them
    "numpy.unique_inverse": {"size", "fill_value"},
    "numpy.unique_values": {"size", "fill_value"},
    "numpy.polyfit": {"full", "cov"},
    "numpy.indices": {"sparse"},  # meshgrid's
    "numpy.intersect1d": {"return_indices"},
    "nn.logsumexp": {"return_sign"},
    "lax.reshape": {"dimensions"},
    "optim.adam": {"params"},  # for adam and adamw to be called alike
    "optim.momentum": {"params"},
    "optim.rmsprop": {"params"},
    "optim.adagrad": {"params"},
}
ONLY_CPP = {
    "lax.linalg.schur": {"complex"},  # Python's is that of x's dtype
    "lax.sort": {"descending"},  # JAX's sort has none; numpy.sort does
    "lax.convert_element_type": {"weak"},
    "numpy.unique_all": {"equal_nan"},
}
# Parameters of another name, for C++ has another type there.
DYNAMIC = (
    "dynamic_slice dynamic_update_slice dynamic_slice_in_dim dynamic_index_in_dim dynamic_update_slice_in_dim "
    "dynamic_update_index_in_dim"
).split()
RENAMED = {
    **{f"lax.{name}": {"negative": "allow_negative_indices"} for name in DYNAMIC},  # an enum
    "lax.dot_general": {"dimensions": "dimension_numbers"},  # a DotDimensions
    "lax.ragged_dot_general": {"dimensions": "ragged_dot_dimension_numbers"},  # a struct
    "lax.full": {"value": "fill_value"},  # a double
}
# Structs of options are the parameters that they hold.
STRUCTS = {
    "SgdOptions": "learning_rate count", "MomentumOptions": "learning_rate decay nesterov",
    "AdamOptions": "learning_rate b1 b2 eps", "AdamWOptions": "learning_rate b1 b2 eps weight_decay mask",
    "LionOptions": "learning_rate b1 b2 weight_decay mask", "RmspropOptions": "learning_rate decay eps",
    "AdagradOptions": "learning_rate eps", "LambOptions": "learning_rate b1 b2 eps weight_decay mask",
    "AdafactorOptions": "learning_rate decay_rate multiply_by_parameter_scale clipping_threshold weight_decay eps mask",
    "LossScaleOptions": "growth_interval factor",
    "PadOptions": "constant_values end_values stat_length reflect_type",
    "FanAxes": "in_axis out_axis batch_axis", "ScatterOptions": "indices_are_sorted unique_indices mode",
}  # fmt: skip

# What a type of C++ is to Python.
SAME_TYPES = {
    "array": "Operand Array", "array or None": "OptionalArray std::optional<Array>", "bool": "bool", "bool or None": "std::optional<bool>",
    "int": "int Dim std::int64_t", "int or None": "std::optional<int> std::optional<Dim>",
    "float": "double", "float or None": "std::optional<double>", "str": "std::string",
    "str or None": "std::optional<std::string>", "dtype": "DType",
    "dtype or None": "std::optional<DType> OptionalDType", "sequence of array": "Operands",
    "sequence of array or None": "std::optional<Arrays>", "tree": "ArrayTree LossScale",
    "int, array of integers or sequence of these": "Shifts",
    "int or sequence of int": "Shape std::span<int> std::vector<int> std::vector<std::int64_t> Sections",
    "int or sequence of int or None": "Axes Shape std::optional<Shape> std::optional<std::vector<int>>",
    "str, or a pair for each dimension": "WindowPadding lax::WindowPadding",
    "int, float or str, or None": "NormOrder", "function of two arrays, or of two tuples of them": "BinaryFunction",
    "function": "Function", "number": "Number", "number or None": "std::optional<Number>", "int or array": "Repeats Population",
    "str, (str, float, ...) or array": "Window", "str or False": "Detrend",
    "0, 1, 2, 'N', 'T' or 'C'": "Transposed", "(array, bool)": "CholeskyFactor",
    "(array, array)": "LUFactor", "int, (before, after), or a pair for each axis": "PadWidth",
    "sparse array": "BCOO", "str, or sequence of str": "AxisNames", "array or sparse array": "Factor", "tree or None": "std::optional<ArrayTree>",
    "((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))": "lax::DotDimensions",
    "dict of numbers by step": "std::map<std::int64_t,Array>", "sequence of functions": "std::vector<Schedule>",
}  # fmt: skip
# Parameters whose types differ beyond that.
OTHER_TYPES = {
    "numpy.eye.k": "also a traced integer", "numpy.tri.k": "also a traced integer",
    "numpy.histogramdd.range": "None for some variables", "numpy.histogram2d.range": "None for some variables",
    **{f"lax.{name}.x": "a tree in Python" for name in [*COLLECTIVES, "ppermute", "pshuffle", "pvary", "pcast"]},
    "lax.ppermute.perm": "pairs, which have a name in C++",
    **{f"lax.{name}.allow_negative_indices": "an enum in C++" for name in DYNAMIC},
    **{f"lax.{name}.dimension_numbers": "a struct, which Python may give as text or tuples"
       for name in "scatter scatter_add scatter_apply scatter_max scatter_min scatter_mul scatter_sub gather conv_general_dilated "
       "conv_general_dilated_local conv_general_dilated_patches conv_transpose".split()},
    "lax.optimization_barrier.operand": "a tree in Python",
    **{f"lax.{path}": "one array or several in Python" for path in
       "reduce.operands reduce.init_values reduce_window.operand reduce_window.init_value".split()},
    "lax.ragged_dot_general.ragged_dot_dimension_numbers": "a struct, which Python gives as tuples",
    "lax.round.rounding_method": "an enum of Python",
    "lax.rng_bit_generator.dtype": "None is uint32 in Python",
    **{f"numpy.{name}.fill_value": "one for each axis, too, in Python" for name in "nonzero argwhere".split()},
    "numpy.gradient.edge_order": "None, JAX's default, is 1 in Python",
    "numpy.einsum.subscripts": "an array, whose labels follow, too, in Python",
    "numpy.einsum_path.subscripts": "an array, whose labels follow, too, in Python",
    "numpy.histogram2d.bins": "a number, edges, or one of these for each variable in Python",
    "numpy.histogramdd.bins": "a number, edges, or one of these for each variable in Python",
    "lax.dot_general.dimension_numbers": "a struct, which Python gives as tuples",
    **{f"lax.{name}.start_indices": "one array or several in Python"
       for name in "dynamic_slice dynamic_update_slice".split()},
    "lax.sort.operand": "one array or several in Python",
    "numpy.broadcast_shapes.shapes": "ints among the shapes in Python",
    "lax.broadcast_shapes.shapes": "ints among the shapes in Python",
    "numpy.linalg.matrix_rank.rtol": "an array is another overload in C++",
    "numpy.linalg.matrix_rank.tol": "an array is another overload in C++",
    "numpy.linalg.pinv.rtol": "an array is another overload in C++",
    "numpy.where.x": "where(condition) is another overload in C++",
    "numpy.where.y": "where(condition) is another overload in C++",
    "lax.full.fill_value": "an array is another overload in C++",
    "lax.full.dtype": "None is the fill value's own in Python",
    "lax.gather.mode": "an enum, whose names Python takes",
    "lax.pad.padding_config": "structs, which Python gives as tuples",
    "lax.stop_gradient.x": "a tree in Python",
    "numpy.lexsort.keys": "an array whose rows are keys, too, in Python",
    "numpy.tensordot.axes": "lists of axes are another overload in C++",
}  # fmt: skip
# Parameters whose defaults differ.
OTHER_DEFAULTS = {
    **{f"lax.{name}.allow_negative_indices": "an enum in C++" for name in DYNAMIC},
    **{
        f"numpy.cross.{name}": "cross(a, b, axis) is another overload in C++"
        for name in "axisa axisb axisc".split()
    },
    "numpy.choose.mode": "choose(a, choices) is another overload in C++",
    "lax.round.rounding_method": "round(x) is another overload in C++",
    "lax.rng_bit_generator.dtype": "None is uint32 in Python",
    "lax.scatter_apply.update_shape": "options follow it in C++",
    "numpy.ravel_multi_index.mode": "without it another overload in C++ does not check",
    "numpy.cov.y": "cov(m) is another overload in C++",
    "numpy.corrcoef.y": "corrcoef(x) is another overload in C++",
    "numpy.interp.period": "interp(x, xp, fp) is another overload in C++",
    "numpy.gradient.varargs": "a parameter of many arguments in Python",
    "lax.conv_general_dilated.window_strides": "JAX's has none; C++ needs one after defaults",
    "lax.conv_general_dilated.padding": "JAX's has none; C++ needs one after defaults",
    "lax.gather.mode": "None is JAX's default, which is its fill or promise; here both check",
    "lax.full.dtype": "None is the fill value's own in Python",
    "numpy.where.x": "where(condition) is another overload in C++",
    "numpy.where.y": "where(condition) is another overload in C++",
}

# Python functions outside the catalogue.
PYTHON_ONLY = {
    "numpy.asarray": "takes any object of Python", "numpy.array": "takes any object of Python",
    "numpy.from_dlpack": "takes any object of Python",
    "numpy.promote_types": "of dtypes, which are NumPy's in Python", "numpy.result_type": "of dtypes, as above",
    "numpy.isdtype": "of dtypes, as above", "numpy.can_cast": "of dtypes, as above",
    "numpy.finfo": "of dtypes, as above", "numpy.iinfo": "of dtypes, as above",
    "numpy.issubdtype": "of dtypes, as above", "numpy.dtype": "NumPy's class",
    "numpy.isscalar": "of any object of Python", "numpy.ndarray": "the class Array",
    **{f"numpy.{name}": "takes slices, nested lists or bools, as Python's indexing does"
       for name in "block delete insert ix_".split()},
    **{f"numpy.{name}": "NumPy's files and buffers" for name in
       "frombuffer fromfile fromiter fromstring load save savez".split()},
    **{f"numpy.{name}": "NumPy's, of any object of Python" for name in
       "array_repr array_str get_printoptions iterable printoptions set_printoptions".split()},
    **{f"numpy.{name}": "takes a Python function" for name in
       "apply_along_axis apply_over_axes frompyfunc mask_indices piecewise".split()},
    **{f"lax.{name}": "shapes of Python's, as tuples" for name in
       "conv_general_permutations conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple "
       "padtype_to_pads reduce_window_shape_tuple".split()},
    **{f"lax.{name}": "a type, for annotations" for name in
       "ConvGeneralDilatedDimensionNumbers DotDimensionNumbers PrecisionLike".split()},
    "lax.shape_as_value": "a size is an array in C++", "lax.dtype": "of dtypes, which are NumPy's in Python",
    "lax.platform_dependent": "takes Python functions", "image.ResizeMethod": "an enum of Python",
    "numpy.fromfunction": "takes a Python function", "numpy.vectorize": "takes a Python function",
    "random.Generator": "a class of Python: state is the caller's in C++",
    "lax.conv_dimension_numbers": "gives a tuple of JAX's type",
    "lax.custom_linear_solve": "takes Python functions", "lax.linear_solve": "takes Python functions",
    "lax.custom_root": "takes Python functions",
    **{f"lax.{name}": "takes Python functions" for name in
       "associative_scan cond fori_loop map scan switch while_loop".split()},
    "nn.initializers": "factories, which return functions, of the catalogue's functions",
    **{f"nn.{name}": "takes trees of Python" for name in
       "combine load_weights partition save_weights tree_at".split()},
    "sparse.grad": "takes a Python function", "sparse.value_and_grad": "takes a Python function",
    **{f"nn.Conv{n}d": "nn.Conv, a class of Python" for n in (1, 2, 3)},
}  # fmt: skip


# Functions of plait itself.
TOP_LEVEL_PYTHON_ONLY = {
    "disable_jit": "not written for C++", "parse_jaxpr": "parse in C++",
    "default_device": "DeviceScope in C++", "device_get": "gives NumPy arrays", "from_dlpack": "of any object of Python",
    "from_jax": "traces functions of JAX", "explain": "a method of jitted functions and executables in C++",
    "grad_check": "not written for C++", "info": "what it prints is asked of backends_of and missing_backends in C++",
    "linear_transpose": "flat::transpose in C++, of a jaxpr", "mesh": "the class Mesh in C++",
    "no_host_calls": "not written for C++", "remat": "JAX's other name of checkpoint",
    "script": "rewrites Python's control flow", "unscripted": "as script",
}  # fmt: skip


# Parameters by transform: those of C++ alone, and of Python alone, whose C++ takes numbers of
# arguments as template arguments, gives functions of primals and tangents, and returns what has_aux asks for
# where a function returns a pair. options are {.holomorphic} and, of Jacobians, {.chunk}.
TRANSFORMS = {
    "grad": ("options", "argnums has_aux holomorphic allow_int"),
    "value_and_grad": ("options", "argnums has_aux holomorphic allow_int"),
    "jvp": ("", "primals tangents has_aux"), "vjp": ("", "primals has_aux"),
    "linearize": ("", "primals has_aux"),
    "jacfwd": ("options", "argnums has_aux holomorphic chunk"),
    "jacrev": ("options", "argnums has_aux holomorphic allow_int chunk"),
    "hessian": ("options", "argnums has_aux holomorphic chunk"), "hvp": ("", "primals tangents"),
    "vmap": ("", "axis_size spmd_axis_name"),  # of JAX's axes without arguments; which it refuses
    "checkpoint": ("", "prevent_cse static_argnums"),
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
    """[(name, type, default)]; of the fields of structs the names alone."""
    found = []
    for parameter in split_at_commas(text):
        declared, _, default = parameter.partition("=")
        kind, _, name = re.sub(r"\s+", " ", re.sub(r"[&*]", " ", declared)).strip().rpartition(" ")
        kind = re.sub(r"\bconst\b|\s", "", kind)
        if kind in STRUCTS:
            found += [(field, None, None) for field in STRUCTS[kind].split()]
        else:
            found.append((name.rstrip("_"), kind, default.strip()))
    return found


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
            [
                RENAMED.get(path, {}).get(p, p)
                for p, *_ in overload
                if p not in ONLY_CPP.get(path, ())
            ]
            for overload in overloads
        ]
        known = path in OVERLOADED and overloads
        if wanted not in overloads and not known:
            differing.append((path, wanted, overloads))
    assert differing == []


def declared_parameters():
    """(path of a parameter, its type and default in Python, and those of each overload in C++)."""
    declared = declarations()
    for (module, name), parameters in catalogued().items():
        path = f"{module}.{name}"
        for parameter, kind, _, _, default, is_accepted in parameters:
            theirs = [
                (their_kind, their_default)
                for overload in declared.get((module, name)) or []
                for their_name, their_kind, their_default in overload
                if RENAMED.get(path, {}).get(their_name, their_name) == parameter and their_kind
            ]
            if theirs and not is_accepted:
                yield f"{path}.{parameter}", kind, default, theirs


def test_types_of_parameters_are_those_of_the_headers():
    same = {kind: set(text.split()) for kind, text in SAME_TYPES.items()}
    differing, count = {}, 0
    for path, kind, _, theirs in declared_parameters():
        count += 1
        if not any(their_kind in same.get(kind, ()) for their_kind, _ in theirs):
            differing[path] = (kind, theirs)
    assert count > 1000
    assert {path: differing[path] for path in differing if path not in OTHER_TYPES} == {}
    assert sorted(set(OTHER_TYPES) - set(differing)) == []  # these differ no more


def python_default(text):
    """A default of C++ as Python writes it; None and () are both {}."""
    spelled = {"": "", "{}": "None", "false": "False", "true": "True", "NAN": "nan"}
    if text in spelled:
        return spelled[text]
    if text.startswith("{"):
        inside = text[1:-1]
        return f"({inside})" if "," in inside else inside
    return text.replace('"', "'")


def test_defaults_are_those_of_the_headers():
    differing, count = {}, 0
    for path, _, default, theirs in declared_parameters():
        count += bool(default)
        wanted = "None" if default == "()" else default
        if wanted not in [python_default(their_default) for _, their_default in theirs]:
            differing[path] = (default, theirs)
    assert count > 400
    assert {path: differing[path] for path in differing if path not in OTHER_DEFAULTS} == {}
    assert sorted(set(OTHER_DEFAULTS) - set(differing)) == []  # these differ no more


def test_functions_of_plait_itself_exist_in_both_languages():
    """Transforms, programs, inspection: in C++ they are templates over functions."""
    headers = "\n".join(
        without_comments(path.read_text()) for path in (ROOT / "include" / "plait").rglob("*.h")
    )
    python = {
        name
        for name, value in vars(plait).items()
        if not name.startswith("_") and callable(value) and not inspect.isclass(value)
    }
    assert len(python) > 50
    missing = {
        name
        for name in python
        if not re.search(rf"^(?:\[\[nodiscard\]\] )?[A-Za-z][^\n;=]*\b{name}\(", headers, re.M)
    }
    assert sorted(missing - set(TOP_LEVEL_PYTHON_ONLY)) == []
    assert sorted(set(TOP_LEVEL_PYTHON_ONLY) - missing) == []  # these are in C++ too


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_take_the_same_options_in_both_languages(name):
    text = without_comments((ROOT / "include" / "plait" / "transforms" / "api.h").read_text())
    found = [
        parameters_of(match[1])
        for match in re.finditer(rf"^auto {name}\(((?:[^()]|\([^()]*\))*)\) ?\{{", text, re.M)
    ]
    assert found
    python = list(inspect.signature(getattr(plait, name)).parameters)
    own = {
        parameter
        for overload in found
        for parameter, kind, _ in overload
        if kind not in ("F", "A...") and parameter not in python
    }
    theirs = {p for p in python[1:] if p not in {q for overload in found for q, *_ in overload}}
    assert [own, theirs] == [set(text.split()) for text in TRANSFORMS[name]]


@pytest.mark.parametrize("module", [m for m in MODULES if m != "nn.initializers"])
def test_functions_of_the_modules_come_from_the_catalogue(module):
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
            inspect.isclass(getattr(python, name))
            and module
            in ("lax", "nn", "numpy", "numpy.linalg", "scipy.interpolate", "scipy.stats", "sparse")
        )
    }
    assert others - set(PYTHON_ONLY) == set()


def test_what_is_said_to_be_of_python_alone_is():
    """The names are functions of Python, and no header declares them."""
    declared = {f"{module}.{name}" for module, name in declarations()}
    catalogue = {f"{module}.{name}" for module, name in catalogued()}
    for path in PYTHON_ONLY:
        module, _, name = path.rpartition(".")
        assert hasattr(importlib.import_module(f"plait.{module}"), name), path
        assert path not in catalogue, path
    assert {path for path in CPP_ONLY if path in catalogue or path not in declared} == set()


def test_every_module_is_compared():
    """plait.tree alone is Python's: its callables and containers are what these functions are about."""
    assert sorted({module for module, _ in catalogued()} - set(MODULES)) == []
    assert sorted({module for module, _ in declarations() if module in ("tree", "tree_util")}) == []


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
