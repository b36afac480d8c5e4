# SPDX-License-Identifier: Apache-2.0
"""What programs import from ONNX Runtime's package of this name to run models; tools that make models are not here."""
