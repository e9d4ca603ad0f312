// Lines of users' code in the text of a program: the comment after an equation, which print writes
// and parse reads back.
//
//   train.py:42 in loss, scope encoder/attention, under transpose(jvp):  y = x @ w
//
// Only the last component of the file's path is written, so that a shared program does not reveal
// its author's directories.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/source.h>

namespace plait {

std::string comment_of(Source source);
// The line that a comment gives; unknown for any other comment.
Source source_of_comment(std::string_view comment);

}  // namespace plait
