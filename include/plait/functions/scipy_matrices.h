// plait::scipy::linalg: decompositions of general matrices, functions of matrices, and special
// matrices, under SciPy's names. As in numpy_linalg.h, matrices are the last two axes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/scipy_linalg.h>

namespace plait::scipy::linalg {

// --- Decompositions (decompositions.cpp) ---------------------------------------------------------

// t and z of a = z t z^H; output is "real" or "complex".
std::pair<Array, Array> schur(Operand a, const std::string& output = "real");
// The complex form of a real one.
std::pair<Array, Array> rsf2csf(Operand T, Operand Z);
// h and q of a = q h q^H.
std::pair<Array, Array> hessenberg(Operand a);
// u and p of a = u p (side "right") or p u ("left").
std::pair<Array, Array> polar(Operand a, const std::string& side = "right",
                              const std::string& method = "qdwh", std::optional<double> eps = {},
                              std::optional<int> max_iterations = {});
// Eigenvalues w and eigenvectors v of a v = w b v (type 1), a b v = w v (2) or b a v = w v (3) for
// Hermitian a and positive definite b, of which one triangle is read.
std::pair<Array, Array> eigh(Operand a, const std::optional<Array>& b = {}, bool lower = true,
                             int type = 1);
// The same for the symmetric matrix with diagonal d and e beside it.
std::pair<Array, Array> eigh_tridiagonal(Operand d, Operand e);
// u, s and vh of a = u s vh: numpy::linalg::svd.
std::tuple<Array, Array, Array> svd(Operand a, bool full_matrices = true);
struct PivotedQR {
  Array q, r;
  std::optional<Array> p;  // columns of a in order: a[..., p] = q r
};
// mode is "full", "r" or "economic".
PivotedQR qr(Operand a, const std::string& mode = "full", bool pivoting = false);
// q c (mode "left") or c q ("right") in the place of q.
PivotedQR qr_multiply(Operand a, Operand c, const std::string& mode = "right",
                      bool pivoting = false, bool conjugate = false);

// --- Functions of matrices (matrix_functions.cpp) ------------------------------------------------

// The x of A x + x B = C.
Array solve_sylvester(Operand A, Operand B, Operand C);
Array sqrtm(Operand A);
// func of the complex Schur form, by Parlett's recurrence.
Array funm(Operand A, const Function& func);
// expm(A), and its derivative in the direction E.
std::pair<Array, Array> expm_frechet(Operand A, Operand E);

// --- Special matrices (special_matrices.cpp) -----------------------------------------------------

Array toeplitz(Operand c, const std::optional<Array>& r = {});
Array hankel(Operand c, const std::optional<Array>& r = {});
Array circulant(Operand c);
Array convolution_matrix(Operand a, Dim n, const std::string& mode = "full");
Array companion(Operand a);
Array fiedler(Operand a);
Array fiedler_companion(Operand a);
Array leslie(Operand f, Operand s);
Array dft(Dim n, const std::optional<std::string>& scale = {}, std::optional<DType> dtype = {});
Array hadamard(int n, std::optional<DType> dtype = {});
Array helmert(Dim n, bool full = false);
Array hilbert(Dim n);
Array invhilbert(int n);
Array pascal(int n, const std::optional<std::string>& kind = {});
Array invpascal(int n, const std::optional<std::string>& kind = {});

}  // namespace plait::scipy::linalg
