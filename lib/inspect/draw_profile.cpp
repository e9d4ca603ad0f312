// Times and backends of a picture's equations. Steps of the executable are matched by line,
// transforms, primitive and scope, and their time is divided among matching equations by cost. The
// time of code that the compiler derived from a line is divided among all equations of that line.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/profile.h>

#include <array>
#include <map>
#include <set>

#include "inspect/draw_graph.h"

namespace plait::inspect {
namespace {

std::string line_of(const Source& source) {
  return source ? source->file + "\n" + std::to_string(source->line) : std::string();
}
// From the most to the least specific.
std::array<std::string, 3> keys_of(const Source& source, const std::string& primitive) {
  const std::string line = line_of(source);
  if (!source) return {line, line, line};
  const std::string made = line + "\n" + source->transforms + "\n" + primitive;
  return {made + "\n" + source->scope, made, line};
}

class Places {
 public:
  explicit Places(DrawGraph& graph) : graph_(graph) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const DrawNode& node = graph.nodes[i];
      if (node.kind != DrawNode::Kind::equation) continue;
      const auto keys = keys_of(node.source, node.name);
      for (const std::string& key : std::set<std::string>(keys.begin(), keys.end()))
        nodes_[key].push_back(int(i));
    }
  }
  void add(const ProfileShare& share, const std::string& backend) {
    auto found = nodes_.end();
    for (const std::string& key : keys_of(share.source, share.primitive))
      if (found == nodes_.end()) found = nodes_.find(key);
    if (found == nodes_.end()) return;
    double sum = 0;
    for (int index : found->second) sum += weight_of(graph_.nodes[std::size_t(index)]);
    for (int index : found->second) {
      DrawNode& node = graph_.nodes[std::size_t(index)];
      const double part = share.seconds * weight_of(node) / sum;
      if (node.backend.empty() || part > most_[index]) {
        node.backend = backend;
        most_[index] = part;
      }
      node.seconds += part;
    }
  }

 private:
  static double weight_of(const DrawNode& node) { return 1 + node.flops + node.bytes; }

  DrawGraph& graph_;
  std::map<std::string, std::vector<int>> nodes_;  // by key
  std::map<int, double> most_;                     // the largest share of a node's time
};

}  // namespace

void add_profile(DrawGraph& graph, const Profile& profile) {
  Places places(graph);
  for (const ProfileStep& step : profile.steps)
    for (const ProfileShare& share : step.shares) places.add(share, step.backend);
  for (std::size_t i = graph.nodes.size(); i-- > 1;)
    graph.nodes[std::size_t(graph.nodes[i].parent)].seconds += graph.nodes[i].seconds;
}

}  // namespace plait::inspect
