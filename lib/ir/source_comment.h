// The lines of users' code in the text of a program: the comment behind an equation, which print
// writes and parse reads back.
//
//   train.py:42 in loss, scope encoder/attention, under transpose(jvp):  y = x @ w
//
// Of the file's path only the last component is written: a program that is given away does not tell
// where its writer keeps files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/source.h>

namespace plait {

std::string comment_of(Source source);
// The line that a comment tells; an unknown one where it is any other comment.
Source source_of_comment(std::string_view comment);

}  // namespace plait
