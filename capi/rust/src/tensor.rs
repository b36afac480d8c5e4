// SPDX-License-Identifier: Apache-2.0
//! Dense tensors in memory of the program's own.

use std::os::raw::c_char;
use std::ptr::null_mut;

use crate::abi;
use crate::error::{Code, Error, Result};
use crate::library::{Library, Owned};

/// A half-precision number, as its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// A bfloat16 number, as its bits: the upper half of an f32's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

macro_rules! element_types {
    ($($name:ident $number:literal $c_name:ident,)*) => {
        /// The type of a tensor's elements. Those that no [`Element`] stands for occur in descriptions alone.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        #[non_exhaustive]
        pub enum ElementType {
            $($name = $number,)*
        }

        impl ElementType {
            /// None for 0, and for types of newer libraries.
            pub(crate) fn of(number: u32) -> Option<ElementType> {
                match number {
                    $($number => Some(ElementType::$name),)*
                    _ => None,
                }
            }

            #[cfg(test)]
            pub(crate) const C_NAMES: &'static [(&'static str, u32)] = &[$((stringify!($c_name), $number),)*];
        }
    };
}

element_types! {
    Float32 1 FLOAT32,
    Uint8 2 UINT8,
    Int8 3 INT8,
    Uint16 4 UINT16,
    Int16 5 INT16,
    Int32 6 INT32,
    Int64 7 INT64,
    String 8 STRING,
    Bool 9 BOOL,
    Float16 10 FLOAT16,
    Float64 11 FLOAT64,
    Uint32 12 UINT32,
    Uint64 13 UINT64,
    Complex64 14 COMPLEX64,
    Complex128 15 COMPLEX128,
    Bfloat16 16 BFLOAT16,
    Float8E4M3Fn 17 FLOAT8E4M3FN,
    Float8E4M3Fnuz 18 FLOAT8E4M3FNUZ,
    Float8E5M2 19 FLOAT8E5M2,
    Float8E5M2Fnuz 20 FLOAT8E5M2FNUZ,
    Uint4 21 UINT4,
    Int4 22 INT4,
    Float4E2M1 23 FLOAT4E2M1,
    Float8E8M0 24 FLOAT8E8M0,
    Uint2 25 UINT2,
    Int2 26 INT2,
}

/// A type that elements of a tensor may have in Rust: `f32`, `f64`, the integers of 8 to 64 bits, `bool`, `String`,
/// [`F16`] and [`Bf16`].
pub trait Element: sealed::Stored {
    /// What the library calls the type.
    const TYPE: ElementType;
}

mod sealed {
    /// How elements of one type are kept, which no other crate may define for its own.
    pub trait Stored: Clone {
        fn store(elements: Vec<Self>) -> super::Data;
        fn get(data: &super::Data) -> Option<&[Self]>;
        fn take(data: super::Data) -> Result<Vec<Self>, super::Data>;
    }
}

macro_rules! elements {
    ($($element:ty => $name:ident,)*) => {
        /// The elements of a tensor. It is public because sealed::Stored names it, and not exported.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Data {
            $($name(Vec<$element>),)*
        }

        impl Data {
            fn element_type(&self) -> ElementType {
                match self {
                    $(Data::$name(_) => ElementType::$name,)*
                }
            }

            /// The elements in memory, and their size in bytes.
            fn bytes(&self) -> (*const u8, usize) {
                match self {
                    $(Data::$name(elements) => {
                        (elements.as_ptr() as *const u8, std::mem::size_of_val(elements.as_slice()))
                    })*
                }
            }
        }

        $(
            impl sealed::Stored for $element {
                fn store(elements: Vec<$element>) -> Data {
                    Data::$name(elements)
                }
                fn get(data: &Data) -> Option<&[$element]> {
                    match data {
                        Data::$name(elements) => Some(elements),
                        _ => None,
                    }
                }
                fn take(data: Data) -> std::result::Result<Vec<$element>, Data> {
                    match data {
                        Data::$name(elements) => Ok(elements),
                        other => Err(other),
                    }
                }
            }
            impl Element for $element {
                const TYPE: ElementType = ElementType::$name;
            }
        )*
    };
}

elements! {
    f32 => Float32,
    u8 => Uint8,
    i8 => Int8,
    u16 => Uint16,
    i16 => Int16,
    i32 => Int32,
    i64 => Int64,
    String => String,
    bool => Bool,
    F16 => Float16,
    f64 => Float64,
    u32 => Uint32,
    u64 => Uint64,
    Bf16 => Bfloat16,
}

/// A dense tensor, row-major. It owns its elements: runs read those of inputs where they are, and copy those of outputs
/// into tensors of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    data: Data,
}

impl Tensor {
    /// A tensor of |shape|, which is empty for a scalar. ShapeMismatch unless |elements| are as many as the product of
    /// the dimensions.
    pub fn new<T: Element>(shape: &[usize], elements: Vec<T>) -> Result<Tensor> {
        let size = shape.iter().try_fold(1usize, |size, dim| size.checked_mul(*dim));
        if size != Some(elements.len()) {
            let wanted = size.map_or("more than memory has".to_string(), |size| size.to_string());
            let message = format!(
                "making a tensor: shape {:?} is {} elements, the data have {}; give as many as the shape has",
                shape,
                wanted,
                elements.len()
            );
            return Err(Error::new(Code::ShapeMismatch, message));
        }
        Ok(Tensor { shape: shape.to_vec(), data: T::store(elements) })
    }

    /// The dimensions; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.data.element_type()
    }

    /// The elements, row-major. DtypeMismatch where they are of another type than |T|.
    pub fn data<T: Element>(&self) -> Result<&[T]> {
        T::get(&self.data).ok_or_else(|| wrong_type::<T>(self.element_type()))
    }

    /// The elements, which the tensor gives away. DtypeMismatch where they are of another type than |T|.
    pub fn into_data<T: Element>(self) -> Result<Vec<T>> {
        T::take(self.data).map_err(|data| wrong_type::<T>(data.element_type()))
    }

    pub(crate) fn dims(&self) -> Vec<i64> {
        self.shape.iter().map(|dim| *dim as i64).collect()
    }

    /// What a run reads, and for strings the value that it points to. Both borrow |dims| and this tensor.
    pub(crate) fn input(&self, library: &Library, dims: &[i64]) -> Result<(abi::Io, Option<Owned>)> {
        let mut io = abi::Io::unset();
        io.tensor = abi::Tensor::unset();
        if let Data::String(texts) = &self.data {
            let value = strings_value(library, texts, dims)?;
            io.value = value.handle;
            return Ok((io, Some(value)));
        }
        let (data, bytes) = self.data.bytes();
        io.tensor.dtype = self.element_type() as u32;
        io.tensor.rank = dims.len() as u32;
        io.tensor.dims = dims.as_ptr();
        io.tensor.data = data as *mut _; // which runs only read
        io.tensor.bytes = bytes as u64;
        Ok((io, None))
    }

    /// A copy of the value that a run gave as output |name|. Unsupported where that is no tensor, or its elements are of
    /// a type that no [`Element`] stands for.
    pub(crate) fn output(library: &Library, name: &str, value: &Owned) -> Result<Tensor> {
        const TENSOR: u32 = 1;
        let without_form = |what: String| {
            let message = format!(
                "running: output '{}' is {}, which has no form in Rust; name the others in RunOptions::outputs",
                name, what
            );
            Error::new(Code::Unsupported, message)
        };
        // SAFETY: the view and what it points to live as long as |value|.
        unsafe {
            let kind = (library.value.kind)(value.handle);
            if kind != TENSOR {
                const KINDS: [&str; 6] = ["no value", "a tensor", "a sequence", "a map", "an optional", "sparse"];
                return Err(without_form(KINDS.get(kind as usize).unwrap_or(&"of an unknown kind").to_string()));
            }
            let mut view = abi::Tensor::unset();
            library.check((library.value.tensor)(value.handle, &mut view))?;
            let shape: Vec<usize> =
                abi::slice(view.dims, view.rank as usize).iter().map(|dim| *dim as usize).collect();
            let count = shape.iter().product();
            let data = match ElementType::of(view.dtype) {
                Some(ElementType::String) => Data::String(read_strings(library, name, value, count)?),
                Some(element_type) => read(element_type, view.data as *const u8, count)
                    .ok_or_else(|| without_form(format!("a tensor of {:?}", element_type)))?,
                None => return Err(without_form(format!("a tensor of type {}", view.dtype))),
            };
            Ok(Tensor { shape, data })
        }
    }
}

fn wrong_type<T: Element>(found: ElementType) -> Error {
    let message =
        format!("reading a tensor: its elements are {:?}, not {:?}; read them as what they are", found, T::TYPE);
    Error::new(Code::DtypeMismatch, message)
}

/// The |count| elements at |data|; None for types that no [`Element`] stands for.
unsafe fn read(element_type: ElementType, data: *const u8, count: usize) -> Option<Data> {
    unsafe fn copy<T: Element>(data: *const u8, count: usize) -> Data {
        T::store(abi::slice(data as *const T, count).to_vec())
    }
    Some(match element_type {
        ElementType::Float32 => copy::<f32>(data, count),
        ElementType::Uint8 => copy::<u8>(data, count),
        ElementType::Int8 => copy::<i8>(data, count),
        ElementType::Uint16 => copy::<u16>(data, count),
        ElementType::Int16 => copy::<i16>(data, count),
        ElementType::Int32 => copy::<i32>(data, count),
        ElementType::Int64 => copy::<i64>(data, count),
        // A byte other than 0 and 1 is no bool of Rust's.
        ElementType::Bool => Data::Bool(abi::slice(data, count).iter().map(|byte| *byte != 0).collect()),
        ElementType::Float16 => copy::<F16>(data, count),
        ElementType::Float64 => copy::<f64>(data, count),
        ElementType::Uint32 => copy::<u32>(data, count),
        ElementType::Uint64 => copy::<u64>(data, count),
        ElementType::Bfloat16 => copy::<Bf16>(data, count),
        _ => return None,
    })
}

/// Texts cross over one behind another, with the place where each ends.
fn strings_value(library: &Library, texts: &[String], dims: &[i64]) -> Result<Owned> {
    let joined = texts.concat();
    let mut end = 0;
    let ends: Vec<u64> = texts
        .iter()
        .map(|text| {
            end += text.len() as u64;
            end
        })
        .collect();
    let text = joined.as_ptr() as *const c_char;
    // SAFETY: |ends| has as many elements as |dims| say, and both are read during the call only.
    library.make(library.value.release, |out| unsafe {
        (library.value.create_strings)(dims.as_ptr(), dims.len(), text, joined.len(), ends.as_ptr(), out)
    })
}

unsafe fn read_strings(library: &Library, name: &str, value: &Owned, count: usize) -> Result<Vec<String>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut ends = vec![0u64; count];
    let mut size = 0;
    let strings = library.value.strings;
    library.check(strings(value.handle, null_mut(), 0, &mut size, ends.as_mut_ptr()))?;
    let mut bytes = vec![0u8; size];
    library.check(strings(value.handle, bytes.as_mut_ptr() as *mut c_char, size, &mut size, ends.as_mut_ptr()))?;
    let mut start = 0;
    ends.iter()
        .map(|end| {
            let text = &bytes[start..*end as usize];
            start = *end as usize;
            String::from_utf8(text.to_vec()).map_err(|_| {
                let message = format!(
                    "running: output '{}' has a text of {} bytes that are no UTF-8, which a String cannot hold; name \
                     the other outputs in RunOptions::outputs",
                    name,
                    text.len()
                );
                Error::new(Code::Unsupported, message)
            })
        })
        .collect()
}
