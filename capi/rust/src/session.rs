// SPDX-License-Identifier: Apache-2.0
//! Sessions: models that are ready to run.

use std::collections::HashMap;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::abi;
use crate::error::Result;
use crate::library::{library, Library, Owned};
use crate::tensor::{ElementType, Tensor};

/// What an input or an output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum ValueKind {
    Unknown,
    Tensor,
    Sequence,
    Map,
    Optional,
    Sparse,
}

/// A dimension of an input's or output's shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// The model says how many there are.
    Fixed(usize),
    /// Any number, the same wherever the name occurs.
    Named(String),
    /// Any number.
    Open,
}

/// An input or an output of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueInfo {
    /// The name that runs take.
    pub name: String,
    /// Sequences, maps, optionals and sparse tensors have no form in Rust: leave them out of a run.
    pub kind: ValueKind,
    /// The type of its elements; None where the model or this crate does not know it.
    pub element_type: Option<ElementType>,
    /// None where the model does not say how many dimensions there are.
    pub shape: Option<Vec<Dimension>>,
    /// Whether an input has a default value, and need not be given.
    pub optional: bool,
}

/// Ends runs from another thread: those that have it in their [`RunOptions`], now and later. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicU32>);

impl Cancel {
    /// Runs end with [`crate::Code::Cancelled`] within milliseconds.
    pub fn cancel(&self) {
        self.0.store(1, Ordering::SeqCst);
    }
}

/// What a run may be told; `RunOptions::default()` is a plain run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Names of the outputs that are wanted; empty = all.
    pub outputs: Vec<String>,
    /// The run ends with [`crate::Code::Deadline`] after so long.
    pub timeout: Option<Duration>,
    /// Threads of this run; 0 = the session's.
    pub num_threads: usize,
    /// Bytes of memory that the run and its results may take; 0 = no limit of its own.
    pub memory_limit: u64,
    /// The name of the run in logs and profiles.
    pub tag: String,
    /// Ends the run when somebody cancels it.
    pub cancel: Option<Cancel>,
}

impl RunOptions {
    /// The library's form of it, which borrows this one.
    fn desc(&self) -> abi::RunDesc {
        let mut desc = abi::RunDesc::unset();
        // The library counts milliseconds, takes 0 for no timeout, and refuses numbers that are too large.
        let limit = |number: u128| i64::try_from(number).unwrap_or(i64::MAX);
        desc.timeout_ms = self.timeout.map_or(0, |timeout| limit(timeout.as_micros() / 1000 + 1));
        desc.num_threads = limit(self.num_threads as u128);
        desc.memory_limit = limit(self.memory_limit.into());
        desc.tag = abi::Text::of(self.tag.as_bytes());
        if let Some(Cancel(flag)) = &self.cancel {
            desc.cancel = &**flag as *const AtomicU32 as *const u32;
        }
        desc
    }
}

/// A model that is loaded and planned. Threads may share it, and run it at once. Dropping it frees it.
pub struct Session {
    library: &'static Library,
    handle: Owned,
    inputs: Vec<ValueInfo>,
    outputs: Vec<ValueInfo>,
}

// SAFETY: the library's sessions are safe to use from many threads at once.
unsafe impl Send for Session {}
unsafe impl Sync for Session {}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.debug_struct("Session").field("inputs", &self.inputs).field("outputs", &self.outputs).finish()
    }
}

impl Session {
    /// Loads the model in a file. |options| are the library's of a session by their names, as in
    /// `&[("num_threads", "1")]`: `pfrt run --help` lists them. NotFound where there is no such file.
    pub fn load(path: impl AsRef<Path>, options: &[(&str, &str)]) -> Result<Session> {
        let path = abi::Text::of(path.as_ref().as_os_str().as_bytes());
        let library = library()?;
        // SAFETY: the path is read during the call only.
        Session::open(library, options, |model| unsafe {
            (library.model.load_file)(library.environment, path, null_mut(), model)
        })
    }

    /// Loads a model from its bytes, which are copied.
    pub fn from_bytes(model: &[u8], options: &[(&str, &str)]) -> Result<Session> {
        let library = library()?;
        // SAFETY: the bytes are copied during the call.
        Session::open(library, options, |out| unsafe {
            let (data, none) = (model.as_ptr() as *const _, null_mut());
            let load = library.model.load_memory;
            load(library.environment, data, model.len(), abi::MEMORY_COPY, none, none, none, out)
        })
    }

    fn open(
        library: &'static Library,
        options: &[(&str, &str)],
        load: impl FnOnce(*mut abi::Handle) -> abi::Status,
    ) -> Result<Session> {
        let handle = library.session(options, load)?;
        let api = library.session;
        let inputs = describe(library, &handle, api.input_count, api.input_at)?;
        let outputs = describe(library, &handle, api.output_count, api.output_at)?;
        Ok(Session { library, handle, inputs, outputs })
    }

    /// The inputs: those that must be given, then those with a default value.
    pub fn inputs(&self) -> &[ValueInfo] {
        &self.inputs
    }

    /// The outputs.
    pub fn outputs(&self) -> &[ValueInfo] {
        &self.outputs
    }

    /// Runs the model on inputs by name, and gives all outputs by name. Input, ShapeMismatch and DtypeMismatch say
    /// which input is not as the model wants it.
    pub fn run(&self, inputs: &[(&str, &Tensor)]) -> Result<HashMap<String, Tensor>> {
        self.run_with(inputs, &RunOptions::default())
    }

    /// Runs the model as |options| say.
    pub fn run_with(&self, inputs: &[(&str, &Tensor)], options: &RunOptions) -> Result<HashMap<String, Tensor>> {
        let input_names: Vec<abi::Text> = inputs.iter().map(|(name, _)| abi::Text::of(name.as_bytes())).collect();
        let dims: Vec<Vec<i64>> = inputs.iter().map(|(_, tensor)| tensor.dims()).collect();
        let fed = inputs.iter().zip(&dims).map(|((_, tensor), dims)| tensor.input(self.library, dims));
        let (given, _values): (Vec<abi::Io>, Vec<Option<Owned>>) = fed.collect::<Result<Vec<_>>>()?.into_iter().unzip();

        let wanted: Vec<&str> = match options.outputs.is_empty() {
            true => self.outputs.iter().map(|output| output.name.as_str()).collect(),
            false => options.outputs.iter().map(String::as_str).collect(),
        };
        let output_names: Vec<abi::Text> = wanted.iter().map(|name| abi::Text::of(name.as_bytes())).collect();
        let mut results = vec![abi::Io { tensor: abi::Tensor::unset(), ..abi::Io::unset() }; wanted.len()];
        // SAFETY: all that the arrays point to outlives the call.
        self.library.check(unsafe {
            (self.library.session.run_named)(
                self.handle.handle,
                input_names.as_ptr(),
                given.as_ptr(),
                given.len(),
                output_names.as_ptr(),
                results.as_mut_ptr(),
                results.len(),
                &options.desc(),
            )
        })?;
        let release = self.library.value.release;
        let values: Vec<Owned> = results.iter().map(|io| Owned { handle: io.value, release }).collect();
        wanted
            .iter()
            .zip(&values)
            .map(|(name, value)| Ok((name.to_string(), Tensor::output(self.library, name, value)?)))
            .collect()
    }
}

fn describe(library: &Library, session: &Owned, count: abi::Count, at: abi::InfoAt) -> Result<Vec<ValueInfo>> {
    // SAFETY: what the library says of a session lives as long as that, and is copied.
    unsafe { (0..count(session.handle)).map(|i| read_info(library, session, i, at)).collect() }
}

unsafe fn read_info(library: &Library, session: &Owned, index: usize, at: abi::InfoAt) -> Result<ValueInfo> {
    const KINDS: [ValueKind; 6] = [
        ValueKind::Unknown,
        ValueKind::Tensor,
        ValueKind::Sequence,
        ValueKind::Map,
        ValueKind::Optional,
        ValueKind::Sparse,
    ];
    let mut info = abi::ValueInfo::unset();
    library.check(at(session.handle, index, &mut info))?;
    let shape = usize::try_from(info.rank).ok().map(|rank| {
        let names = abi::slice(info.dim_names, if info.dim_names.is_null() { 0 } else { rank });
        let name = |i: usize| names.get(i).filter(|name| name.size > 0).map(|name| name.words());
        let dims = abi::slice(info.dims, rank).iter().enumerate();
        dims.map(|(i, dim)| match usize::try_from(*dim) {
            Ok(size) => Dimension::Fixed(size),
            Err(_) => name(i).map_or(Dimension::Open, Dimension::Named),
        })
        .collect()
    });
    Ok(ValueInfo {
        name: info.name.words(),
        kind: *KINDS.get(info.kind as usize).unwrap_or(&ValueKind::Unknown),
        element_type: ElementType::of(info.dtype),
        shape,
        optional: info.has_initializer != 0,
    })
}
