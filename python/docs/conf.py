"""Sphinx's settings for the pages that make.py prepares.

SPDX-License-Identifier: Apache-2.0
"""

import os

project = "plait"
author = "The authors of plait"
version = release = os.environ["PLAIT_DOCS_VERSION"]
extensions = ["myst_parser"]
html_theme = "furo"
html_title = f"plait {version}"
html_show_copyright = False
html_copy_source = False
html_static_path = []
# Names of the headings as GitHub makes them, which the pages link to.
myst_heading_anchors = 4
add_module_names = False
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 90
highlight_language = "none"
# What programs print is no language: it is shown as it is.
suppress_warnings = ["misc.highlighting_failure"]
nitpicky = False
