// The content of a picture of a program: nested boxes, and the values that flow between the
// innermost. See draw_graph.cpp and draw_layers.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/inspect/draw.h>

namespace plait::inspect {

struct DrawNode {
  // scope: a named scope; body: a call, a loop or a branch; run: consecutive equations, grouped so
  // that no box holds too many.
  enum class Kind { scope, body, run, equation, input, output } kind = Kind::scope;
  int parent = -1;
  std::string name = {};
  std::string type = {};  // of the first output, or the transforms that made a scope
  std::string text = {};  // of the equation
  Source source = {};
  std::string group = {};  // "elementwise", "product", ...: its colour
  int num_equations = 0;   // in it
  double bytes = 0, flops = 0, seconds = 0;
  std::string backend = {};
  bool is_counted = false;         // its figures are its own, not sums over its children
  std::vector<int> children = {};  // in program order
  bool is_leaf() const { return kind >= Kind::equation; }
};

struct DrawEdge {
  int from, to;
  std::string type;
  double bytes;
};

struct DrawGraph {
  std::vector<DrawNode> nodes;  // a box before its content; the first is the program
  std::vector<DrawEdge> edges;
};

// The approximate maximum of children of a box.
constexpr int max_children = 40;

DrawGraph make_graph(const Jaxpr& jaxpr, const DrawOptions& options);

// Adds times and backends to equations and their boxes.
void add_profile(DrawGraph& graph, const Profile& profile);

// The boxes that are unfolded at first: the outermost ones, and those with few parts.
std::vector<int> open_at_first(const DrawGraph& graph);

// The layout of the children of a box: layers from top to bottom, each ordered from left to right,
// independent of sizes. A link connects two children; where it crosses layers, it has a position in
// each.
struct DrawLayers {
  struct Link {
    int from, to;    // nodes
    bool is_routed;  // through positions in all the layers between
  };
  std::vector<Link> links;
  std::vector<std::vector<int>> layers;  // nodes, and -1 - link for positions of links
};
// By node; empty for leaves.
std::vector<DrawLayers> make_layers(const DrawGraph& graph);

}  // namespace plait::inspect
