// SPDX-License-Identifier: Apache-2.0
//! Errors, by the library's codes.

use std::fmt;

/// What a call gives that can fail.
pub type Result<T> = std::result::Result<T, Error>;

macro_rules! codes {
    ($($name:ident $number:literal $c_name:ident $doc:literal,)*) => {
        /// The kind of an error, as the library's `PFRT_CODE_` constants tell them apart.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $doc] $name = $number,)*
        }

        impl Code {
            /// Codes of newer libraries count as Internal.
            pub(crate) fn of(number: u32) -> Code {
                match number {
                    $($number => Code::$name,)*
                    _ => Code::Internal,
                }
            }

            #[cfg(test)]
            pub(crate) const C_NAMES: &'static [(&'static str, u32)] = &[$((stringify!($c_name), $number),)*];
        }
    };
}

codes! {
    InvalidArgument 1 INVALID_ARGUMENT "A caller's mistake.",
    Input 2 INPUT "A missing, unknown or repeated input or output.",
    ShapeMismatch 3 SHAPE_MISMATCH "A tensor has another shape than is wanted.",
    DtypeMismatch 4 DTYPE_MISMATCH "A tensor has another element type than is wanted.",
    NotFound 5 NOT_FOUND "A file, provider, name or key is not there.",
    InvalidModel 6 INVALID_MODEL "A file of a model is malformed or truncated.",
    UnsupportedFormat 7 UNSUPPORTED_FORMAT "A file is none that the library reads.",
    UnsupportedOperator 8 UNSUPPORTED_OPERATOR "No provider runs some of the model's nodes.",
    Validation 9 VALIDATION "A graph is not valid; `faults` has them one by one.",
    Unsupported 10 UNSUPPORTED "Known, but not available here.",
    Provider 11 PROVIDER "A provider failed.",
    Plugin 12 PLUGIN "A plug-in was rejected.",
    Cancelled 13 CANCELLED "The run was cancelled.",
    Deadline 14 DEADLINE "The run took longer than its timeout.",
    OutOfMemory 15 OUT_OF_MEMORY "Memory did not suffice, or a limit of it.",
    DataLoss 16 DATA_LOSS "A file changed or failed while it was in use.",
    DeviceLost 17 DEVICE_LOST "A device is gone.",
    Io 18 IO "Reading or writing failed.",
    Internal 19 INTERNAL "A fault of the library.",
    Busy 20 BUSY "In use, or full: later it will do.",
}

/// What went wrong: a code, and a sentence that says what was attempted, on what, what was found and the nearest fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: Code,
    message: String,
    faults: Vec<String>,
}

impl Error {
    pub(crate) fn new(code: Code, message: String) -> Error {
        Error { code, message, faults: Vec::new() }
    }

    pub(crate) fn with_faults(code: Code, message: String, faults: Vec<String>) -> Error {
        Error { code, message, faults }
    }

    /// The kind of the error.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The sentence that [`fmt::Display`] writes.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The single faults where there are several, as of a graph that is not valid; else empty.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
