# SPDX-License-Identifier: Apache-2.0
"""Element types, tensors and other values, and how they cross to the library and back."""
