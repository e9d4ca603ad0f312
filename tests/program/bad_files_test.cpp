// Files that are not what save writes: truncated, flipped, packed to fill memories, with names that
// leave folders, with parts that do not fit each other. Each is refused with the place, or is what
// was saved.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/program/program.h>

#include <filesystem>
#include <fstream>

#include "../fuzz/targets.h"
#include "../problem.h"
#include "program/archive.h"

using namespace plait;

namespace {

// A file that is removed with it.
struct File {
  explicit File(const char* name)
      : path((std::filesystem::temp_directory_path() /
              ("plait_" + std::to_string(getpid()) + "_bad_" + name))
                 .string()) {}
  ~File() { std::filesystem::remove(path); }
  void write(const std::string& bytes) const {
    std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
  }
  std::string read() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string path;
};

const std::string manifest = R"({"format": 3, "plait": "0", "licence": "", "meta": {},
 "checksums": {}, "entries": [{"name": "f", "arguments": {"tuple": ["*"]}, "result": "*",
 "argument_names": [], "constants": [], "example": false}]})";
const std::string jaxpr =
    "{ lambda ; a:f32[3] . let\n    b:f32[3] = sin a  # f.py:3 in f\n  in (b,) }\n";

std::string replaced(std::string text, const std::string& old, const std::string& now) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), now);
}

// Of loading a file of these members.
std::string refusal(const std::string& manifest, const std::string& jaxpr,
                    const std::string& more = "", const LoadOptions& options = {}) {
  const File file("made.plait");
  file.write(fuzz::archive_of("=== manifest.json\n" + manifest + "\n=== entries/f.jaxpr\n" + jaxpr +
                              "\n" + more));
  return problem([&] { load(file.path, options); });
}
std::string manifest_refusal(const std::string& old, const std::string& now) {
  const std::string text = refusal(replaced(manifest, old, now), jaxpr);
  CHECK(text.find("manifest.json: ") != std::string::npos);
  return text.substr(std::min(text.size(), text.find("manifest.json: ") + 15));
}

bool has(const std::string& text, const std::string& part) {
  CAPTURE(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("damaged files are refused, or are what was saved") {
  const File file("whole.plait"), broken("broken.plait");
  const Array w = numpy::reshape(numpy::arange(12), {4, 3}) * 0.25;
  const Array x = numpy::ones({2, 4});
  auto f = [w](const Array& x) { return numpy::tanh(numpy::matmul(x, w)) + numpy::sum(w); };
  save(file.path, {{"f", traced(f, x)}}, {.meta = {{"key", "value"}}});
  const std::string bytes = file.read();
  const Buffer wanted = f(x).buffer().dense();
  for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 97) {
    broken.write(bytes.substr(0, size));
    CHECK(problem([&] { load(broken.path); }) != "");
  }
  unsigned random = 7;
  int refused = 0;
  for (int trial = 0; trial < 600; ++trial) {
    std::string flipped = bytes;
    random = random * 1664525u + 1013904223u;
    flipped[random % flipped.size()] ^= char(1 << (random >> 8) % 8);
    broken.write(flipped);
    const LoadOptions options{.verify = trial % 3 > 0, .map_memory = trial % 3 > 1};
    try {
      const Program program = load(broken.path, options);
      const Buffer got = program.entry<Array(Array)>("f")(x).buffer().dense();
      CHECK(std::memcmp(got.data(), wanted.data(), std::size_t(wanted.bytes())) == 0);
    } catch (const UserError&) {
      ++refused;
    }
  }
  CHECK(refused > 300);
  CHECK(has(problem([] { load("/nowhere.plait"); }), "cannot read"));
}

TEST_CASE("a changed constant of a mapped file is found by verify, and always where it is copied") {
  const File file("constant.plait");
  const Array w = numpy::arange(1000) * 0.5;
  auto f = [w](const Array& x) { return numpy::max(x * w); };
  save(file.path, {{"f", traced(f, numpy::ones({1000}))}}, {.test_vectors = false});
  std::string bytes = file.read();
  const double element = 3.5;  // the 8th
  const float single = 3.5f;
  std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&single), 4));
  if (at == std::string::npos)
    at = bytes.find(std::string(reinterpret_cast<const char*>(&element), 8));
  REQUIRE(at != std::string::npos);
  bytes[at + 1] ^= 1;
  file.write(bytes);
  CHECK(problem([&] { load(file.path); }) == "");
  for (const LoadOptions& options : {LoadOptions{.verify = true}, LoadOptions{.map_memory = false}})
    CHECK(has(problem([&] { load(file.path, options); }), "the constant c0 is damaged"));
}

TEST_CASE("manifests that are none are refused with what is wrong") {
  CHECK(refusal(manifest, jaxpr) == "");
  CHECK(has(manifest_refusal("\"format\": 3", "\"format\": 4"),
            "the file has format 4, and this plait reads formats up to 3"));
  CHECK(has(manifest_refusal("\"format\": 3", "\"format\": 0"), "the file has format 0"));
  CHECK(has(manifest_refusal("\"format\": 3", "\"format\": \"2\""), "it says no format"));
  CHECK(has(manifest_refusal("\"checksums\": {}, ", ""), "it has no proper 'checksums'"));
  CHECK(has(manifest_refusal("\"meta\": {}", "\"meta\": {\"a\": 1}"), "meta 'a' is no text"));
  CHECK(has(manifest_refusal("{\"tuple\": [\"*\"]}", "\"*\""), "are no tuple"));
  CHECK(has(manifest_refusal("[\"*\"]", "[7]"), "a tree has a part of no known kind"));
  CHECK(has(manifest_refusal("\"*\"]", "{\"dict\": [\"*\", \"*\"], \"keys\": [\"a\", \"a\"]}]"),
            "a tree has a key twice"));
  CHECK(has(manifest_refusal("\"*\"]", "{\"dict\": [\"*\", \"*\"], \"keys\": [\"b\", \"a\"]}]"),
            "keys in another order"));
  CHECK(has(manifest_refusal("\"*\"]", std::string(5000, '[') + "]"), "nested too deeply"));
  std::string leaves;
  for (int i = 0; i < 1'100'000; ++i) leaves += "null,";
  CHECK(has(manifest_refusal("\"*\"]", leaves + "\"*\"]"), "too many parts"));
  const std::string entry = manifest.substr(manifest.find("{\"name\""));
  CHECK(has(manifest_refusal("\"entries\": [",
                             "\"entries\": [" + entry.substr(0, entry.size() - 2) + ","),
            "there are two entries 'f'"));
  for (const char* name : {"../f", "/f", ".f", "a/b", ""})
    CHECK(has(
        refusal(replaced(manifest, "\"name\": \"f\"", "\"name\": \"" + std::string(name) + "\""),
                jaxpr),
        "is no name of a member"));
  CHECK(has(refusal(replaced(manifest, "\"name\": \"f\"", "\"name\": \"g\""), jaxpr),
            "the member entries/g.jaxpr is missing"));
  CHECK(has(refusal("[]", jaxpr), "it is no JSON object"));
  CHECK(has(refusal("{\"format\": 2", jaxpr), "it is no JSON object"));
}

TEST_CASE("programs that do not fit their manifest are refused with the place in the text") {
  CHECK(has(refusal(manifest, replaced(jaxpr, "sin", "frob")),
            "entries/f.jaxpr: parse: line 2, column 16: expected a primitive that is defined"));
  CHECK(has(refusal(manifest, replaced(jaxpr, "  in",
                                       "    c:f32[3] = sine b\n    d:f32[3] = frob c\n"
                                       "    e:f32[3] = sine d\n  in")),
            "found `sine b`; nor are defined: frob"));
  CHECK(has(refusal(manifest, replaced(jaxpr, "a:f32[3] .", "a:f32[3] z:f32[] .")),
            "entry f has a jaxpr of other inputs or outputs than it says"));
  CHECK(has(refusal(manifest, "{ lambda ; a:stack[f32[3]] . let in (a,) }"),
            "inputs or outputs are no arrays"));
  CHECK(has(refusal(manifest, "{ lambda ; a:f32[9223372036854775807] . let in (a,) }"),
            "entries/f.jaxpr: parse: line 1, column 18: "));
  CHECK(has(refusal(manifest, replaced(jaxpr, "f.py", "\xff\xfe")),
            "the member entries/f.jaxpr is no text"));
  CHECK(has(refusal(replaced(manifest, "\"example\": false", "\"example\": true"), jaxpr),
            "the member examples/f.safetensors is missing"));
}

TEST_CASE("arrays that leave their bytes are refused") {
  const auto with = [&](const std::string& header, const std::string& data) {
    std::string bytes(8, '\0');
    bytes[0] = char(header.size() & 255), bytes[1] = char(header.size() >> 8);
    return refusal(replaced(manifest, "\"checksums\": {}", "\"checksums\": {\"w\": \"\"}"), jaxpr,
                   "=== constants.safetensors\n" + bytes + header + data);
  };
  const std::string good = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  CHECK(with(good, "12345678") == "");
  CHECK(has(with(good, "1234567"), "data_offsets that do not fit"));
  CHECK(has(with(good, "123456789"), "its data has 9 bytes, and its arrays 8"));
  CHECK(has(with(replaced(good, "[2]", "[3]"), "12345678"), "array 'w': has data_offsets"));
  CHECK(has(with(replaced(good, "[2]", "[4611686018427387905,4]"), "12345678"),
            "is no shape of an array"));
  CHECK(has(with(replaced(good, "[2]", "[-2]"), "12345678"), "is no shape of an array"));
  CHECK(has(with(replaced(good, "[0,8]", "[18446744073709551615,7]"), "12345678"), "data_offsets"));
  CHECK(
      has(with(replaced(good, "F32", "F31"), "12345678"), "the dtype 'F31', which plait has not"));
  CHECK(has(with(replaced(good, "}}", "},\"w\":{}}"), "12345678"), "the name 'w' occurs twice"));
  CHECK(has(with(replaced(good, "}}",
                          "},\"v\":{\"dtype\":\"F32\",\"shape\":[1],"
                          "\"data_offsets\":[4,8]}}"),
                 "12345678"),
            "a gap or an overlap at byte 4"));
  CHECK(
      has(refusal(manifest, jaxpr, "=== constants.safetensors\n\xff\xff\xff\xff\xff\xff\xff\xff{}"),
          "its header of 18446744073709551615 bytes does not fit"));
}

TEST_CASE(
    "members that unpack to far more than the file holds are refused before they are unpacked") {
  const File file("bomb.plait");
  {
    ArchiveWriter archive(file.path);
    archive.add_text("manifest.json", manifest);
    archive.add_text("entries/f.jaxpr", std::string(150'000'000, ' '));
    archive.commit();
  }
  CHECK(std::filesystem::file_size(file.path) < 200'000);
  CHECK(has(problem([&] { load(file.path); }), "up to entries/f.jaxpr unpack to 150000"));
  {
    ArchiveWriter archive(file.path);
    archive.add_text("manifest.json", std::string(80'000'000, ' '));
    archive.commit();
  }
  CHECK(has(problem([&] { load(file.path); }), "manifest.json has 80000000 bytes"));
}
