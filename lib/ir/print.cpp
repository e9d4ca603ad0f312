// The text form of a jaxpr; parse.cpp reads it back exactly. See jaxpr.h for the form.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/jaxpr.h>

#include <charconv>
#include <unordered_map>

#include "ir/equation_text.h"
#include "ir/source_comment.h"

namespace plait {

// a, b, ..., z, aa, ab, ... without the keywords of the text form.
std::string var_name(int id) {
  // The indices of "in" and "let", the only keywords that a long program would reach.
  constexpr int in_place = 9 * 26 + 14 - 1, let_place = 12 * 676 + 5 * 26 + 20 - 1;
  if (id >= in_place) ++id;
  if (id >= let_place) ++id;
  std::string name;
  for (++id; id > 0; id = (id - 1) / 26) name.insert(name.begin(), char('a' + (id - 1) % 26));
  return name;
}

namespace {

class Printer {
 public:
  Printer(ShowSources sources, std::string& out) : sources_(sources), out_(out) {}

  // indent starts each of its lines after the first.
  void write(const Jaxpr& jaxpr, const std::string& indent) {
    write_head(*jaxpr);
    for (const Equation& equation : jaxpr->equations) {
      ((out_ += "\n") += indent) += "    ";
      write(*jaxpr, equation, indent);
    }
    if (jaxpr->equations.empty())
      out_ += " in (";
    else
      ((out_ += "\n") += indent) += "  in (";
    for (std::size_t i = 0; i < jaxpr->outputs.size(); ++i) {
      if (i) out_ += ", ";
      write(jaxpr->outputs[i]);
    }
    out_ += jaxpr->outputs.size() == 1 ? ",) }" : ") }";
  }

  void write(const JaxprData& jaxpr, const Equation& equation, const std::string& indent) {
    for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
      if (i) out_ += " ";
      write(equation.outputs[i], jaxpr.aval(equation.outputs[i]));
    }
    (out_ += " = ") += equation.primitive->name();
    if (!equation.params.entries().empty()) {
      out_ += "[";
      write(equation.params, indent + "      ");
      out_ += "]";
    }
    for (const Atom& atom : equation.inputs) {
      out_ += " ";
      write(atom);
    }
    if (sources_ == ShowSources::yes && equation.source)
      (out_ += "  # ") += comment(equation.source);
  }

  void write(const Params& params, const std::string& indent) {
    bool is_first = true;
    for (const auto& [name, value] : params.entries()) {
      if (!is_first) out_ += ", ";
      is_first = false;
      (out_ += name) += "=";
      write(value, indent);
    }
  }

 private:
  void write_head(const JaxprData& jaxpr) {
    out_ += "{ lambda";
    for (Dim size : jaxpr.sizes) (out_ += " ") += size.to_string();
    out_ += " ;";
    for (int i = 0; i < jaxpr.num_binders; ++i) {
      out_ += " ";
      write(Var{i}, jaxpr.avals[std::size_t(i)]);
    }
    const char* before = " where ";
    for (const Constraint& constraint : jaxpr.constraints) {
      out_ += before + constraint.left.to_string() + "<=" + constraint.right.to_string();
      before = ", ";
    }
    out_ += " . let";
  }

  void write(Var var, const Aval& aval) { ((out_ += var_name(var.id)) += ":") += aval.to_string(); }
  void write(const Atom& atom) {
    out_ += atom.is_var() ? var_name(atom.var().id) : atom.literal().to_string();
  }

  void write(const ParamValue& value, const std::string& indent) {
    if (const Jaxpr* jaxpr = std::get_if<Jaxpr>(&value)) {
      write(*jaxpr, indent);
    } else if (const auto* jaxprs = std::get_if<std::vector<Jaxpr>>(&value)) {
      out_ += "[";
      for (std::size_t i = 0; i < jaxprs->size(); ++i) {
        if (i) out_ += ", ";
        write((*jaxprs)[i], indent);
      }
      out_ += "]";
    } else if (const bool* flag = std::get_if<bool>(&value)) {
      out_ += *flag ? "true" : "false";
    } else if (const double* number = std::get_if<double>(&value)) {
      write(*number);
    } else if (const DType* dtype = std::get_if<DType>(&value)) {
      out_ += short_name_of(*dtype);
    } else if (const Dim* dim = std::get_if<Dim>(&value)) {
      out_ += dim->to_string();
    } else if (const Shape* shape = std::get_if<Shape>(&value)) {
      ((out_ += "(") += shape->to_string()) += ")";
    } else if (const std::string* text = std::get_if<std::string>(&value)) {
      write_quoted(*text);
    } else {
      const Callable& callable = std::get<Callable>(value);
      out_ += "@" + callable.name() + "#" + std::to_string(callable.number());
    }
  }
  void write(double number) {
    char text[40];
    const auto [end, error] = std::to_chars(text, text + sizeof text, number);
    const std::string_view written(text, std::size_t(end - text));
    out_ += written;
    if (written.find_first_of(".en") == std::string_view::npos) out_ += ".0";
  }
  void write_quoted(const std::string& text) {
    out_ += '\'';
    for (char c : text) {
      if (c == '\'' || c == '\\' || c == '\n') out_ += '\\';
      out_ += c == '\n' ? 'n' : c;
    }
    out_ += '\'';
  }

  // Reading the text of a line opens its file, and many equations share a line.
  const std::string& comment(Source source) {
    std::string& known = comments_[&*source];
    if (known.empty()) known = comment_of(source);
    return known;
  }

  const ShowSources sources_;
  std::string& out_;
  std::unordered_map<const Source::Line*, std::string> comments_;
};

}  // namespace

std::string text_of(const JaxprData& jaxpr, const Equation& equation) {
  std::string text;
  Printer(ShowSources::no, text).write(jaxpr, equation, "");
  return text;
}

std::string print(const Jaxpr& jaxpr, ShowSources sources) {
  std::string out;
  Printer(sources, out).write(jaxpr, "");
  return out;
}

std::string Params::to_string() const {
  std::string out;
  Printer(ShowSources::no, out).write(*this, "");
  return out;
}

}  // namespace plait
