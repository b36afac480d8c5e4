// SPDX-License-Identifier: Apache-2.0
//! The C library: it is found, opened and checked at the first use, and stays until the process ends.

use std::env;
use std::ffi::{c_void, CStr, CString, OsString};
use std::mem::size_of;
use std::os::raw::{c_char, c_int};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::Mutex;

use crate::abi;
use crate::error::{Code, Error, Result};

// Both are in glibc itself since 2.34, which std links.
extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}
const RTLD_NOW: c_int = 2;
const FILE: &str = "libpyflamert_c.so";

/// The tables of the library that are used, and the process's environment.
pub struct Library {
    pub status: &'static abi::StatusApi,
    pub options: &'static abi::OptionsApi,
    pub value: &'static abi::ValueApi,
    pub model: &'static abi::ModelApi,
    pub session: &'static abi::SessionApi,
    pub environment: abi::Handle,
}

// SAFETY: tables never change, and all that is done with an environment is thread-safe.
unsafe impl Send for Library {}
unsafe impl Sync for Library {}

/// A reference to an object of the library, which is dropped with it.
pub struct Owned {
    pub handle: abi::Handle,
    pub release: abi::Release,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the reference is this object's alone; releasing NULL does nothing.
        unsafe { (self.release)(self.handle) }
    }
}

static OPENED: Mutex<Option<&'static Library>> = Mutex::new(None);

/// The library, which is opened where it has not been yet. What failed is attempted again by the next call.
pub fn library() -> Result<&'static Library> {
    let mut opened = OPENED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    match *opened {
        Some(library) => Ok(library),
        None => {
            let library: &'static Library = Box::leak(Box::new(Library::open()?));
            *opened = Some(library);
            Ok(library)
        }
    }
}

/// The file to open and, for an error, how it came to be that one.
fn find() -> (OsString, String) {
    if let Some(given) = env::var_os("PYFLAME_RT_LIBRARY").filter(|given| !given.is_empty()) {
        let why = format!("PYFLAME_RT_LIBRARY names '{}'", given.to_string_lossy());
        return (given, why);
    }
    let program = env::current_exe().unwrap_or_default();
    let folder = program.parent().map(PathBuf::from).unwrap_or_default();
    let own = [folder.join("native").join(FILE), folder.join(FILE)];
    if let Some(file) = own.iter().find(|file| file.exists()) {
        return (file.clone().into(), format!("PYFLAME_RT_LIBRARY is not set, and '{}' is there", file.display()));
    }
    let [native, beside] = &own;
    let why = format!(
        "PYFLAME_RT_LIBRARY is not set, there is neither '{}' nor '{}', and the loader was asked",
        native.display(),
        beside.display()
    );
    (FILE.into(), why)
}

/// The table at |pointer|, which must have at least the size of |T|.
unsafe fn table<T>(pointer: *const T, name: &str) -> Result<&'static T> {
    let has = if pointer.is_null() { 0 } else { *(pointer as *const u32) as usize };
    if has < size_of::<T>() {
        let message = format!(
            "opening the library: its table '{}' has {} bytes, {} are needed: it is not a PyFlameRT library of ABI 2",
            name,
            has,
            size_of::<T>()
        );
        return Err(Error::new(Code::Unsupported, message));
    }
    Ok(&*pointer)
}

impl Library {
    fn open() -> Result<Library> {
        let (file, why) = find();
        let path = CString::new(file.clone().into_vec()).unwrap_or_default();
        // SAFETY: the library is one of PyFlameRT, as its one symbol says; tables are checked before they are used.
        unsafe {
            let opened = dlopen(path.as_ptr(), RTLD_NOW);
            let symbol = match opened.is_null() {
                true => null_mut(),
                false => dlsym(opened, "pfrt_get_api\0".as_ptr() as *const c_char),
            };
            if symbol.is_null() {
                let reason = CStr::from_ptr(dlerror()).to_string_lossy();
                let message = format!(
                    "opening the library: {}: {}; set PYFLAME_RT_LIBRARY to the path of {}, or put its folder on the \
                     loader's path",
                    why, reason, FILE
                );
                return Err(Error::new(Code::NotFound, message));
            }
            let get_api: abi::GetApi = std::mem::transmute(symbol);
            let mut info = abi::AbiInfo::unset();
            let api = get_api(abi::VERSION, &mut info);
            if api.is_null() {
                let message = format!("opening the library {}: {}", file.to_string_lossy(), info.message.words());
                return Err(Error::new(Code::Unsupported, message));
            }
            let api = table(api, "api")?;
            let mut library = Library {
                status: table(api.status, "status")?,
                options: table(api.options, "options")?,
                value: table(api.value, "value")?,
                model: table(api.model, "model")?,
                session: table(api.session, "session")?,
                environment: null_mut(),
            };
            let env = table(api.env, "env")?;
            let mut environment = null_mut();
            library.check((env.create)(null_mut(), &mut environment))?;
            library.environment = environment;
            Ok(library)
        }
    }

    /// Turns a status into a result, and releases it.
    pub fn check(&self, status: abi::Status) -> Result<()> {
        if status.is_null() {
            return Ok(());
        }
        // SAFETY: the status is the caller's, and is not used after its release.
        unsafe {
            let count = (self.status.child_count)(status);
            let faults = (0..count).map(|i| (self.status.message)((self.status.child)(status, i)).words()).collect();
            let code = Code::of((self.status.code)(status));
            let message = (self.status.message)(status).words();
            (self.status.release)(status);
            Err(Error::with_faults(code, message, faults))
        }
    }

    /// The object that |create| gives by its argument.
    pub fn make(
        &self,
        release: abi::Release,
        create: impl FnOnce(*mut abi::Handle) -> abi::Status,
    ) -> Result<Owned> {
        let mut handle = null_mut();
        self.check(create(&mut handle))?;
        Ok(Owned { handle, release })
    }

    /// Options of a session, each as text by its key.
    pub fn session_options(&self, given: &[(&str, &str)]) -> Result<Owned> {
        // SAFETY: keys and texts are copied by the calls.
        unsafe {
            let options = self.make(self.options.release, |out| (self.options.create)(abi::OPTIONS_SESSION, out))?;
            for (key, text) in given {
                let (key, text) = (abi::Text::of(key.as_bytes()), abi::Text::of(text.as_bytes()));
                self.check((self.options.set_text)(options.handle, key, text))?;
            }
            Ok(options)
        }
    }

    /// A session on the model that |load| gives by its argument.
    pub fn session(
        &self,
        options: &[(&str, &str)],
        load: impl FnOnce(*mut abi::Handle) -> abi::Status,
    ) -> Result<Owned> {
        let options = self.session_options(options)?;
        let model = self.make(self.model.release, load)?;
        let mut desc = abi::SessionDesc::unset();
        desc.model = model.handle;
        desc.options = options.handle;
        // SAFETY: the session keeps what it needs of model and options.
        self.make(self.session.release, |out| unsafe { (self.session.create)(self.environment, &desc, out) })
    }
}
