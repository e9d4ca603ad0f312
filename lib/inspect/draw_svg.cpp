// A picture as an SVG without scripts, for papers and pages that show images: the initial view of
// the page, laid out like the page (page/draw.js), with estimated text widths.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "inspect/draw_graph.h"
#include "inspect/page.h"

namespace plait {
namespace {

using namespace inspect;

constexpr double gap_x = 22, gap_y = 42, margin = 16, head = 28;
constexpr double letter = 7;  // approximate width of a letter, in pixels

struct Box {
  double x = 0, y = 0, width = 0, height = 0;  // x and y within the box around it, then absolute
  bool is_shown = false, is_open = false;
};
struct Item {
  int shown;
  double x = 0, width = 10, height = 0;
  std::vector<Item*> near[2] = {};  // above, below
};

// Cuts text to a number of UTF-8 characters.
std::string cut(const std::string& text, std::size_t most) {
  std::size_t count = 0, end = 0;
  for (; end < text.size() && count <= most; ++end)
    count += (static_cast<unsigned char>(text[end]) & 0xc0U) != 0x80U;
  return count <= most ? text : text.substr(0, end - 1) + "…";
}

// The least-squares nearest positions in which each is at least its distance beyond the previous
// one (pool adjacent violators).
void spread(std::vector<Item>& row, const std::vector<double>& wanted) {
  struct Block {
    double sum;
    int length;
    double mean() const { return sum / length; }
  };
  std::vector<double> offsets;
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < row.size(); ++i) {
    offsets.push_back(i ? offsets.back() + (row[i - 1].width + row[i].width) / 2 + gap_x : 0.0);
    Block block{wanted[i] - offsets[i], 1};
    while (!blocks.empty() && blocks.back().mean() > block.mean()) {
      block = {blocks.back().sum + block.sum, blocks.back().length + block.length};
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  std::size_t i = 0;
  for (const Block& block : blocks)
    for (int k = 0; k < block.length; ++k, ++i) row[i].x = block.mean() + offsets[i];
}

class Picture {
 public:
  explicit Picture(const DrawGraph& graph)
      : graph_(graph), layers_(make_layers(graph)), boxes_(graph.nodes.size()) {
    for (int index : open_at_first(graph)) box(index).is_open = true;
    size(0);
    box(0).is_shown = true;
    for (std::size_t i = 1; i < boxes_.size(); ++i) {
      const Box& outer = box(graph.nodes[i].parent);
      if (!outer.is_shown || !outer.is_open) continue;
      boxes_[i].is_shown = true;
      boxes_[i].x += outer.x;
      boxes_[i].y += outer.y;
    }
  }

  std::string to_string() const {
    const double width = box(0).width, height = box(0).height;
    std::string svg =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + text_of(width) + " " +
        text_of(height) + "\" width=\"" + text_of(width) + "\" height=\"" + text_of(height) +
        "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12.5\">\n<title>" +
        html_text(graph_.nodes[0].name) +
        "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    for (int pass = 0; pass < 2; ++pass) {  // open boxes are drawn below the edges
      for (std::size_t i = 1; i < boxes_.size(); ++i)
        if (boxes_[i].is_shown && boxes_[i].is_open == (pass == 0)) add_box(int(i), svg);
      if (pass == 0) add_edges(svg);
    }
    return svg + "</svg>\n";
  }

 private:
  Box& box(int index) { return boxes_[std::size_t(index)]; }
  const Box& box(int index) const { return boxes_[std::size_t(index)]; }
  const DrawNode& node(int index) const { return graph_.nodes[std::size_t(index)]; }
  static std::string text_of(double value) { return json_number(std::round(value * 10) / 10); }
  std::string sub_text(int index) const {
    const int count = node(index).num_equations;
    return count == 0 ? "" : std::to_string(count) + (count == 1 ? " equation" : " equations");
  }

  void size(int index) {
    Box& self = box(index);
    const double title = letter * double(cut(node(index).name, 40).size());
    if (node(index).is_leaf()) {
      self.width = title + 26;
      self.height = 28;
    } else if (!self.is_open) {
      self.width = std::max(title + 30, 6.2 * double(sub_text(index).size()) + 28);
      self.height = 46;
    } else {
      arrange(index, title + 120);
    }
  }

  std::vector<std::vector<Item>> rows_of(int index) {
    const DrawLayers& order = layers_[std::size_t(index)];
    std::vector<std::vector<Item>> rows;
    for (const std::vector<int>& layer : order.layers) {
      rows.emplace_back();
      for (int shown : layer) {
        Item item{shown};
        if (shown >= 0) {
          size(shown);
          item.width = box(shown).width;
          item.height = box(shown).height;
        }
        rows.back().push_back(std::move(item));
      }
    }
    std::map<int, Item*> nodes;
    std::map<int, std::vector<Item*>> passing;
    for (std::vector<Item>& row : rows)
      for (Item& item : row) {
        if (item.shown >= 0)
          nodes[item.shown] = &item;
        else
          passing[-1 - item.shown].push_back(&item);
      }
    for (std::size_t l = 0; l < order.links.size(); ++l) {
      if (!order.links[l].is_routed) continue;
      Item* last = nodes[order.links[l].from];
      std::vector<Item*> chain = passing[int(l)];
      chain.push_back(nodes[order.links[l].to]);
      for (Item* item : chain) {
        last->near[1].push_back(item);
        item->near[0].push_back(last);
        last = item;
      }
    }
    return rows;
  }

  void arrange(int index, double least_width) {
    std::vector<std::vector<Item>> rows = rows_of(index);
    for (std::vector<Item>& row : rows) spread(row, std::vector<double>(row.size(), 0.0));
    constexpr int rounds = 8;
    for (int round = 0; round < rounds; ++round)
      for (std::size_t k = 0; k < rows.size(); ++k) {
        std::vector<Item>& row = rows[round % 2 ? rows.size() - 1 - k : k];
        std::vector<double> wanted;
        for (const Item& item : row) {
          double sum = 0, count = 0;
          for (int side = 0; side < 2; ++side)
            if (round >= rounds - 3 || side == round % 2)
              for (const Item* other : item.near[side]) sum += other->x, count += 1;
          wanted.push_back(count > 0 ? sum / count : item.x);
        }
        spread(row, wanted);
      }
    place(index, rows, least_width);
  }

  void place(int index, const std::vector<std::vector<Item>>& rows, double least_width) {
    double left = 0, right = 0;
    for (const std::vector<Item>& row : rows)
      for (const Item& item : row) {
        left = std::min(left, item.x - item.width / 2);
        right = std::max(right, item.x + item.width / 2);
      }
    const double pad = margin + std::max(0.0, (least_width - (right - left)) / 2);
    double y = index == 0 ? margin : head + margin;
    for (const std::vector<Item>& row : rows) {
      double height = 0;
      for (const Item& item : row) height = std::max(height, item.height);
      for (const Item& item : row) {
        const double x = item.x + pad - left;
        if (item.shown < 0) {
          auto& path = routes_[{index, -1 - item.shown}];
          path.push_back({x, y});
          path.push_back({x, y + height});
        } else {
          box(item.shown).x = x - item.width / 2;
          box(item.shown).y = y + (height - item.height) / 2;
        }
      }
      y += height + gap_y;
    }
    box(index).width = right - left + 2 * pad;
    box(index).height = y - (rows.empty() ? 0 : gap_y) + margin;
  }

  void add_box(int index, std::string& svg) const {
    static const auto& colors = *new const std::map<std::string, const char*>{
        {"product", "#3b6fd4"},  {"elementwise", "#2e9a6b"}, {"reduction", "#d08a18"},
        {"movement", "#8a94a6"}, {"control", "#8658c9"},     {"effect", "#d1495b"}};
    const Box& b = box(index);
    const DrawNode& n = node(index);
    const auto color = colors.find(n.group);
    const bool is_end = n.kind == DrawNode::Kind::input || n.kind == DrawNode::Kind::output;
    const std::string middle = text_of(b.x + b.width / 2);
    auto rect = [&](double x, double y, double w, double h, const std::string& more) {
      svg += "<rect x=\"" + text_of(x) + "\" y=\"" + text_of(y) + "\" width=\"" + text_of(w) +
             "\" height=\"" + text_of(h) + "\" " + more + "/>";
    };
    auto text = [&](const std::string& x, double y, const char* more, const std::string& words) {
      svg += "<text x=\"" + x + "\" y=\"" + text_of(y) + "\" " + more + ">" + html_text(words) +
             "</text>";
    };
    svg += "<g><title>" + html_text(n.text.empty() ? n.name : n.text) + "</title>";
    rect(b.x, b.y, b.width, b.height,
         std::string("stroke=\"#c3cad6\" rx=\"") + (is_end ? "14" : "7") + "\" fill=\"" +
             (b.is_open ? "#253c6e0a" : "#ffffff") + "\"");
    if (!b.is_open)
      rect(b.x + 6, b.y + 8, 4, b.height - 16,
           std::string("rx=\"2\" fill=\"") + (color == colors.end() ? "#667085" : color->second) +
               "\"");
    if (b.is_open) {
      text(text_of(b.x + 14), b.y + 20, "font-weight=\"600\"", cut(n.name, 40));
    } else if (n.is_leaf()) {
      text(text_of(b.x + 16), b.y + 18.5, "", cut(n.name, 40));
    } else {
      text(middle, b.y + 20, "font-weight=\"600\" text-anchor=\"middle\"", cut(n.name, 40));
      text(middle, b.y + 36, "font-size=\"11\" fill=\"#667085\" text-anchor=\"middle\"",
           sub_text(index));
    }
    svg += "</g>\n";
  }

  using Point = std::pair<double, double>;

  // Values that flow from one visible box to another.
  struct Flow {
    int from, to;
    std::set<std::pair<int, std::string>> arrays = {};  // by producer, with their types
    std::vector<Point> points = {};
    bool is_far = false;  // straight, past the layers between
  };

  std::vector<Flow> flows() const {
    std::map<std::pair<int, int>, Flow> merged;
    for (const DrawEdge& edge : graph_.edges) {
      const int from = shown(edge.from), to = shown(edge.to);
      if (from == to) continue;
      Flow& flow = merged.try_emplace({from, to}, Flow{from, to}).first->second;
      flow.arrays.insert({edge.from, edge.type});
    }
    std::vector<Flow> result;
    std::map<int, std::vector<std::size_t>> into;
    for (auto& [ends, flow] : merged) {
      route(flow);
      into[flow.to].push_back(result.size());
      result.push_back(std::move(flow));
    }
    for (auto& entry : into) {  // edges into one box end side by side
      std::vector<std::size_t>& numbers = entry.second;
      auto start = [&](std::size_t i) {
        return result[i].points[result[i].points.size() - 2].first;
      };
      std::sort(numbers.begin(), numbers.end(),
                [&](std::size_t a, std::size_t b) { return start(a) < start(b); });
      const double step = std::min(16.0, box(entry.first).width / double(numbers.size() + 1));
      for (std::size_t k = 0; k < numbers.size(); ++k)
        result[numbers[k]].points.back().first +=
            (double(k) - double(numbers.size() - 1) / 2) * step;
    }
    return result;
  }

  static void add_path(const Flow& flow, std::string& svg) {
    const std::vector<Point>& points = flow.points;
    std::string path = "M" + text_of(points[0].first) + " " + text_of(points[0].second);
    for (std::size_t i = 1; i < points.size(); ++i) {
      const auto [px, py] = points[i - 1];
      const auto [x, y] = points[i];
      const double bend = std::max(std::abs(y - py) / 2, y < py ? 60.0 : 0.0);
      path += "C" + text_of(px) + " " + text_of(py + bend) + " " + text_of(x) + " " +
              text_of(y - bend) + " " + text_of(x) + " " + text_of(y);
    }
    svg += "<path d=\"" + path + "\" fill=\"none\" stroke=\"#8b95a7\" stroke-width=\"1.2\"" +
           (flow.is_far ? " stroke-opacity=\"0.45\" stroke-dasharray=\"4 4\"/>" : "/>");
    const auto [x, y] = points.back();
    svg += "<path d=\"M" + text_of(x - 3.2) + " " + text_of(y - 7) + "h6.4L" + text_of(x) + " " +
           text_of(y) + "z\" fill=\"#8b95a7\"/>\n";
  }
  static void add_label(double x, double y, const std::string& text, std::string& svg) {
    svg += "<text x=\"" + text_of(x + 5) + "\" y=\"" + text_of(y) +
           "\" font-size=\"10.5\" fill=\"#667085\" font-family=\"monospace\" stroke=\"#ffffff\" "
           "stroke-width=\"4\" paint-order=\"stroke\">" +
           html_text(text) + "</text>\n";
  }

  // Shapes label the start of an edge if its box produces one kind, and its end otherwise.
  void add_edges(std::string& svg) const {
    const std::vector<Flow> all = flows();
    std::map<int, std::set<std::pair<int, std::string>>> made;
    for (const Flow& flow : all) {
      add_path(flow, svg);
      made[flow.from].insert(flow.arrays.begin(), flow.arrays.end());
    }
    std::set<int> labelled;
    for (const Flow& flow : all) {
      const std::string& type = flow.arrays.begin()->second;
      const bool is_one = made[flow.from].size() == 1;
      const auto [x, y] = is_one ? flow.points.front() : flow.points.back();
      if (!is_one)
        add_label(x, y - 9,
                  flow.arrays.size() == 1 ? type : std::to_string(flow.arrays.size()) + " arrays",
                  svg);
      else if (labelled.insert(flow.from).second)
        add_label(x, y + 14, type, svg);
    }
  }

  // The visible box at the position of this one.
  int shown(int index) const {
    while (!box(index).is_shown) index = node(index).parent;
    return index;
  }

  // Routes out of the boxes around its start, through its positions, into those around its end.
  void route(Flow& flow) const {
    const int from = flow.from, to = flow.to;
    std::vector<int> out, into;
    for (int i = from; i >= 0; i = node(i).parent) out.push_back(i);
    for (int i = to; i >= 0; i = node(i).parent) into.push_back(i);
    while (out.size() > 1 && into.size() > 1 && out[out.size() - 2] == into[into.size() - 2])
      out.pop_back(), into.pop_back();
    const int around = out.back();
    out.pop_back(), into.pop_back();
    auto middle = [&](int index) { return box(index).x + box(index).width / 2; };
    std::vector<Point>& points = flow.points;
    flow.is_far = out.empty() || into.empty();
    for (int i : out) points.push_back({middle(from), box(i).y + box(i).height});
    if (points.empty()) points.push_back({middle(from), box(from).y + box(from).height});
    const std::vector<DrawLayers::Link>& links = layers_[std::size_t(around)].links;
    for (std::size_t l = 0; !out.empty() && !into.empty() && l < links.size(); ++l) {
      if (links[l].from != out.back() || links[l].to != into.back()) continue;
      flow.is_far = !links[l].is_routed;
      const auto found = routes_.find({around, int(l)});
      if (found == routes_.end()) continue;
      for (const auto& [x, y] : found->second)
        points.push_back({x + box(around).x, y + box(around).y});
    }
    for (auto i = into.rbegin(); i != into.rend(); ++i) points.push_back({middle(to), box(*i).y});
    if (into.empty()) points.push_back({middle(to), box(to).y});
  }

  const DrawGraph& graph_;
  const std::vector<DrawLayers> layers_;
  std::vector<Box> boxes_;
  std::map<std::pair<int, int>, std::vector<Point>> routes_;  // of links of boxes
};

}  // namespace

std::string draw_svg(const Jaxpr& jaxpr, const DrawOptions& options) {
  const DrawGraph graph = make_graph(jaxpr, options);
  return Picture(graph).to_string();
}

}  // namespace plait
