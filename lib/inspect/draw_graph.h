// What a picture of a program shows: boxes, each in another, and what flows between the innermost.
// See draw_graph.cpp and draw_layers.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/draw.h>

namespace plait::inspect {

struct DrawNode {
  // scope: a named scope; body: a call, a loop or a branch; run: equations that follow each other,
  // put together so that no box holds too many.
  enum class Kind { scope, body, run, equation, input, output } kind = Kind::scope;
  int parent = -1;
  std::string name = {};
  std::string type = {};  // of the first output, or which transforms made a scope
  std::string text = {};  // of the equation
  Source source = {};
  std::string group = {};  // "elementwise", "product", ...: what it is coloured by
  int num_equations = 0;   // in it
  double bytes = 0, flops = 0, seconds = 0;
  std::string backend = {};
  bool is_counted = false;         // its figures are known, and not sums over its children
  std::vector<int> children = {};  // in the order of the program
  bool is_leaf() const { return kind >= Kind::equation; }
};

struct DrawEdge {
  int from, to;
  std::string type;
  double bytes;
};

struct DrawGraph {
  std::vector<DrawNode> nodes;  // a box before what it holds; the first is the program
  std::vector<DrawEdge> edges;
};

// Boxes hold at most about so many others.
constexpr int max_children = 40;

DrawGraph make_graph(const Jaxpr& jaxpr, const DrawOptions& options);

// Gives equations, and the boxes around them, times and backends.
void add_profile(DrawGraph& graph, const Profile& profile);

// Boxes that are unfolded at first: those of few parts, the outermost ones first.
std::vector<int> open_at_first(const DrawGraph& graph);

// How the children of a box lie: in layers from top to bottom, each from left to right, whatever
// their sizes. A link goes from one child to another; where it passes layers, it has a place there.
struct DrawLayers {
  struct Link {
    int from, to;    // nodes
    bool is_routed;  // through places in all the layers between
  };
  std::vector<Link> links;
  std::vector<std::vector<int>> layers;  // nodes, and -1 - link for places of links
};
// By node; leaves have none.
std::vector<DrawLayers> make_layers(const DrawGraph& graph);

}  // namespace plait::inspect
