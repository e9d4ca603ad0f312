// The C interface of a compiled object: the header that users include, and the code behind it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include <plait/base/stored.h>

#include "tool/deploy.h"

namespace plait::tool {
namespace {

const char* c_type(DType dtype) {
  switch (dtype) {
    case DType::int8:
    case DType::int4:
      return "int8_t";
    case DType::int16:
      return "int16_t";
    case DType::int32:
      return "int32_t";
    case DType::int64:
      return "int64_t";
    case DType::bool_:
    case DType::uint8:
    case DType::uint4:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return "uint8_t";
    case DType::uint16:
    case DType::float16:
    case DType::bfloat16:
      return "uint16_t";
    case DType::uint32:
      return "uint32_t";
    case DType::uint64:
    case DType::key:
      return "uint64_t";
    case DType::float32:
    case DType::complex64:
      return "float";
    case DType::float64:
    case DType::complex128:
      return "double";
  }
  return "void";
}

// What the C type does not express.
const char* note_of(DType dtype) {
  if (is_complex(dtype)) return ", pairs of real and imaginary part";
  if (dtype == DType::bool_) return ", 0 or 1";
  if (dtype == DType::key) return ", both words";
  return is_float8(dtype) || dtype == DType::float16 || dtype == DType::bfloat16 ? ", as bits" : "";
}

std::string upper(std::string text) {
  for (char& c : text) c = char(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// Letters, digits and single underscores; not a keyword of C or C++, and not among the taken names.
std::string identifier(const std::string& text, std::set<std::string>& taken) {
  static const std::set<std::string> words = {
      "auto",     "break",  "case",     "catch",  "char",      "class",    "const",    "continue",
      "default",  "delete", "do",       "double", "else",      "enum",     "extern",   "float",
      "for",      "goto",   "if",       "inline", "int",       "long",     "new",      "operator",
      "private",  "public", "register", "return", "short",     "signed",   "sizeof",   "static",
      "struct",   "switch", "template", "this",   "throw",     "try",      "typedef",  "union",
      "unsigned", "using",  "virtual",  "void",   "while",     "session",  "inputs",   "outputs",
      "sizes",    "bool",   "true",     "false",  "namespace", "restrict", "volatile", "and",
      "or",       "not",    "xor",      "friend", "export",    "explicit", "mutable"};
  std::string name;
  for (unsigned char c : text) {
    if (std::isalnum(c) && c < 128)
      name += char(c);
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "x" + name;
  if (words.count(name)) name += "_";
  std::string unique = name;
  for (int number = 2; !taken.insert(unique).second; ++number)
    unique = name + "_" + std::to_string(number);
  return unique;
}

// The parameters of an entry's function in C.
struct Parameters {
  explicit Parameters(const DeployedEntry& deployed) {
    const Entry& entry = deployed.entry;
    std::set<std::string> taken;
    for (std::size_t i = 0; i < deployed.bounds.size(); ++i)
      sizes.push_back(identifier(deployed.jaxpr->sizes[i].to_string(), taken));
    for (std::size_t i = 0; i < entry.inputs().size(); ++i) {
      inputs.push_back(identifier(input_name(entry, int(i)), taken));
      declared.push_back("const " + pointer_to(entry.inputs()[i], inputs.back()));
    }
    const std::vector<Aval> avals = deployed.jaxpr->output_avals();
    for (std::size_t i = 0; i < avals.size(); ++i) {
      outputs.push_back(identifier(output_name(entry, int(i)), taken));
      declared.push_back(pointer_to(avals[i], outputs.back()));
    }
  }
  static std::string pointer_to(const Aval& aval, const std::string& name) {
    return std::string(c_type(aval.dtype)) + " *" + name;
  }
  std::vector<std::string> sizes, inputs, outputs, declared;
};

std::string signature(const std::string& name, const DeployedEntry& deployed) {
  const Parameters parameters(deployed);
  std::string text = "int " + name + "_" + deployed.name + "(" + name + "_session *session";
  for (const std::string& size : parameters.sizes) text += ", int64_t " + size;
  for (const std::string& parameter : parameters.declared) text += ",\n    " + parameter;
  return text + ")";
}

std::string prepare_signature(const std::string& name, const DeployedEntry& deployed) {
  std::string text = "int " + name + "_prepare_" + deployed.name + "(" + name + "_session *session";
  for (const std::string& size : Parameters(deployed).sizes) text += ", int64_t " + size;
  return text + ")";
}

std::string call_signature(const std::string& name) {
  return "int " + name + "_call(" + name +
         "_session *session, int entry, const int64_t *sizes,\n    const void *const *inputs, "
         "void *const *outputs)";
}

// "   x         float32 [n, 64]"
std::string line_of(const std::string& name, const Aval& aval) {
  std::string shape;
  for (Dim dim : aval.shape) shape += (shape.empty() ? "" : ", ") + dim.to_string();
  std::string padded = name;
  padded.resize(std::max<std::size_t>(padded.size(), 20), ' ');
  return " *   " + padded + " " + std::string(name_of(aval.dtype)) + " [" + shape + "]" +
         note_of(aval.dtype) + "\n";
}

std::string describe(const std::string& name, const DeployedEntry& deployed) {
  const Entry& entry = deployed.entry;
  const Parameters parameters(deployed);
  std::string text = "/* " + entry.name() + "\n";
  if (!deployed.bounds.empty()) text += " * sizes\n";
  for (std::size_t i = 0; i < deployed.bounds.size(); ++i)
    text += " *   " + parameters.sizes[i] + ", 0 to " + std::to_string(deployed.bounds[i]) + "\n";
  text += " * read\n";
  for (std::size_t i = 0; i < parameters.inputs.size(); ++i)
    text += line_of(parameters.inputs[i], deployed.jaxpr->avals[i]);
  text += " * written\n";
  const std::vector<Aval> avals = deployed.jaxpr->output_avals();
  for (std::size_t i = 0; i < avals.size(); ++i) text += line_of(parameters.outputs[i], avals[i]);
  text += " */\n" + signature(name, deployed) + ";\n";
  if (deployed.bounds.empty()) return text + "\n";
  return text +
         "/* Makes the session ready for these sizes, so that the next calls with them only\n"
         " * compute. A session is ready for the 16 combinations that were used last. */\n" +
         prepare_signature(name, deployed) + ";\n\n";
}

constexpr const char* opening = R"(
#ifdef __cplusplus
extern "C" {
#endif

/* Every function that returns int returns one of these. */
enum {
  $NAME_OK = 0,
  $NAME_BAD_ARGUMENT = 1,  /* a null pointer, buffers that overlap, a size beyond its bound */
  $NAME_OUT_OF_MEMORY = 2,
  $NAME_REFUSED = 3,       /* a condition of the program does not hold: an index, a check */
  $NAME_BROKEN = 4         /* an error of plait: please report it */
};

/* What a thread computes with: programs that are ready, and their memory. Threads may work at the
 * same time, each with a session of its own. */
typedef struct $name_session $name_session;

int $name_open($name_session **session);
void $name_close($name_session *session); /* a null pointer is fine */

/* What went wrong in the last call on this thread that did not return $NAME_OK. */
const char *$name_message(void);

/* Buffers are the caller's: dense, in row-major order, aligned as their element type asks for. What
 * is written may not overlap anything else. After open, and prepare where sizes are arguments, calls
 * ask for no memory. Of programs with loops, sorts or factorizations the first calls may: what they
 * got is kept until the last session is closed. */

)";

constexpr const char* closing =
    R"(/* Any of them by its number, for callers that cannot name functions: sizes, inputs and outputs in
 * the order above. */
)";

std::string filled(std::string text, const std::string& name) {
  for (const auto& [mark, value] : {std::pair<std::string, std::string>("$NAME", upper(name)),
                                    std::pair<std::string, std::string>("$name", name)})
    for (std::size_t at; (at = text.find(mark)) != std::string::npos;)
      text.replace(at, mark.size(), value);
  return text;
}

std::string list_of(const std::vector<std::string>& names, const std::string& otherwise) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return "{" + (text.empty() ? otherwise : text) + "}";
}

}  // namespace

void name_entries(std::span<DeployedEntry> entries) {
  std::set<std::string> taken = {"open", "close", "message", "call"};
  for (DeployedEntry& deployed : entries) deployed.name = identifier(deployed.entry.name(), taken);
  // An argument called prepare_x beside an x with sizes would declare prepare_x twice.
  for (DeployedEntry& deployed : entries)
    if (deployed.name.starts_with("prepare_"))
      deployed.name = identifier("run_" + deployed.name, taken);
}

std::string header_text(const std::string& name, const std::string& from,
                        std::span<const DeployedEntry> entries) {
  std::string text = "/* " + name + ": made by plait compile " PLAIT_VERSION " from " + from +
                     ". Changes are lost when it is made again. */\n#ifndef " + upper(name) +
                     "_H\n#define " + upper(name) + "_H\n\n#include <stdint.h>\n" +
                     filled(opening, name);
  for (const DeployedEntry& deployed : entries) text += describe(name, deployed);
  text += closing;
  text += "enum {";
  for (std::size_t i = 0; i < entries.size(); ++i)
    text += (i ? ", " : " ") + upper(name) + "_ENTRY_" + upper(entries[i].name) + " = " +
            std::to_string(i);
  return text + " };\n" + call_signature(name) + ";\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

std::string source_text(const std::string& name, std::span<const DeployedEntry> entries,
                        Kernels kernels) {
  std::vector<std::string> data = {"bundle"};
  if (kernels == Kernels::embedded) data.push_back("kernels");
  std::string text = "#include <stddef.h>\n#include \"" + name + ".h\"\n";
  for (const std::string& file : data) {
    const std::string symbol = "plait_" + file;
    text += "__asm__(\".section .rodata\\n.balign 64\\n" + symbol + ":\\n.incbin \\\"" + file +
            "\\\"\\n" + symbol + "_end:\\n.previous\\n\");\n";
    for (const char* end : {"", "_end"})
      text += "extern const char " + symbol + end + "[] __attribute__((visibility(\"hidden\")));\n";
  }
  text += filled(R"(void plait_embed_kernels(const char *, size_t);
int plait_deployed_open(const void *, size_t, void (*)(const char *, size_t), const char *, size_t,
    void **);
int plait_deployed_call(void *, int, const int64_t *, const void *const *, void *const *);
void plait_deployed_close(void *);
const char *plait_deployed_message(void);
void $name_close($name_session *session) { plait_deployed_close(session); }
const char *$name_message(void) { return plait_deployed_message(); }
int $name_open($name_session **session) {
)",
                 name);
  text += "  return plait_deployed_open(plait_bundle, (size_t)(plait_bundle_end - plait_bundle), ";
  text += kernels == Kernels::embedded ? "plait_embed_kernels,\n      plait_kernels, "
                                         "(size_t)(plait_kernels_end - plait_kernels), "
                                       : "0, 0, 0, ";
  text += "(void **)session);\n}\n";
  text += call_signature(name) +
          " {\n  return plait_deployed_call(session, entry, sizes, inputs, outputs);\n}\n";
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Parameters parameters(entries[i]);
    const std::string number = std::to_string(i);
    const std::string sizes =
        "  const int64_t sizes_[] = " + list_of(parameters.sizes, "0") + ";\n";
    text += signature(name, entries[i]) + " {\n" + sizes +
            "  const void *const inputs_[] = " + list_of(parameters.inputs, "0") +
            ";\n  void *const outputs_[] = " + list_of(parameters.outputs, "0") +
            ";\n  return plait_deployed_call(session, " + number +
            ", sizes_, inputs_, outputs_);\n}\n";
    if (!parameters.sizes.empty())
      text += prepare_signature(name, entries[i]) + " {\n" + sizes +
              "  return plait_deployed_call(session, " + number + ", sizes_, 0, 0);\n}\n";
  }
  return text;
}

}  // namespace plait::tool
