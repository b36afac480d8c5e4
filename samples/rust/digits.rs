// SPDX-License-Identifier: Apache-2.0
//
// Classifies handwritten digits through the C ABI, opened at run time: prints the class of the first
// held-out image and its probability, then how many of all are right. Nothing but std is needed.
// Argument: the folder with digits.onnx and digits_test.bin. The library is the file that
// PYFLAME_RT_LIBRARY names, else the system's libpyflamert_c.so.
use std::ffi::{c_void, CStr, CString};
use std::mem::size_of;
use std::os::raw::{c_char, c_int};
use std::ptr::{null, null_mut};

type Result<T> = std::result::Result<T, String>;

/// The declarations of include/pyflame_rt that this file needs. Tables and structs only grow at their
/// end, so a prefix of each table is enough; slots that are not called are plain pointers.
mod abi {
    use std::os::raw::{c_char, c_void};

    pub const VERSION: u32 = 2 << 16; // every library of major version 2 has what 2.0 has
    pub const FLOAT32: u32 = 1;

    pub type Slot = *const c_void;
    pub type Handle = *mut c_void;
    pub type Status = *mut c_void;
    pub type GetApi = unsafe extern "C" fn(version: u32, info: *mut AbiInfo) -> *const Api;
    pub type Release = unsafe extern "C" fn(handle: Handle);

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct Text {
        pub data: *const c_char,
        pub size: usize,
    }

    #[repr(C)]
    pub struct AbiInfo {
        pub struct_size: u32,
        pub abi: u32,
        pub version: Text,
        pub message: Text,
    }

    #[repr(C)]
    pub struct Api {
        pub struct_size: u32,
        pub abi: u32,
        pub status: *const StatusApi,
        pub options: Slot,
        pub env: *const EnvApi,
        pub value: Slot,
        pub graph: Slot,
        pub model: *const ModelApi,
        pub session: *const SessionApi,
    }

    #[repr(C)]
    pub struct StatusApi {
        pub struct_size: u32,
        pub abi: u32,
        pub code: Slot,
        pub message: unsafe extern "C" fn(status: Status) -> Text,
        pub child_count: Slot,
        pub child: Slot,
        pub release: Release,
    }

    #[repr(C)]
    pub struct EnvApi {
        pub struct_size: u32,
        pub abi: u32,
        pub create: unsafe extern "C" fn(options: Handle, env: *mut Handle) -> Status,
        pub retain: Slot,
        pub release: Release,
    }

    #[repr(C)]
    pub struct ModelApi {
        pub struct_size: u32,
        pub abi: u32,
        pub load_file: unsafe extern "C" fn(
            env: Handle,
            path: Text,
            options: Handle,
            model: *mut Handle,
        ) -> Status,
        pub load_memory: Slot,
        pub from_graph: Slot,
        pub retain: Slot,
        pub release: Release,
    }

    #[repr(C)]
    pub struct SessionApi {
        pub struct_size: u32,
        pub abi: u32,
        pub create: unsafe extern "C" fn(
            env: Handle,
            desc: *const SessionDesc,
            session: *mut Handle,
        ) -> Status,
        pub retain: Slot,
        pub release: Release,
        pub input_count: Slot,
        pub input_at: Slot,
        pub output_count: Slot,
        pub output_at: Slot,
        pub input_index: Slot,
        pub output_index: Slot,
        pub run: unsafe extern "C" fn(
            session: Handle,
            inputs: *const Io,
            input_count: usize,
            outputs: *mut Io,
            output_count: usize,
            desc: Handle,
        ) -> Status,
    }

    #[repr(C)]
    pub struct SessionDesc {
        pub struct_size: u32,
        pub reserved: u32,
        pub model: Handle,
        pub options: Handle,
        pub extra_outputs: *const Text,
        pub extra_output_count: usize,
        pub samples: *const c_void,
        pub sample_count: usize,
        pub sample_source: *const c_void,
        pub log: Handle,
        pub log_user: Handle,
        pub log_release: Handle,
    }

    #[repr(C)]
    pub struct Tensor {
        pub struct_size: u32,
        pub dtype: u32,
        pub rank: u32,
        pub memory: u32,
        pub data: *mut c_void,
        pub offset: u64,
        pub bytes: u64,
        pub dims: *const i64,
        pub strides: *const i64,
        pub quantization: *const c_void,
        pub extension: *const c_void,
        pub device: u32,
        pub reserved: u32,
    }

    #[repr(C)]
    pub struct Io {
        pub struct_size: u32,
        pub reserved: u32,
        pub flags: u64,
        pub tensor: Tensor,
        pub value: Handle,
    }
}

// Both are in glibc itself since 2.34, which std links.
extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}
const RTLD_NOW: c_int = 2;

fn words(text: abi::Text) -> String {
    if text.size == 0 {
        return String::new();
    }
    let bytes = unsafe { std::slice::from_raw_parts(text.data as *const u8, text.size) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the table behind |pointer|, which must have at least the size of |T|.
unsafe fn table<T>(pointer: *const T, name: &str) -> Result<&'static T> {
    let has = if pointer.is_null() { 0 } else { *(pointer as *const u32) as usize };
    if has < size_of::<T>() {
        return Err(format!(
            "the library's table '{}' has {} bytes, {} are needed: it is not a PyFlameRT library of ABI 2",
            name, has, size_of::<T>()
        ));
    }
    Ok(&*pointer)
}

struct Runtime {
    status: &'static abi::StatusApi,
    env: &'static abi::EnvApi,
    model: &'static abi::ModelApi,
    session: &'static abi::SessionApi,
}

impl Runtime {
    /// The library stays loaded until the process ends.
    fn open() -> Result<Runtime> {
        let path = std::env::var("PYFLAME_RT_LIBRARY").unwrap_or("libpyflamert_c.so".to_string());
        let c_path = CString::new(path.clone()).map_err(|e| e.to_string())?;
        unsafe {
            let library = dlopen(c_path.as_ptr(), RTLD_NOW);
            let symbol = if library.is_null() {
                null_mut()
            } else {
                dlsym(library, "pfrt_get_api\0".as_ptr() as *const c_char)
            };
            if symbol.is_null() {
                let reason = CStr::from_ptr(dlerror()).to_string_lossy();
                return Err(format!("opening {}: {}; PYFLAME_RT_LIBRARY names the file", path, reason));
            }
            let get_api: abi::GetApi = std::mem::transmute(symbol);
            let nothing = abi::Text { data: null(), size: 0 };
            let struct_size = size_of::<abi::AbiInfo>() as u32;
            let mut info = abi::AbiInfo { struct_size, abi: 0, version: nothing, message: nothing };
            let api = get_api(abi::VERSION, &mut info);
            if api.is_null() {
                return Err(format!("{}: {}", path, words(info.message)));
            }
            let api = table(api, "api")?;
            Ok(Runtime {
                status: table(api.status, "status")?,
                env: table(api.env, "env")?,
                model: table(api.model, "model")?,
                session: table(api.session, "session")?,
            })
        }
    }

    fn check(&self, status: abi::Status) -> Result<()> {
        if status.is_null() {
            return Ok(());
        }
        let message = unsafe { words((self.status.message)(status)) };
        unsafe { (self.status.release)(status) };
        Err(message)
    }
}

/// Drops its reference when it goes out of scope.
struct Owned {
    handle: abi::Handle,
    release: abi::Release,
}

impl Drop for Owned {
    fn drop(&mut self) {
        unsafe { (self.release)(self.handle) }
    }
}

struct Session {
    runtime: Runtime,
    handle: Owned,
}

impl Session {
    fn open(runtime: Runtime, path: &str) -> Result<Session> {
        let mut env = Owned { handle: null_mut(), release: runtime.env.release };
        let mut model = Owned { handle: null_mut(), release: runtime.model.release };
        let mut session = Owned { handle: null_mut(), release: runtime.session.release };
        let text = abi::Text { data: path.as_ptr() as *const c_char, size: path.len() };
        unsafe {
            runtime.check((runtime.env.create)(null_mut(), &mut env.handle))?;
            let status = (runtime.model.load_file)(env.handle, text, null_mut(), &mut model.handle);
            runtime.check(status)?;
            let desc = abi::SessionDesc {
                struct_size: size_of::<abi::SessionDesc>() as u32,
                reserved: 0,
                model: model.handle,
                options: null_mut(),
                extra_outputs: null(),
                extra_output_count: 0,
                samples: null(),
                sample_count: 0,
                sample_source: null(),
                log: null_mut(),
                log_user: null_mut(),
                log_release: null_mut(),
            };
            runtime.check((runtime.session.create)(env.handle, &desc, &mut session.handle))?;
        }
        Ok(Session { runtime, handle: session }) // which keeps what it needs of env and model
    }

    fn classify(&self, pixels: &[u8]) -> Result<[f32; 10]> {
        let mut image: Vec<f32> = pixels.iter().map(|p| f32::from(*p) / 16.0).collect();
        let mut probabilities = [0.0f32; 10];
        let input = view(&mut image, &[1, 1, 8, 8]);
        let mut output = view(&mut probabilities, &[]);
        let run = self.runtime.session.run;
        let status = unsafe { run(self.handle.handle, &input, 1, &mut output, 1, null_mut()) };
        self.runtime.check(status)?;
        Ok(probabilities)
    }
}

/// Both slices have to outlive the result.
fn view(data: &mut [f32], dims: &[i64]) -> abi::Io {
    let tensor = abi::Tensor {
        struct_size: size_of::<abi::Tensor>() as u32,
        dtype: abi::FLOAT32,
        rank: dims.len() as u32,
        memory: 0,
        data: data.as_mut_ptr() as *mut c_void,
        offset: 0,
        bytes: std::mem::size_of_val(data) as u64,
        dims: dims.as_ptr(),
        strides: null(),
        quantization: null(),
        extension: null(),
        device: 0,
        reserved: 0,
    };
    let struct_size = size_of::<abi::Io>() as u32;
    abi::Io { struct_size, reserved: 0, flags: 0, tensor, value: null_mut() }
}

/// Label and 64 pixels (0..16) of each image, one after the other; train.py describes the layout.
fn read_digits(path: &str) -> Result<Vec<u8>> {
    let mut bytes = std::fs::read(path)
        .map_err(|e| format!("{} cannot be opened: {}; the argument is the folder of the digits", path, e))?;
    let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if bytes.len() < 20 || &bytes[..8] != b"PFRTDIG1" || number(8) == 0 || number(12) != 8 || number(16) != 8 {
        return Err(format!("{} is not a file of 8x8 digits", path));
    }
    let size = number(8) as usize * 65;
    bytes.drain(..20);
    if bytes.len() < size {
        return Err(format!("{} is truncated", path));
    }
    bytes.truncate(size);
    Ok(bytes)
}

fn work() -> Result<()> {
    let folder = std::env::args().nth(1).unwrap_or(".".to_string());
    let runtime = Runtime::open()?;
    let digits = read_digits(&(folder.clone() + "/digits_test.bin"))?;
    let session = Session::open(runtime, &(folder + "/digits.onnx"))?;
    let count = digits.len() / 65;
    let mut right = 0;
    for (i, digit) in digits.chunks(65).enumerate() {
        let probabilities = session.classify(&digit[1..])?;
        let mut best = 0;
        for c in 1..10 {
            best = if probabilities[c] > probabilities[best] { c } else { best };
        }
        if i == 0 {
            println!("the first image is a {} with probability {:.6}", best, probabilities[best]);
        }
        right += usize::from(best == usize::from(digit[0]));
    }
    println!("{} of {} held-out images are right", right, count);
    println!("accuracy {:.1} %", 100.0 * right as f64 / count as f64);
    Ok(())
}

fn main() {
    if let Err(message) = work() {
        eprintln!("digits: {}", message);
        std::process::exit(1);
    }
}
