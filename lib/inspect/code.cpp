// A program as code: a function with a line for each equation, after those of the bodies in it. See
// inspect.h.
//
// A body is written once, however often it occurs, and becomes a jaxpr through `staged` (staged.h),
// which fixes its inputs and sizes; so does a program with named sizes. An equation without a
// function of plait::lax is bound by name. Source lines and scopes are not part of a program: where
// the scope changes, a comment names it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "inspect/code.h"

#include <plait/rules/inline.h>

namespace plait {
namespace {

std::string identifier(std::string_view text) {
  std::string name;
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "f_" + name;
  return name;
}

// The text between "lambda" and "let": sizes, inputs with their types, constraints.
std::string header_of(const Jaxpr& jaxpr) {
  Builder builder;
  for (const Aval& aval : jaxpr->input_avals()) builder.add_binder(aval);
  for (const Constraint& constraint : jaxpr->constraints) builder.add_constraint(constraint);
  const std::string text = print(builder.close({}, jaxpr->sizes));
  const std::size_t begin = std::string_view("{ lambda ").size();
  return text.substr(begin, text.rfind(" . let") - begin);
}

class ProgramWriter {
 public:
  ProgramWriter(const Jaxpr& jaxpr, Language language, const std::string& name)
      : syntax_(language) {
    taken_.emplace(identifier(name), 1);
    const std::string own = function_of(jaxpr, identifier(name), Place::outermost);
    if (syntax_.is_python()) {
      code_.text = "import plait\nfrom plait import lax\n";
    } else {
      code_.text = "#include <plait/plait.h>\n\n#include <vector>\n";
    }
    for (const auto& [text, callable] : code_.callables)
      code_.text += comment("`" + text + "` is the function `" + callable.name() +
                            "` of the process that wrote this: define it before");
    code_.text += text_ + own;
  }
  Code take() { return std::move(code_); }

 private:
  enum class Place { outermost, body };

  std::string comment(const std::string& text) const {
    return (syntax_.is_python() ? "# " : "// ") + text + "\n";
  }
  std::string unique(const std::string& name) {
    const int count = ++taken_[name];
    return count == 1 ? name : unique(name + "_" + std::to_string(count));
  }

  // The name of a body, which is written on its first use.
  std::string body_name(const Jaxpr& body, const std::string& wanted) {
    std::vector<std::pair<Jaxpr, std::string>>& same = bodies_[body.hash()];
    for (const auto& [known, name] : same)
      if (known == body) return name;
    const std::string name = unique(wanted);
    bodies_[body.hash()].emplace_back(body, name);
    text_ += function_of(body, name, Place::body);  // nested bodies are written before it
    return name;
  }

  std::string callable_name(const Callable& callable) {
    const std::string name = identifier(callable.name()) + "_" + std::to_string(callable.number());
    const auto same = [&](const auto& entry) { return entry.second == callable; };
    if (std::none_of(code_.callables.begin(), code_.callables.end(), same))
      code_.callables.emplace_back(name, callable);
    return name;
  }

  std::string param_text(const std::string& name, const ParamValue& value,
                         const std::string& owner) {
    return std::visit(
        [&](const auto& v) -> std::string {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, bool>)
            return syntax_.flag(v);
          else if constexpr (std::is_same_v<T, Dim>)
            return syntax_.is_python() ? syntax_.dim(v) : "plait::Dim(" + syntax_.dim(v) + ")";
          else if constexpr (std::is_same_v<T, Shape>)
            return syntax_.shape(v);
          else if constexpr (std::is_same_v<T, double>)
            return syntax_.real(v);
          else if constexpr (std::is_same_v<T, DType>)
            return syntax_.dtype(v);
          else if constexpr (std::is_same_v<T, std::string>)
            return syntax_.is_python() ? syntax_.quoted(v)
                                       : "std::string(" + syntax_.quoted(v) + ")";
          else if constexpr (std::is_same_v<T, Jaxpr>)
            return body_name(v, identifier(owner + "_" + name));
          else if constexpr (std::is_same_v<T, Callable>)
            return callable_name(v);
          else {
            std::vector<std::string> names;
            for (const Jaxpr& body : v)
              names.push_back(body_name(body, identifier(owner + "_" + name)));
            return (syntax_.is_python() ? "" : "std::vector<plait::Jaxpr>") + syntax_.list(names);
          }
        },
        value);
  }

  // A call of bind with the name of the primitive.
  std::string bind_call(const Equation& equation) {
    const std::string primitive(equation.primitive->name());
    const Inline::Rule* inlining = Inline::table().find(*equation.primitive);
    const ParamValue* named = equation.params.find(inlining ? inlining->title : "name");
    const std::string* owner = named ? std::get_if<std::string>(named) : nullptr;
    std::vector<std::string> arguments, operands, params;
    for (const Atom& atom : equation.inputs) operands.push_back(syntax_.atom(atom));
    for (const auto& [name, value] : equation.params.entries()) {
      const std::string text = param_text(name, value, owner ? *owner : primitive);
      params.push_back(syntax_.is_python() ? name + "=" + text
                                           : "{" + syntax_.quoted(name) + ", " + text + "}");
    }
    arguments.push_back(syntax_.quoted(primitive));
    if (syntax_.is_python()) {
      arguments.insert(arguments.end(), operands.begin(), operands.end());
      arguments.insert(arguments.end(), params.begin(), params.end());
      return "plait.bind(" + joined(arguments) + ")";
    }
    arguments.push_back("plait::Arrays{" + joined(operands) + "}");
    if (!params.empty()) arguments.push_back("plait::Params{" + joined(params) + "}");
    return "plait::bind(" + joined(arguments) + ")";
  }

  std::string line_of(const JaxprData& jaxpr, const Equation& equation) {
    const std::optional<std::string> lax = lax_call(jaxpr, equation, syntax_);
    const std::string call = lax ? *lax : bind_call(equation);
    std::vector<std::string> names, types;
    for (const Var& var : equation.outputs) {
      names.push_back(syntax_.name(var));
      types.push_back(jaxpr.aval(var).to_string());
    }
    const std::string type = types.empty() ? "" : "  " + comment(joined(types));
    const std::string end = type.empty() ? "\n" : type;
    if (syntax_.is_python())
      return "    " + (names.empty() ? "" : joined(names) + " = ") + call + end;
    if (names.empty()) return "  " + call + ";" + end;
    if (names.size() == 1) return "  const plait::Array " + names[0] + " = " + call + ";" + end;
    std::string text = "  const plait::Arrays all_" + names[0] + " = " + call + ";" + end;
    for (std::size_t i = 0; i < names.size(); ++i)
      text += "  [[maybe_unused]] const plait::Array& " + names[i] + " = all_" + names[0] + "[" +
              std::to_string(i) + "];\n";
    return text;
  }

  std::string lines_of(const JaxprData& jaxpr) {
    std::string text, scope;
    for (const Equation& equation : jaxpr.equations) {
      const std::string now = equation.source ? equation.source->scope : "";
      if (now != scope)
        text += (syntax_.is_python() ? "    " : "  ") + comment(now.empty() ? "in no scope" : now);
      scope = now;
      text += line_of(jaxpr, equation);
    }
    return text;
  }

  std::string function_of(const Jaxpr& jaxpr, const std::string& name, Place place) {
    const bool is_staged = place == Place::body || !jaxpr->sizes.empty();
    const std::string lines = lines_of(*jaxpr);  // first, because it names bodies
    std::vector<std::string> sizes, inputs, types, outputs;
    for (const Dim size : jaxpr->sizes) sizes.push_back(syntax_.size_name(size));
    for (int i = 0; i < jaxpr->num_binders; ++i) {
      inputs.push_back(syntax_.name(Var{i}));
      types.push_back(jaxpr->avals[std::size_t(i)].to_string());
    }
    for (const Atom& atom : jaxpr->outputs) outputs.push_back(syntax_.atom(atom));
    if (syntax_.is_python()) {
      std::vector<std::string> parameters = sizes;
      parameters.insert(parameters.end(), inputs.begin(), inputs.end());
      const std::string header =
          is_staged ? "@plait.staged(" + syntax_.quoted(header_of(jaxpr)) + ")\n" : "";
      return "\n\n" + header + "def " + name + "(" + joined(parameters) +
             "):" + (is_staged ? "\n" : "  # " + joined(types) + "\n") + lines + "    return " +
             (outputs.empty() ? "()" : joined(outputs)) + "\n";
    }
    return is_staged ? cpp_staged(jaxpr, name, sizes, inputs, outputs, lines)
                     : cpp_function(name, inputs, types, outputs, lines);
  }

  static std::string cpp_staged(const Jaxpr& jaxpr, const std::string& name,
                                const std::vector<std::string>& sizes,
                                const std::vector<std::string>& inputs,
                                const std::vector<std::string>& outputs, const std::string& lines) {
    std::string text = "\nstatic const plait::Jaxpr " + name + " = plait::staged(\"" +
                       header_of(jaxpr) +
                       "\",\n    [](auto sizes, auto inputs) -> plait::Arrays {\n";
    text += "  (void)sizes, (void)inputs;\n";
    for (std::size_t i = 0; i < sizes.size(); ++i)
      text += "  [[maybe_unused]] const plait::Dim " + sizes[i] + " = sizes[" + std::to_string(i) +
              "];\n";
    for (std::size_t i = 0; i < inputs.size(); ++i)
      text += "  [[maybe_unused]] const plait::Array& " + inputs[i] + " = inputs[" +
              std::to_string(i) + "];\n";
    return text + lines + "  return {" + joined(outputs) + "};\n});\n";
  }
  static std::string cpp_function(const std::string& name, const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& types,
                                  const std::vector<std::string>& outputs,
                                  const std::string& lines) {
    std::vector<std::string> parameters;
    for (const std::string& input : inputs) parameters.push_back("const plait::Array& " + input);
    const bool one = outputs.size() == 1;
    return "\n// " + joined(types) + "\n" + (one ? "plait::Array " : "plait::Arrays ") + name +
           "(" + joined(parameters) + ") {\n" + lines + "  return " +
           (one ? outputs[0] : "{" + joined(outputs) + "}") + ";\n}\n";
  }

  CodeSyntax syntax_;
  Code code_;
  std::string text_;  // bodies
  std::unordered_map<std::string, int> taken_;
  std::unordered_map<std::size_t, std::vector<std::pair<Jaxpr, std::string>>> bodies_;
};

}  // namespace

Code code(const Jaxpr& jaxpr, Language language, std::string name) {
  return ProgramWriter(jaxpr, language, name).take();
}

}  // namespace plait
