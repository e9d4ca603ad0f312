// Orders the children of every box: layers by longest path, then fewer crossings by the mean
// position of neighbours (Sugiyama, Tagawa, Toda 1981), in time about linear in links and
// positions.
//
// Boxes are laid out independently of their surroundings, so that folding one changes sizes only,
// and the page can place boxes without repeating this.
// SPDX-License-Identifier: Apache-2.0
#include "inspect/draw_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace plait::inspect {
namespace {

constexpr int longest_route = 10;  // layers; longer links are straight and faint
constexpr int sweeps = 6;

// The children of one box.
class Layering {
 public:
  Layering(const std::vector<int>& children, DrawLayers& result) : result_(result) {
    add_in_order(children);
    for (std::size_t i = 0; i < nodes_.size(); ++i) place_[nodes_[i]] = int(i);
    layer_.assign(nodes_.size(), 0);
  }

  void run() {
    choose_layers();
    add_places();
    for (int sweep = 0; sweep < sweeps; ++sweep) order(sweep % 2 == 0);
    for (const std::vector<int>& layer : layers_) {
      result_.layers.emplace_back();
      for (int item : layer) result_.layers.back().push_back(items_[std::size_t(item)].shown);
    }
  }

 private:
  struct Item {
    int shown;  // a node, or -1 - link
    std::vector<int> above = {}, below = {};
    double rank = 0;
  };

  // Each child after those that it reads, otherwise in program order. Where boxes read each other,
  // the first one comes first.
  void add_in_order(const std::vector<int>& children) {
    std::map<int, std::vector<int>> readers;
    std::map<int, int> num_reads;
    std::set<int> ready, others(children.begin(), children.end());
    for (const DrawLayers::Link& link : result_.links) {
      readers[link.from].push_back(link.to);
      ++num_reads[link.to];
    }
    for (int child : children)
      if (!num_reads.count(child)) ready.insert(child);
    while (!others.empty()) {
      const int next = ready.empty() ? *others.begin() : *ready.begin();
      ready.erase(next);
      others.erase(next);
      nodes_.push_back(next);
      for (int reader : readers[next])
        if (--num_reads[reader] == 0 && others.count(reader)) ready.insert(reader);
    }
  }

  bool is_forward(const DrawLayers::Link& link) const {
    return place_.at(link.from) < place_.at(link.to);
  }

  // Children that nothing forces earlier are placed as late as possible: inputs next to their
  // readers.
  void choose_layers() {
    std::vector<DrawLayers::Link*> forward;
    for (DrawLayers::Link& link : result_.links)
      if (is_forward(link)) forward.push_back(&link);
    auto from = [&](const DrawLayers::Link* link) { return std::size_t(place_.at(link->from)); };
    auto to = [&](const DrawLayers::Link* link) { return std::size_t(place_.at(link->to)); };
    std::sort(forward.begin(), forward.end(), [&](auto* a, auto* b) { return from(a) < from(b); });
    std::vector<bool> has_input(nodes_.size(), false);
    for (const DrawLayers::Link* link : forward) {
      layer_[to(link)] = std::max(layer_[to(link)], layer_[from(link)] + 1);
      has_input[to(link)] = true;
    }
    std::vector<int> earliest(nodes_.size(), -1);
    for (const DrawLayers::Link* link : forward)
      if (int& first = earliest[from(link)]; first < 0 || layer_[to(link)] < first)
        first = layer_[to(link)];
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!has_input[i] && earliest[i] > 0) layer_[i] = earliest[i] - 1;
    for (DrawLayers::Link* link : forward)
      link->is_routed = layer_[to(link)] - layer_[from(link)] <= longest_route;
  }

  void add_places() {
    int depth = 0;
    for (int layer : layer_) depth = std::max(depth, layer + 1);
    layers_.resize(std::size_t(depth));
    for (std::size_t i = 0; i < nodes_.size(); ++i) add_item(nodes_[i], layer_[i]);
    for (std::size_t l = 0; l < result_.links.size(); ++l) {
      const DrawLayers::Link& link = result_.links[l];
      if (!link.is_routed) continue;
      const int from = place_.at(link.from), to = place_.at(link.to);
      int last = from;
      for (int layer = layer_[std::size_t(from)] + 1; layer < layer_[std::size_t(to)]; ++layer) {
        const int here = add_item(-1 - int(l), layer);
        connect(last, here);
        last = here;
      }
      connect(last, to);
    }
  }
  int add_item(int shown, int layer) {
    items_.push_back({shown});
    layers_[std::size_t(layer)].push_back(int(items_.size()) - 1);
    return int(items_.size()) - 1;
  }
  void connect(int above, int below) {
    items_[std::size_t(above)].below.push_back(below);
    items_[std::size_t(below)].above.push_back(above);
  }

  void order(bool is_down) {
    const std::size_t depth = layers_.size();
    for (std::size_t i = 0; i < depth; ++i) {
      std::vector<int>& layer = layers_[is_down ? i : depth - 1 - i];
      for (std::size_t place = 0; place < layer.size(); ++place) {
        Item& item = items_[std::size_t(layer[place])];
        const std::vector<int>& beside = is_down ? item.above : item.below;
        item.rank = double(place) / double(layer.size());
        if (beside.empty()) continue;
        item.rank = 0;
        for (int other : beside) item.rank += items_[std::size_t(other)].rank;
        item.rank /= double(beside.size());
      }
      std::stable_sort(layer.begin(), layer.end(), [&](int a, int b) {
        return items_[std::size_t(a)].rank < items_[std::size_t(b)].rank;
      });
      for (std::size_t place = 0; place < layer.size(); ++place)
        items_[std::size_t(layer[place])].rank = (double(place) + 0.5) / double(layer.size());
    }
  }

  DrawLayers& result_;
  std::unordered_map<int, int> place_;  // by node, its index among the children
  std::vector<int> nodes_, layer_;
  std::vector<Item> items_;  // nodes first, then links
  std::vector<std::vector<int>> layers_;
};

}  // namespace

std::vector<DrawLayers> make_layers(const DrawGraph& graph) {
  std::vector<DrawLayers> result(graph.nodes.size());
  std::vector<int> depth(graph.nodes.size(), 0);
  for (std::size_t i = 1; i < graph.nodes.size(); ++i)
    depth[i] = depth[std::size_t(graph.nodes[i].parent)] + 1;
  auto parent = [&](int node) { return graph.nodes[std::size_t(node)].parent; };
  // Every edge is a link between two children of the innermost box that holds both its ends.
  for (const DrawEdge& edge : graph.edges) {
    int from = edge.from, to = edge.to;
    while (depth[std::size_t(from)] > depth[std::size_t(to)]) from = parent(from);
    while (depth[std::size_t(to)] > depth[std::size_t(from)]) to = parent(to);
    if (from == to) continue;
    while (parent(from) != parent(to)) from = parent(from), to = parent(to);
    result[std::size_t(parent(from))].links.push_back({from, to, false});
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].is_leaf()) continue;
    std::vector<DrawLayers::Link>& links = result[i].links;
    auto ends = [](const DrawLayers::Link& link) { return std::pair(link.from, link.to); };
    std::sort(links.begin(), links.end(),
              [&](const auto& a, const auto& b) { return ends(a) < ends(b); });
    links.erase(std::unique(links.begin(), links.end(),
                            [&](const auto& a, const auto& b) { return ends(a) == ends(b); }),
                links.end());
    Layering(graph.nodes[i].children, result[i]).run();
  }
  return result;
}

}  // namespace plait::inspect
