// Pictures of programs: one self-contained page, or an SVG, with boxes by named scope that fold.
//
//   plait::draw(plait::make_jaxpr(step, state, batch).jaxpr, "step.html");
//
// The page needs no network: it searches, folds, colours by kind, bytes, time or backend, and shows
// an equation with its line when it is clicked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

struct Profile;

enum class DrawColor { kind, bytes, time, backend };

struct DrawOptions {
  std::string title = "program";
  // What inputs and outputs are called; those without a name go by their number.
  std::vector<std::string> input_names = {}, output_names = {};
  DrawColor color = DrawColor::kind;
  // Measured before (profile.h): what time and backend are taken from, which need it.
  const Profile* profile = nullptr;
};

// The page, and the picture of what it shows at first, as text. ValueError for colours that need a
// profile and have none.
std::string draw_html(const Jaxpr& jaxpr, const DrawOptions& options = {});
std::string draw_svg(const Jaxpr& jaxpr, const DrawOptions& options = {});
// Writes a page, or an SVG where the path ends in ".svg". FileError where it cannot be written.
void draw(const Jaxpr& jaxpr, const std::string& path, const DrawOptions& options = {});

}  // namespace plait
