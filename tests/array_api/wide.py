"""A plugin of pytest: all tests run with float64 and int64 as plait's default dtypes.

SPDX-License-Identifier: Apache-2.0
"""

import plait


def pytest_configure(config):
    config.plait_defaults = plait.default_dtypes(float="float64", int="int64")
    config.plait_defaults.__enter__()
