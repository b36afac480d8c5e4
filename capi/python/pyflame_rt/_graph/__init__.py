# SPDX-License-Identifier: Apache-2.0
"""Graphs, their nodes and attributes, and the model files that they are read from and written to."""
