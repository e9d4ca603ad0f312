// The page of a picture: the graph as JSON, and the script that lays it out. See page/draw.js.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "inspect/draw_graph.h"
#include "inspect/page.h"

namespace plait {
namespace {

using namespace inspect;

constexpr const char* style =
#include <page.css.inc>

#include <draw.css.inc>
    ;
constexpr const char* script =
#include <draw.js.inc>
    ;

// The source lines of a program, numbered, each once.
class Lines {
 public:
  int add(const Source& source) {
    if (!source) return -1;
    const auto [place, is_new] = numbers_.try_emplace(&*source, int(sources_.size()));
    if (is_new) sources_.push_back(source);
    return place->second;
  }
  std::string json() const {
    return json_list(sources_, [](const Source& source) {
      return "[" + json_text(source->file) + "," + std::to_string(source->line) + "," +
             json_text(source->function) + "," + json_text(source->scope) + "," +
             json_text(source->transforms) + "," + json_text(source.text()) + "]";
    });
  }

 private:
  std::unordered_map<const Source::Line*, int> numbers_;
  std::vector<Source> sources_;
};

std::string_view name_of(DrawColor color) {
  switch (color) {
    case DrawColor::bytes:
      return "bytes";
    case DrawColor::time:
      return "time";
    case DrawColor::backend:
      return "backend";
    case DrawColor::kind:
      break;
  }
  return "kind";
}

std::string number(int value) { return std::to_string(value); }

// One list for each attribute of nodes, so that its name is written once.
std::string nodes_json(const DrawGraph& graph, StringTable& strings, Lines& lines) {
  std::string json = "{";
  auto column = [&](const char* name, auto text) {
    json += std::string(json.size() > 1 ? ",\n" : "") + "\"" + name + "\":";
    json += json_list(graph.nodes, text);
  };
  auto strings_column = [&](const char* name, std::string DrawNode::* member) {
    column(name, [&](const DrawNode& node) { return number(strings.add(node.*member)); });
  };
  auto numbers_column = [&](const char* name, double DrawNode::* member) {
    column(name, [&](const DrawNode& node) { return json_number(node.*member); });
  };
  column("parent", [](const DrawNode& node) { return number(node.parent); });
  column("kind", [](const DrawNode& node) { return number(int(node.kind)); });
  strings_column("name", &DrawNode::name);
  strings_column("type", &DrawNode::type);
  strings_column("text", &DrawNode::text);
  strings_column("group", &DrawNode::group);
  strings_column("backend", &DrawNode::backend);
  column("source", [&](const DrawNode& node) { return number(lines.add(node.source)); });
  column("count", [](const DrawNode& node) { return number(node.num_equations); });
  numbers_column("bytes", &DrawNode::bytes);
  numbers_column("flops", &DrawNode::flops);
  numbers_column("seconds", &DrawNode::seconds);
  return json + "}";
}

std::string edges_json(const DrawGraph& graph, StringTable& strings) {
  return json_list(graph.edges, [&](const DrawEdge& edge) {
    return number(edge.from) + "," + number(edge.to) + "," + number(strings.add(edge.type)) + "," +
           json_number(edge.bytes);
  });
}

std::string layers_json(const DrawGraph& graph) {
  const std::vector<DrawLayers> layers = make_layers(graph);
  std::string json = "[";
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (graph.nodes[i].is_leaf()) continue;
    if (json.size() > 1) json += ",\n";
    json += "[" + number(int(i)) + ",";
    json += json_list(layers[i].layers,
                      [](const std::vector<int>& layer) { return json_list(layer, number); });
    json += "," +
            json_list(layers[i].links,
                      [](const DrawLayers::Link& link) {
                        return number(link.from) + "," + number(link.to) + "," +
                               (link.is_routed ? "1" : "0");
                      }) +
            "]";
  }
  return json + "]";
}

}  // namespace

std::string draw_html(const Jaxpr& jaxpr, const DrawOptions& options) {
  const DrawGraph graph = make_graph(jaxpr, options);
  StringTable strings;
  Lines lines;
  strings.add("");
  std::string data = "{\"title\":" + json_text(options.title) + ",\"color\":\"" +
                     std::string(name_of(options.color)) + "\",\n\"nodes\":";
  data += nodes_json(graph, strings, lines);
  data += ",\n\"edges\":" + edges_json(graph, strings);
  data += ",\n\"layers\":" + layers_json(graph);
  data += ",\n\"open\":" + json_list(open_at_first(graph), number);
  data += ",\n\"sources\":" + lines.json();
  data += ",\n\"strings\":" + strings.json() + "}";
  return "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
         html_text(options.title) + "</title>\n<style>\n" + style +
         "</style></head>\n<body>\n<header><h1>" + html_text(options.title) +
         "</h1><span class=\"facts\" id=\"facts\"></span>\n"
         "<span class=\"choice\" id=\"color\" role=\"group\" aria-label=\"colour by\"></span>\n"
         "<span class=\"choice\"><button id=\"fold\">fold all</button>"
         "<button id=\"unfold\">unfold</button><button id=\"fit\" title=\"key f\">fit</button>"
         "<button id=\"theme\" aria-label=\"light or dark\">◐</button></span>\n"
         "<span class=\"search\"><input id=\"search\" type=\"search\" "
         "placeholder=\"search: name, type, line  ( / )\" aria-label=\"search\">"
         "<ol id=\"results\"></ol></span></header>\n"
         "<main><svg id=\"canvas\"><defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" "
         "refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" "
         "orient=\"auto\"><path d=\"M0 0.8L8 4L0 7.2Z\"/></marker></defs><g id=\"world\"></g></svg>"
         "<div id=\"legend\"></div></main>\n<aside id=\"panel\"></aside>\n"
         "<script type=\"application/json\" id=\"data\">" +
         data + "</script>\n<script>\n" + script + "</script>\n</body>\n</html>\n";
}

void draw(const Jaxpr& jaxpr, const std::string& path, const DrawOptions& options) {
  write_file("draw", path,
             path.ends_with(".svg") ? draw_svg(jaxpr, options) : draw_html(jaxpr, options));
}

}  // namespace plait
