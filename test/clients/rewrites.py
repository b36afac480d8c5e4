# SPDX-License-Identifier: Apache-2.0
"""Small models in which rewrites apply that other models here have not."""


def models():
    return []
