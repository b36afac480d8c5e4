// SPDX-License-Identifier: Apache-2.0
//! The declarations of include/pyflame_rt that the crate uses, with the names that fields have there. Tables only grow
//! at their end, so a prefix of each is enough; slots that nobody calls are plain pointers. layout_test.rs holds every
//! field against the header.

use std::ffi::c_void;
use std::os::raw::c_char;

/// Every library of major version 2 has what 2.0 has.
pub const VERSION: u32 = 2 << 16;
pub const OPTIONS_SESSION: u32 = 3;
pub const MEMORY_COPY: u32 = 1;

pub type Slot = *const c_void;
pub type Handle = *mut c_void;
pub type Status = *mut c_void;
pub type Release = unsafe extern "C" fn(handle: Handle);
pub type Count = unsafe extern "C" fn(session: Handle) -> usize;
pub type InfoAt = unsafe extern "C" fn(session: Handle, index: usize, info: *mut ValueInfo) -> Status;
pub type GetApi = unsafe extern "C" fn(version: u32, info: *mut AbiInfo) -> *const Api;

/// Gives structs that a caller fills in, and no table, a value to begin with.
macro_rules! unset {
    (data $name:ident) => {
        impl $name {
            /// Zero is "unset" in every field but struct_size.
            pub fn unset() -> $name {
                // SAFETY: a struct of kind data has numbers and pointers that may be null.
                let mut all: $name = unsafe { std::mem::zeroed() };
                all.struct_size = std::mem::size_of::<$name>() as u32;
                all
            }
        }
    };
    ($other:ident $name:ident) => {};
}

/// Declares structs as C lays them out and, for the test, a function that says how they came to lie.
macro_rules! declare {
    ($($kind:ident $name:ident = $c_name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy)]
            #[allow(dead_code)]
            pub struct $name {
                $(pub $field: $type,)*
            }
            unset!($kind $name);
        )*

        /// For each field: its struct, name, offset and size; for each struct of which all fields are here its name
        /// and size.
        #[cfg(test)]
        #[allow(clippy::type_complexity)]
        pub fn layout() -> (Vec<(&'static str, &'static str, usize, usize)>, Vec<(&'static str, usize)>) {
            fn size<T>(_: *const T) -> usize {
                std::mem::size_of::<T>()
            }
            let (mut fields, mut wholes) = (Vec::new(), Vec::new());
            $({
                let place = std::mem::MaybeUninit::<$name>::uninit();
                let start = place.as_ptr();
                $(
                    // SAFETY: only the address of the field is taken.
                    let field = unsafe { std::ptr::addr_of!((*start).$field) };
                    let offset = field as usize - start as usize;
                    fields.push((stringify!($c_name), stringify!($field), offset, size(field)));
                )*
                if stringify!($kind) != "table" {
                    wholes.push((stringify!($c_name), std::mem::size_of::<$name>()));
                }
            })*
            (fields, wholes)
        }
    };
}

declare! {
    plain Text = pfrt_string {
        data: *const c_char,
        size: usize,
    }

    data AbiInfo = pfrt_abi_info {
        struct_size: u32,
        abi: u32,
        version: Text,
        message: Text,
    }

    table Api = pfrt_api {
        struct_size: u32,
        abi: u32,
        status: *const StatusApi,
        options: *const OptionsApi,
        env: *const EnvApi,
        value: *const ValueApi,
        graph: Slot,
        model: *const ModelApi,
        session: *const SessionApi,
    }

    table StatusApi = pfrt_status_api {
        struct_size: u32,
        abi: u32,
        code: unsafe extern "C" fn(status: Status) -> u32,
        message: unsafe extern "C" fn(status: Status) -> Text,
        child_count: unsafe extern "C" fn(status: Status) -> usize,
        child: unsafe extern "C" fn(status: Status, index: usize) -> Status,
        release: Release,
    }

    table OptionsApi = pfrt_options_api {
        struct_size: u32,
        abi: u32,
        create: unsafe extern "C" fn(kind: u32, options: *mut Handle) -> Status,
        retain: Slot,
        release: Release,
        set_bool: Slot,
        set_int: Slot,
        set_float: Slot,
        set_string: Slot,
        set_strings: Slot,
        set_text: unsafe extern "C" fn(options: Handle, key: Text, text: Text) -> Status,
    }

    table EnvApi = pfrt_env_api {
        struct_size: u32,
        abi: u32,
        create: unsafe extern "C" fn(options: Handle, env: *mut Handle) -> Status,
    }

    table ValueApi = pfrt_value_api {
        struct_size: u32,
        abi: u32,
        retain: Slot,
        release: Release,
        kind: unsafe extern "C" fn(value: Handle) -> u32,
        create_tensor: Slot,
        wrap_tensor: Slot,
        tensor: unsafe extern "C" fn(value: Handle, tensor: *mut Tensor) -> Status,
        set_string: Slot,
        count: Slot,
        element: Slot,
        create_sequence: Slot,
        create_optional: Slot,
        create_map: Slot,
        map_parts: Slot,
        create_sparse: Slot,
        sparse_parts: Slot,
        dtype: Slot,
        create_on: Slot,
        copy: Slot,
        wrap_unaligned: Slot,
        create_strings: unsafe extern "C" fn(
            dims: *const i64,
            rank: usize,
            text: *const c_char,
            size: usize,
            ends: *const u64,
            value: *mut Handle,
        ) -> Status,
        strings: unsafe extern "C" fn(
            value: Handle,
            text: *mut c_char,
            capacity: usize,
            size: *mut usize,
            ends: *mut u64,
        ) -> Status,
    }

    table ModelApi = pfrt_model_api {
        struct_size: u32,
        abi: u32,
        load_file: unsafe extern "C" fn(env: Handle, path: Text, options: Handle, model: *mut Handle) -> Status,
        load_memory: unsafe extern "C" fn(
            env: Handle,
            data: *const c_void,
            size: usize,
            mode: u32,
            release: Slot,
            user: Handle,
            options: Handle,
            model: *mut Handle,
        ) -> Status,
        from_graph: Slot,
        retain: Slot,
        release: Release,
    }

    table SessionApi = pfrt_session_api {
        struct_size: u32,
        abi: u32,
        create: unsafe extern "C" fn(env: Handle, desc: *const SessionDesc, session: *mut Handle) -> Status,
        retain: Slot,
        release: Release,
        input_count: Count,
        input_at: InfoAt,
        output_count: Count,
        output_at: InfoAt,
        input_index: Slot,
        output_index: Slot,
        run: Slot,
        run_named: unsafe extern "C" fn(
            session: Handle,
            input_names: *const Text,
            inputs: *const Io,
            input_count: usize,
            output_names: *const Text,
            outputs: *mut Io,
            output_count: usize,
            desc: *const RunDesc,
        ) -> Status,
    }

    data SessionDesc = pfrt_session_desc {
        struct_size: u32,
        reserved: u32,
        model: Handle,
        options: Handle,
        extra_outputs: *const Text,
        extra_output_count: usize,
        samples: Slot,
        sample_count: usize,
        sample_source: Slot,
        log: Slot,
        log_user: Handle,
        log_release: Slot,
    }

    data ValueInfo = pfrt_value_info {
        struct_size: u32,
        kind: u32,
        dtype: u32,
        rank: i32,
        name: Text,
        dims: *const i64,
        dim_names: *const Text,
        key_dtype: u32,
        has_initializer: u32,
    }

    data Tensor = pfrt_tensor {
        struct_size: u32,
        dtype: u32,
        rank: u32,
        memory: u32,
        data: *mut c_void,
        offset: u64,
        bytes: u64,
        dims: *const i64,
        strides: *const i64,
        quantization: Slot,
        extension: Slot,
        device: u32,
        reserved: u32,
    }

    data Io = pfrt_io {
        struct_size: u32,
        reserved: u32,
        flags: u64,
        tensor: Tensor,
        value: Handle,
    }

    data RunDesc = pfrt_run_desc {
        struct_size: u32,
        log_level: u32,
        cancel: *const u32,
        timeout_ms: i64,
        num_threads: i64,
        priority: i64,
        memory_limit: i64,
        tag: Text,
        flags: u64,
        state: Handle,
        observe: Slot,
        observe_user: Handle,
    }
}

impl Text {
    /// Borrows |bytes|, which have to outlive the result.
    pub fn of(bytes: &[u8]) -> Text {
        Text { data: bytes.as_ptr() as *const c_char, size: bytes.len() }
    }

    /// Copies the text, with a replacement for what is no UTF-8.
    ///
    /// # Safety
    /// |data| has |size| bytes.
    pub unsafe fn words(self) -> String {
        String::from_utf8_lossy(slice(self.data as *const u8, self.size)).into_owned()
    }
}

/// The |size| elements at |data|, which may be null where there are none.
///
/// # Safety
/// |data| has |size| elements for as long as the result is used.
pub unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, size)
    }
}
