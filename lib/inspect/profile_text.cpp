// Profiles as tables, JSON, traces and flame graphs.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/profile.h>

#include <algorithm>
#include <cstdio>

#include "inspect/page.h"

namespace plait {
namespace {

using namespace inspect;

constexpr const char* style =
#include <page.css.inc>

#include <flame.css.inc>
    ;
constexpr const char* script =
#include <flame.js.inc>
    ;

std::string format(const char* pattern, double value, const char* unit = "") {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return std::string(text) + unit;
}

std::string time_text(double seconds) {
  if (seconds < 1e-6) return format("%.0f", seconds * 1e9, " ns");
  if (seconds < 1e-3) return format("%.1f", seconds * 1e6, " us");
  if (seconds < 1) return format("%.2f", seconds * 1e3, " ms");
  return format("%.2f", seconds, " s");
}

std::string percent(double part, double whole) {
  return whole > 0 ? format("%.1f", 100 * part / whole) : "";
}

// Aligned columns; the last few are not padded.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t num_right) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      line += "  " + (i < num_right ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string line_of(const ProfileStep& step) {
  const Source source = step.shares.empty() ? Source() : step.shares[0].source;
  if (!source) return {};
  const std::size_t slash = source->file.find_last_of('/');
  return source->file.substr(slash == std::string::npos ? 0 : slash + 1) + ":" +
         std::to_string(source->line);
}

std::string shortened(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80U) --most;  // UTF-8
  return text.substr(0, most) + "...";
}

constexpr std::size_t most_rows = 30;  // of a table; JSON has all

// The limit assumes memory outside caches.
std::string limit_text(double limit) {
  if (limit > 1.05) return "cached";
  return limit > 0 ? format("%.0f", 100 * limit, " %") : "";
}

std::string steps_table(const Profile& profile) {
  std::vector<std::vector<std::string>> rows = {
      {"time", "%", "runs", "GB/s", "GFLOP/s", "limit", "backend", "step", "makes", "line"}};
  std::vector<const ProfileStep*> steps;
  for (const ProfileStep& step : profile.steps) steps.push_back(&step);
  std::stable_sort(steps.begin(), steps.end(), [](const ProfileStep* a, const ProfileStep* b) {
    return a->seconds > b->seconds;
  });
  const bool has_predicted = std::any_of(
      steps.begin(), steps.end(), [](const ProfileStep* s) { return s->predicted_seconds > 0; });
  if (has_predicted) rows[0].insert(rows[0].begin() + 1, "predicted");
  double rest = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const ProfileStep& step = *steps[i];
    if (i >= most_rows) {
      rest += step.seconds;
      continue;
    }
    const double rate = step.seconds > 0 ? 1e-9 / step.seconds : 0;
    rows.push_back({time_text(step.seconds), percent(step.seconds, profile.seconds),
                    format("%.0f", step.count), format("%.1f", step.work.bytes() * rate),
                    format("%.1f", step.work.flops * rate), limit_text(step.limit), step.backend,
                    shortened(step.name, 48), step.type, line_of(step)});
    if (has_predicted)
      rows.back().insert(rows.back().begin() + 1,
                         step.predicted_seconds > 0 ? time_text(step.predicted_seconds) : "");
  }
  std::string text = table(rows, has_predicted ? 7 : 6);
  if (steps.size() > most_rows)
    text += "  and " + std::to_string(steps.size() - most_rows) +
            " more steps: " + time_text(rest) + "\n";
  return text;
}

std::string table_by(const Profile& profile, ProfileBy what, const char* title) {
  const auto sums = profile.by(what);
  if (sums.size() == 1 && sums[0].first.front() == '(') return {};
  std::vector<std::vector<std::string>> rows = {{"time", "%", title}};
  for (std::size_t i = 0; i < std::min(sums.size(), most_rows); ++i)
    rows.push_back({time_text(sums[i].second), percent(sums[i].second, profile.seconds),
                    shortened(sums[i].first, 100)});
  std::string text = "\n" + table(rows, 2);
  if (sums.size() > most_rows)
    text += "  and " + std::to_string(sums.size() - most_rows) + " more\n";
  return text;
}

std::string source_json(const Source& source) {
  if (!source) return "null";
  return "{\"file\":" + json_text(source->file) + ",\"line\":" + std::to_string(source->line) +
         ",\"function\":" + json_text(source->function) + ",\"scope\":" + json_text(source->scope) +
         ",\"transforms\":" + json_text(source->transforms) +
         ",\"text\":" + json_text(source.text()) + "}";
}

std::string limits_json(const MachineLimits& limits) {
  return "{\"threads\":" + std::to_string(limits.num_threads) +
         ",\"copy_bytes_per_second\":" + json_number(limits.copy) +
         ",\"flops32_per_second\":" + json_number(limits.flops32) +
         ",\"flops64_per_second\":" + json_number(limits.flops64) + "}";
}

}  // namespace

std::string Profile::to_string() const {
  double inside = 0;
  bool is_fused = false;
  for (const ProfileStep& step : steps) {
    inside += step.seconds;
    is_fused |= step.shares.size() > 1;
  }
  std::string text = name + ": " + time_text(seconds) + " a call (median of " +
                     std::to_string(num_runs) + "), of which " + time_text(inside) + " in " +
                     std::to_string(steps.size()) + (steps.size() == 1 ? " step\n" : " steps\n");
  text += "machine: " + std::to_string(limits.num_threads) +
          (limits.num_threads == 1 ? " thread copies " : " threads copy ") +
          format("%.1f", limits.copy * 1e-9, " GB/s and reach ") +
          format("%.0f", limits.flops32 * 1e-9, " GFLOP/s in float32, ") +
          format("%.0f", limits.flops64 * 1e-9, " in float64\n\n");
  text += steps_table(*this);
  text += table_by(*this, ProfileBy::line, "line");
  text += table_by(*this, ProfileBy::scope, "scope");
  text += table_by(*this, ProfileBy::transforms, "transforms");
  if (is_fused)
    text +=
        "\nThe time of a fused step is shared among its equations in proportion to what each\n"
        "costs at the machine's limits; it was not measured for each.\n";
  return text;
}

std::string Profile::json() const {
  std::string text = "{\"name\":" + json_text(name) + ",\"seconds\":" + json_number(seconds) +
                     ",\"runs\":" + std::to_string(num_runs) +
                     ",\"machine\":" + limits_json(limits) + ",\n\"steps\":";
  text += json_list(steps, [](const ProfileStep& step) {
    return "\n{\"name\":" + json_text(step.name) + ",\"backend\":" + json_text(step.backend) +
           ",\"type\":" + json_text(step.type) + ",\"note\":" + json_text(step.note) +
           ",\"parent\":" + (step.parent < 0 ? "null" : std::to_string(step.parent)) +
           ",\"count\":" + json_number(step.count) + ",\"seconds\":" + json_number(step.seconds) +
           ",\"total_seconds\":" + json_number(step.total_seconds) +
           ",\"predicted_seconds\":" + json_number(step.predicted_seconds) +
           ",\"flops\":" + json_number(step.work.flops) +
           ",\"bytes\":" + json_number(step.work.bytes()) +
           ",\"of_limit\":" + json_number(step.limit) + ",\"equations\":" +
           json_list(step.shares,
                     [](const ProfileShare& share) {
                       return "{\"primitive\":" + json_text(share.primitive) +
                              ",\"seconds\":" + json_number(share.seconds) +
                              ",\"source\":" + source_json(share.source) + "}";
                     }) +
           "}";
  });
  return text + "}\n";
}

std::string Profile::trace() const {
  auto event = [](const std::string& what, double begin, double length, const std::string& args) {
    return "\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":" + json_text(what) +
           ",\"ts\":" + json_number(begin * 1e6) + ",\"dur\":" + json_number(length * 1e6) +
           ",\"args\":{" + args + "}}";
  };
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  text +=
      "\n{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":" + json_text(name) +
      "}},";
  double end = seconds;
  for (const ProfileEvent& item : events) end = std::max(end, item.begin + item.seconds);
  text += event(name, 0, end, "\"runs\":" + std::to_string(num_runs));
  for (const ProfileEvent& item : events) {
    const ProfileStep& step = steps[std::size_t(item.step)];
    const Source source = step.shares[0].source;
    text += "," + event(step.name, item.begin, item.seconds,
                        "\"backend\":" + json_text(step.backend) + ",\"makes\":" +
                            json_text(step.type) + ",\"line\":" + json_text(line_of(step)) +
                            ",\"scope\":" + json_text(source ? source->scope : "") +
                            ",\"transforms\":" + json_text(source ? source->transforms : ""));
  }
  return text + "\n]}\n";
}

std::string Profile::flame() const {
  StringTable strings;
  std::string parts = "[";
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (const ProfileShare& share : steps[i].shares) {
      const Source& source = share.source;
      auto add = [&](const std::string& text) { return "," + std::to_string(strings.add(text)); };
      parts += std::string(parts.size() > 1 ? "," : "") + json_number(share.seconds) + "," +
               std::to_string(i) + add(source ? source->scope : "") +
               add(source ? source->transforms : "") + add(source ? source->function : "") +
               add(source ? source.to_string() : "") + add(share.primitive);
    }
  parts += "]";
  const std::string rows = json_list(steps, [](const ProfileStep& step) {
    return "[" + json_text(step.name) + "," + std::to_string(step.parent) + "," +
           json_text(step.backend) + "," + json_text(step.type) + "]";
  });
  return "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
         html_text(name) + "</title>\n<style>\n" + style + "</style></head>\n<body>\n<header><h1>" +
         html_text(name) +
         "</h1><span class=\"facts\" id=\"facts\"></span><span class=\"choice\" id=\"by\" "
         "role=\"group\" aria-label=\"grouped by\"></span><input id=\"search\" type=\"search\" "
         "placeholder=\"search\" aria-label=\"search\"></header>\n<main id=\"flame\"></main>\n"
         "<footer id=\"foot\"></footer>\n<script type=\"application/json\" "
         "id=\"data\">{\"seconds\":" +
         json_number(seconds) + ",\"runs\":" + std::to_string(num_runs) + ",\"parts\":" + parts +
         ",\n\"steps\":" + rows + ",\n\"strings\":" + strings.json() + "}</script>\n<script>\n" +
         script + "</script>\n</body>\n</html>\n";
}

void Profile::write_trace(const std::string& path) const { write_file("profile", path, trace()); }
void Profile::write_flame(const std::string& path) const { write_file("profile", path, flame()); }

}  // namespace plait
