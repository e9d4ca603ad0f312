// Pictures of programs: one self-contained page, or an SVG, whose boxes are named scopes that fold.
//
//   plait::draw(plait::make_jaxpr(step, state, batch).jaxpr, "step.html");
//
// The page needs no network. It searches, folds, colours by kind, bytes, time or backend, and shows
// an equation with its source line on a click.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

struct Profile;

enum class DrawColor { kind, bytes, time, backend };

struct DrawOptions {
  std::string title = "program";
  // Names of inputs and outputs; those without a name are numbered.
  std::vector<std::string> input_names = {}, output_names = {};
  DrawColor color = DrawColor::kind;
  // A profile (profile.h), which colouring by time or backend needs.
  const Profile* profile = nullptr;
};

// The page, and its initial picture, as text. ValueError for colours that need a profile when there
// is none.
std::string draw_html(const Jaxpr& jaxpr, const DrawOptions& options = {});
std::string draw_svg(const Jaxpr& jaxpr, const DrawOptions& options = {});
// Writes a page, or an SVG where the path ends in ".svg". FileError where it cannot be written.
void draw(const Jaxpr& jaxpr, const std::string& path, const DrawOptions& options = {});

}  // namespace plait
