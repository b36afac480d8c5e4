// SPDX-License-Identifier: Apache-2.0
//! Runs ONNX models with PyFlameRT: a [`Session`] is loaded from a file and run with [`Tensor`]s by name.
//!
//! The crate opens `libpyflamert_c.so` at its first use and needs nothing but std. It looks for the library where the
//! environment variable `PYFLAME_RT_LIBRARY` says, else beside the program (in its folder `native`, then in its own),
//! else where the loader looks. There is one environment (threads, plug-ins, log) for the process, made at the first
//! use and kept until the process ends.
#![warn(missing_docs)]

mod abi;
mod error;
mod library;
mod session;
mod tensor;

pub use error::{Code, Error, Result};
pub use session::{Cancel, Dimension, RunOptions, Session, ValueInfo, ValueKind};
pub use tensor::{Bf16, Element, ElementType, Tensor, F16};

#[cfg(test)]
mod layout_test;
