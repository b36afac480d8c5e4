# SPDX-License-Identifier: Apache-2.0
"""Modules around networks whose arguments or results no exporter takes as they are."""
from torch import nn


class Called(nn.Module):
    """A module called by keywords, of whose results some are given."""

    def __init__(self, module, names, results):
        super().__init__()
        self.module, self.names, self.results = module, names, results

    def forward(self, *values):
        found = self.module(**dict(zip(self.names, values)))
        return tuple(found[name] for name in self.results)


class Chosen(nn.Module):
    """One result, by its key or index, of a module that gives several."""

    def __init__(self, module, key):
        super().__init__()
        self.module, self.key = module, key

    def forward(self, *values):
        return self.module(*values)[self.key]


class Detector(nn.Module):
    """A detector of one image, without the list that torchvision's take."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, image):
        found = self.module([image])[0]
        return found["boxes"], found["labels"], found["scores"]
