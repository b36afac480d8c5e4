// SPDX-License-Identifier: Apache-2.0
//! Sessions through the crate's public API, on the digits model and on models of one node that are written here.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use pyflame_rt::*;

/// The folder samples/digits of the tree that this crate is part of.
fn digits() -> PathBuf {
    let here = std::env::current_dir().unwrap();
    let found = here.ancestors().map(|folder| folder.join("samples/digits")).find(|folder| folder.exists());
    found.expect("the test runs inside of the source tree")
}

/// A field of a protobuf message that is shorter than 128 bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

fn integer(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

/// An ONNX model y = Identity(x); |dims| are an encoded shape.
fn identity(element_type: ElementType, dims: &[u8]) -> Vec<u8> {
    let tensor = [integer(1, element_type as u8), field(2, dims)].concat();
    let value = |name: &[u8]| [field(1, name), field(2, &field(1, &tensor))].concat();
    let node = [field(1, b"x"), field(2, b"y"), field(4, b"Identity")].concat();
    let graph = [field(1, &node), field(2, b"g"), field(11, &value(b"x")), field(12, &value(b"y"))].concat();
    [integer(1, 8), field(7, &graph), field(8, &integer(2, 17))].concat()
}

/// A model of a sequence y = [x] and a tensor z = x + c, where c is 2 unless it is given.
fn with_sequence_and_default() -> Vec<u8> {
    let tensor = integer(1, ElementType::Float32 as u8);
    let value = |name: &[u8], kind: &[u8]| [field(1, name), field(2, kind)].concat();
    let sequence = [field(1, b"x"), field(2, b"y"), field(4, b"SequenceConstruct")].concat();
    let sum = [field(1, b"x"), field(1, b"c"), field(2, b"z"), field(4, b"Add")].concat();
    let two = [integer(2, ElementType::Float32 as u8), field(8, b"c"), field(9, &2.0f32.to_le_bytes())].concat();
    let inputs = [field(11, &value(b"x", &field(1, &tensor))), field(11, &value(b"c", &field(1, &tensor)))].concat();
    let y = value(b"y", &field(4, &field(1, &field(1, &tensor))));
    let outputs = [field(12, &y), field(12, &value(b"z", &field(1, &tensor)))].concat();
    let graph = [field(1, &sequence), field(1, &sum), field(2, b"g"), field(5, &two), inputs, outputs].concat();
    [integer(1, 8), field(7, &graph), field(8, &integer(2, 17))].concat()
}

/// The dimension n of any size.
fn any_length() -> Vec<u8> {
    field(1, &field(2, b"n"))
}

fn session_of(element_type: ElementType) -> Session {
    Session::from_bytes(&identity(element_type, &any_length()), &[]).unwrap()
}

/// The digit in each picture that the session sees.
fn classify(session: &Session, pixels: &[u8]) -> usize {
    let image = pixels.iter().map(|pixel| f32::from(*pixel) / 16.0).collect();
    let outputs = session.run(&[("image", &Tensor::new(&[1, 1, 8, 8], image).unwrap())]).unwrap();
    let probabilities = outputs["probabilities"].data::<f32>().unwrap();
    assert_eq!(outputs["probabilities"].shape(), [1, 10]);
    (0..10).max_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b])).unwrap()
}

fn count_right(session: &Session) -> usize {
    let file = std::fs::read(digits().join("digits_test.bin")).unwrap();
    file[20..].chunks_exact(65).filter(|digit| classify(session, &digit[1..]) == usize::from(digit[0])).count()
}

#[test]
fn digits_are_classified() {
    let session = Session::load(digits().join("digits.onnx"), &[]).unwrap();
    assert_eq!(count_right(&session), 291);
}

#[test]
fn threads_share_a_session() {
    let session = Session::load(digits().join("digits.onnx"), &[("num_threads", "1")]).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| count_right(&session));
        assert_eq!(count_right(&session), 291);
        assert_eq!(other.join().unwrap(), 291);
    });
}

#[test]
fn inputs_and_outputs_are_listed() {
    let session = Session::load(digits().join("digits.onnx"), &[]).unwrap();
    assert_eq!((session.inputs().len(), session.outputs().len()), (1, 1));
    let (image, probabilities) = (&session.inputs()[0], &session.outputs()[0]);
    assert_eq!((image.name.as_str(), image.kind, image.optional), ("image", ValueKind::Tensor, false));
    assert_eq!(image.element_type, Some(ElementType::Float32));
    let shape = image.shape.as_ref().unwrap();
    assert!(!matches!(shape[0], Dimension::Fixed(_)), "{:?}", shape);
    assert_eq!(shape[1..], [1, 8, 8].map(Dimension::Fixed));
    assert_eq!(probabilities.name, "probabilities");
    let any = session_of(ElementType::Float32);
    assert_eq!(any.inputs()[0].shape, Some(vec![Dimension::Named("n".to_string())]));
}

fn comes_and_goes<T: Element + PartialEq + std::fmt::Debug>(elements: Vec<T>) {
    let session = session_of(T::TYPE);
    assert_eq!(session.outputs()[0].element_type, Some(T::TYPE));
    for elements in [elements.clone(), Vec::new(), elements[..1].to_vec()] {
        let x = Tensor::new(&[elements.len()], elements.clone()).unwrap();
        let y = session.run(&[("x", &x)]).unwrap().remove("y").unwrap();
        assert_eq!(y, x);
        assert_eq!(y.element_type(), T::TYPE);
        assert_eq!(y.into_data::<T>().unwrap(), elements);
    }
    let scalar = Tensor::new(&[], elements[..1].to_vec()).unwrap();
    let session = Session::from_bytes(&identity(T::TYPE, &[]), &[]).unwrap();
    assert_eq!(session.run(&[("x", &scalar)]).unwrap()["y"], scalar);
}

#[test]
fn elements_of_every_type_come_and_go() {
    comes_and_goes(vec![1.5f32, -2.0, f32::INFINITY]);
    comes_and_goes(vec![1e300f64, -0.0]);
    comes_and_goes(vec![i8::MIN, i8::MAX]);
    comes_and_goes(vec![i16::MIN, i16::MAX]);
    comes_and_goes(vec![i32::MIN, i32::MAX]);
    comes_and_goes(vec![i64::MIN, i64::MAX]);
    comes_and_goes(vec![1u8, u8::MAX]);
    comes_and_goes(vec![1u16, u16::MAX]);
    comes_and_goes(vec![1u32, u32::MAX]);
    comes_and_goes(vec![1u64, u64::MAX]);
    comes_and_goes(vec![true, false, true]);
    comes_and_goes(vec![F16(0x3c00), F16(0x7bff)]);
    comes_and_goes(vec![Bf16(0x3f80), Bf16(0xc000)]);
    comes_and_goes(["\u{e9}", "", "a\0b", &"long ".repeat(1000)].map(String::from).to_vec());
}

#[test]
fn element_types_without_a_form_are_named() {
    let complex = session_of(ElementType::Complex64);
    assert_eq!(complex.inputs()[0].element_type, Some(ElementType::Complex64));
    let error = complex.run(&[("x", &Tensor::new(&[1], vec![1.0f32]).unwrap())]).unwrap_err();
    assert_eq!(error.code(), Code::DtypeMismatch);
    assert!(error.message().contains("complex64"), "{}", error);
}

#[test]
fn tensors_that_make_no_sense_are_refused() {
    let error = Tensor::new(&[2, 3], vec![0.0f32; 5]).unwrap_err();
    assert_eq!(error.code(), Code::ShapeMismatch);
    assert!(error.message().contains("[2, 3] is 6 elements, the data have 5"), "{}", error);
    assert_eq!(Tensor::new(&[usize::MAX, 2], vec![0u8]).unwrap_err().code(), Code::ShapeMismatch);
    let error = Tensor::new(&[1], vec![0.0f32]).unwrap().data::<f64>().unwrap_err();
    assert_eq!(error.code(), Code::DtypeMismatch);
    assert!(error.message().contains("Float32, not Float64"), "{}", error);
}

/// Whether a call failed with |code| and a message that has all |words|.
fn failed<T: std::fmt::Debug>(result: Result<T>, code: Code, words: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{}", error);
    for word in words {
        assert!(error.to_string().contains(word), "'{}' is not in: {}", word, error);
    }
}

#[test]
fn wrong_names_shapes_types_and_files_are_errors() {
    let session = Session::load(digits().join("digits.onnx"), &[]).unwrap();
    let image = Tensor::new(&[1, 1, 8, 8], vec![0.0f32; 64]).unwrap();
    let flat = Tensor::new(&[64], vec![0.0f32; 64]).unwrap();
    let doubles = Tensor::new(&[1, 1, 8, 8], vec![0.0f64; 64]).unwrap();
    failed(session.run(&[("picture", &image)]), Code::Input, &["picture", "image"]);
    failed(session.run(&[]), Code::Input, &["image"]);
    failed(session.run(&[("image", &image), ("image", &image)]), Code::Input, &["image"]);
    failed(session.run(&[("image", &flat)]), Code::ShapeMismatch, &["image", "64"]);
    failed(session.run(&[("image", &doubles)]), Code::DtypeMismatch, &["image", "float32", "float64"]);
    let outputs = RunOptions { outputs: vec!["classes".to_string()], ..RunOptions::default() };
    failed(session.run_with(&[("image", &image)], &outputs), Code::Input, &["classes", "probabilities"]);

    failed(Session::load("/no/such.onnx", &[]), Code::NotFound, &["/no/such.onnx"]);
    failed(Session::from_bytes(b"no model", &[]), Code::UnsupportedFormat, &["onnx"]);
    let model = digits().join("digits.onnx");
    failed(Session::load(&model, &[("num_thread", "1")]), Code::InvalidArgument, &["num_thread", "num_threads"]);
    failed(Session::load(&model, &[("num_threads", "many")]), Code::InvalidArgument, &["num_threads", "many"]);
    assert_eq!(session.run(&[("image", &image)]).unwrap()["probabilities"].shape(), [1, 10]);
}

#[test]
fn inputs_may_have_defaults_and_outputs_be_left_out() {
    let session = Session::from_bytes(&with_sequence_and_default(), &[]).unwrap();
    let inputs: Vec<_> = session.inputs().iter().map(|input| (input.name.as_str(), input.optional)).collect();
    assert_eq!(inputs, [("x", false), ("c", true)]);
    assert_eq!(session.inputs()[0].shape, None);
    assert_eq!(session.outputs()[0].kind, ValueKind::Sequence);
    let (x, c) = (Tensor::new(&[2], vec![1.0f32, 2.0]).unwrap(), Tensor::new(&[], vec![10.0f32]).unwrap());
    failed(session.run(&[("x", &x)]), Code::Unsupported, &["'y' is a sequence", "RunOptions::outputs"]);
    let z = RunOptions { outputs: vec!["z".to_string()], ..RunOptions::default() };
    assert_eq!(session.run_with(&[("x", &x)], &z).unwrap()["z"].data::<f32>().unwrap(), [3.0, 4.0]);
    let outputs = session.run_with(&[("c", &c), ("x", &x)], &z).unwrap();
    assert_eq!((outputs.len(), outputs["z"].data::<f32>().unwrap()), (1, &[11.0, 12.0][..]));
}

#[test]
fn runs_are_told_what_to_do() {
    let session = session_of(ElementType::Float32);
    let x = Tensor::new(&[3], vec![1.0f32, 2.0, 3.0]).unwrap();
    let plain = RunOptions {
        outputs: vec!["y".to_string()],
        timeout: Some(Duration::from_secs(600)),
        num_threads: 1,
        memory_limit: 1 << 30,
        tag: "first".to_string(),
        cancel: Some(Cancel::default()),
    };
    assert_eq!(session.run_with(&[("x", &x)], &plain).unwrap(), HashMap::from([("y".to_string(), x.clone())]));
    plain.cancel.as_ref().unwrap().clone().cancel();
    failed(session.run_with(&[("x", &x)], &plain), Code::Cancelled, &[]);
    let little = RunOptions { memory_limit: 1, ..RunOptions::default() };
    failed(session.run_with(&[("x", &x)], &little), Code::OutOfMemory, &[]);
    let long = RunOptions { timeout: Some(Duration::MAX), ..RunOptions::default() };
    failed(session.run_with(&[("x", &x)], &long), Code::InvalidArgument, &["timeout_ms"]);
}

#[test]
fn many_sessions_open_and_close() {
    let x = Tensor::new(&[1], vec![1i32]).unwrap();
    for _ in 0..100 {
        assert_eq!(session_of(ElementType::Int32).run(&[("x", &x)]).unwrap()["y"], x);
    }
}

/// In a process of its own, since a process opens the library once: this test runs itself there.
#[test]
fn a_library_that_is_not_there_is_an_error() {
    const MISSING: &str = "/no/such/libpyflamert_c.so";
    if std::env::var_os("PYFLAME_RT_LIBRARY").map_or(false, |given| given == MISSING) {
        for _ in 0..2 {
            let words = ["opening the library: PYFLAME_RT_LIBRARY names", MISSING, "No such file", "set PYFLAME"];
            failed(Session::load("digits.onnx", &[]), Code::NotFound, &words);
        }
        return;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "a_library_that_is_not_there_is_an_error"]).env("PYFLAME_RT_LIBRARY", MISSING);
    let done = again.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}
